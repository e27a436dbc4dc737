"""The master's file server, as its options want it: for every role that looks into the tree."""

from __future__ import annotations

from saltern.kit.config.master import ConfigError, MasterOptions, as_opts
from statecore.model.errors import StatecoreError
from statecore.sources.fileserver import FileServer


def file_server(options: MasterOptions) -> FileServer:
    """All backends of ``fileserver_backend``. Raises ConfigError for options that they cannot use."""
    try:
        return FileServer.of(as_opts(options))
    except StatecoreError as error:
        raise ConfigError(str(error)) from error
