"""Files of the host, sent to the master in chunks (``cp.push``, ``cp.push_dir``). Source: salt/modules/cp.py.

The master keeps them below its cache directory, each minion's apart, where its option ``file_recv`` lets minions send any.
"""

from __future__ import annotations

import fnmatch
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from statecore.model.context import Context

log = logging.getLogger(__name__)

#: Bytes of a chunk, where the option ``file_buffer_size`` does not say otherwise.
_CHUNK = 262144


def is_plain(path: str) -> bool:
    """Whether a path is absolute and does not climb."""
    return path.startswith("/") and ".." not in path.split("/")


def send(ctx: Context, path: str, upload_path: str | None, *, keep_symlinks: bool, remove: bool) -> bool:
    """Sends one file of the host; whether the master took it. Raises CommandError, HostError."""
    if not is_plain(path) or (upload_path and ".." in upload_path.split("/")):
        return False
    # By whatever name, what is read is the file that the host means.
    source = ctx.host.path(path)
    if not source.is_file():
        return False
    names = [name for name in (upload_path or (path if keep_symlinks else _on_host(ctx, source))).split("/") if name]
    chunk = int(ctx.opts.get("file_buffer_size") or _CHUNK)
    with source.open("rb") as file:
        size, loc = os.fstat(file.fileno()).st_size, 0
        while (data := file.read(chunk)) or not loc:
            load = {"path": names, "size": size, "loc": loc, "data": data}
            if not ctx.minion.ask_master("_file_recv", load):
                log.error("%s was not taken by the master: see its options file_recv and file_recv_max_size", path)
                return False
            if not data:
                # An empty file is one empty chunk.
                break
            loc += len(data)
    if remove:
        # As in Salt the file, where a link was named.
        (ctx.host.path(path, follow=False) if keep_symlinks else source).unlink()
    return True


def send_directory(ctx: Context, path: str, matching: str | None, upload_path: str | None) -> bool:
    """Sends the files below a directory; False with the first that is not taken, and where there is none."""
    if not is_plain(path):
        return False
    top = ctx.host.path(path)
    if top.is_file():
        return send(ctx, path, upload_path, keep_symlinks=False, remove=False)
    found = list(_files_below(top, matching))
    for source in found:
        target = f"{upload_path.strip('/')}/{source.relative_to(top)}" if upload_path else None
        if not send(ctx, _on_host(ctx, source), target, keep_symlinks=False, remove=False):
            return False
    return bool(found)


def _files_below(directory: Path, matching: str | None) -> Iterator[Path]:
    """Files and links in the order of their names; directories behind links are not entered."""
    for one in sorted(directory.iterdir()) if directory.is_dir() else ():
        if one.is_dir() and not one.is_symlink():
            yield from _files_below(one, matching)
        # Whether a link is a file of the host is for the host to say.
        elif (one.is_symlink() or one.is_file()) and (matching is None or fnmatch.fnmatch(one.name, matching)):
            yield one


def _on_host(ctx: Context, path: Path) -> str:
    """The host's own name of one of its paths."""
    return f"/{path.relative_to(ctx.host.root)}"
