"""The master's file server, built from its options, for every role that reads the tree."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from saltern.kit.config.master import ConfigError, MasterOptions, as_opts
from statecore.model.errors import StatecoreError
from statecore.model.lazy import lazy_module
from statecore.sources.fileserver import FileServer
from statecore.sources.fileserver.users import LoadedBackend

if TYPE_CHECKING:
    from statecore.runtime import runtime
else:
    # Only users' own backends need the loader, which takes memory.
    runtime = lazy_module("statecore.runtime.runtime")


def file_server(options: MasterOptions) -> FileServer:
    """Return a file server over all backends of the option ``fileserver_backend``.

    Raises ConfigError if a backend cannot use its options.
    """
    try:
        return FileServer.of(as_opts(options), _load_user_backend)
    except StatecoreError as error:
        raise ConfigError(str(error)) from error


def _load_user_backend(name: str, opts: Mapping[str, object]) -> LoadedBackend:
    return runtime.load_user_backend(name, opts)


#: Options that name directory trees -> default directories, which may be missing.
_TREES = ("file_roots", "pillar_roots")


def trouble(options: MasterOptions) -> str | None:
    """Return None if every directory of the file and pillar trees can be listed, else the directory and the reason as text."""
    return "; ".join(_troubles(options)) or None


def _troubles(options: MasterOptions) -> Iterator[str]:
    defaults = MasterOptions()
    for name in _TREES:
        roots: Mapping[str, Sequence[str]] = getattr(options, name)
        if roots == getattr(defaults, name) or (name == "file_roots" and "roots" not in options.fileserver_backend):
            continue
        for env, directories in roots.items():
            for directory in directories:
                # A path with a placeholder stands for one directory for each saltenv; the saltenvs are not known here.
                if "__env__" not in directory and (why := _unlisted(directory)):
                    yield f"{name}: {env}: {directory}: {why}; mount the tree there, or change {name}"


def _unlisted(directory: str) -> str | None:
    try:
        with os.scandir(directory) as entries:
            next(entries, None)
    except OSError as error:
        return error.strerror or str(error)
    return None
