"""Commands of the fileserver: the files behind ``salt://``. Source: docs/protocol.md#file-transfer"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import BinaryIO

from saltern.mworker.worker_context import WorkerContext
from saltwire import file_transfer
from saltwire.messages import FileChunk
from statecore.host import beneath


def envs(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> list[str]:
    """Return the names of the saltenvs of the state tree."""
    return context.files.envs()


def file_list(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> list[str]:
    """Return the sorted paths of all files in the state tree that start with ``prefix``."""
    return context.files.paths(_env(load), _prefix(load))


def empty_dirs(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> list[str]:
    """Return the paths of empty directories in the state tree that start with ``prefix``."""
    return context.files.empty_dirs(_env(load), _prefix(load))


def dir_list(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> list[str]:
    """Return the paths of all directories in the state tree that start with ``prefix``."""
    return context.files.dirs(_env(load), _prefix(load))


def symlink_list(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, str]:
    """Return the map of symbolic link to target for the state tree."""
    return context.files.symlinks(_env(load), _prefix(load))


def file_hash(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> object:
    """Return {"hash_type", "hsum"} of a file in the state tree, or "" if the file does not exist."""
    found = context.files.hash(_path(load), _env(load))
    return {"hash_type": found.hash_type, "hsum": found.hsum} if found else ""


def file_hash_and_stat(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> list[object]:
    """Return [hash, stat] of a file in the state tree, or ["", None] if the file does not exist."""
    digest = file_hash(context, minion_id, load)
    return [digest, _stat(context, load) if digest else None]


def find(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, object]:
    """Return the map with ``path`` and ``rel`` of a file in the state tree; both are empty if the file does not exist.

    Minions before 3008 read the file mode from this map.
    """
    found = context.files.source(_path(load), _env(load))
    if found is None:
        return {"path": "", "rel": ""}
    return {"path": str(found[1]), "rel": _path(load), "stat": _stat(context, load), "back": found[0]}


def serve(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> FileChunk:
    """Return one chunk of a file in the state tree from byte ``loc`` on. Empty data ends the file.

    A file that does not exist has an empty ``dest`` in the reply. Source: docs/protocol.md#file-transfer
    """
    relative, loc, level = _path(load), load.get("loc", 0), load.get("gzip")
    path = context.files.fetch(relative, _env(load)) if isinstance(loc, int) and loc >= 0 else None
    if path is None or not isinstance(loc, int):
        return file_transfer.missing()
    try:
        file = path.open("rb")
    except OSError as error:
        if error.errno not in beneath.REPLACED:
            raise
        context.log.debug("salt://%s was replaced while it was opened: %s", relative, error)
        return file_transfer.missing()
    with file:
        # Not every file system can seek far behind the end of a file.
        size = os.fstat(file.fileno()).st_size
        chunk = b"" if loc >= size else _read(file, loc, context.options.file_buffer_size)
    return file_transfer.chunk(chunk, relative, gzip_level=level if isinstance(level, int) else None)


def _read(file: BinaryIO, loc: int, size: int) -> bytes:
    file.seek(loc)
    return file.read(size)


def master_opts(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, object]:
    """Return the map of the master's options that a minion's state run needs; with ``env_only`` only those about saltenvs.

    Source: docs/protocol.md#master-options
    """
    options = context.options
    answer: dict[str, object] = {
        "file_roots": {saltenv: [] for saltenv in context.files.envs()},
        "top_file_merging_strategy": options.top_file_merging_strategy,
        "env_order": options.env_order,
        "default_top": options.default_top,
    }
    if not load.get("env_only"):
        answer |= {
            "renderer": options.renderer,
            "failhard": options.failhard,
            "state_top": options.state_top,
            "state_top_saltenv": options.state_top_saltenv,
            "nodegroups": options.nodegroups,
            "state_auto_order": options.state_auto_order,
            "state_events": options.state_events,
            "state_aggregate": options.state_aggregate,
            "jinja_env": options.jinja_env,
            "jinja_sls_env": options.jinja_sls_env,
            "jinja_lstrip_blocks": options.jinja_lstrip_blocks,
            "jinja_trim_blocks": options.jinja_trim_blocks,
        }
    return answer


def _env(load: Mapping[str, object]) -> str:
    # Some minions send None or a number. Source: docs/protocol.md#file-transfer
    return str(load.get("saltenv") or "base")


def _prefix(load: Mapping[str, object]) -> str:
    prefix = load.get("prefix") or ""
    return prefix.strip("'").lstrip("/") if isinstance(prefix, str) else ""


def _path(load: Mapping[str, object]) -> str:
    """Return the path of the file that a minion asks for; empty text if the path is absolute or contains ``..``."""
    path = load.get("path")
    return path if isinstance(path, str) and file_transfer.is_inside(path) else ""


def _stat(context: WorkerContext, load: Mapping[str, object]) -> list[int] | None:
    return context.files.stat(_path(load), _env(load))
