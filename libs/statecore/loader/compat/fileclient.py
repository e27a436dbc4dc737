"""``salt.fileclient``: files of the state tree, for the running module."""

from __future__ import annotations

from statecore.loader.current_context import context_of
from statecore.loader.dunders import ModuleOpts
from statecore.loader.file_client import FileClient

Client = LocalClient = RemoteClient = FSClient = FileClient


def get_file_client(opts: object, pillar: bool = False) -> FileClient:
    """Return the file client of the minion in which the module runs."""
    return FileClient(opts.ctx if isinstance(opts, ModuleOpts) else context_of("salt.fileclient.get_file_client"))
