"""``salt.fileclient`` for users' modules: access to the files of the state tree (``salt://``)."""

from __future__ import annotations

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts
from statecore.loader.file_client import FileClient

Client = LocalClient = RemoteClient = FSClient = FileClient


def get_file_client(opts: object, pillar: bool = False) -> FileClient:
    """Return the file client of the minion on which the user's module runs. ``opts`` is the module's ``__opts__``."""
    return FileClient(opts.ctx if isinstance(opts, ModuleOpts) else context_of("salt.fileclient.get_file_client"))
