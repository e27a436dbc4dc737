"""``salt.fileclient`` for users' modules: access to the files of the state tree (``salt://``)."""

from __future__ import annotations

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts
from statecore.loader.file_client import FileClient

Client = LocalClient = RemoteClient = FSClient = FileClient


def get_file_client(opts: object, pillar: bool = False) -> FileClient:
    """Return the object with which a user's module lists, fetches and hashes ``salt://`` files of the minion it runs
    on. ``opts`` is the module's ``__opts__``.
    """
    return FileClient(opts.ctx if isinstance(opts, ModuleOpts) else context_of("salt.fileclient.get_file_client"))
