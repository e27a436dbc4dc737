"""Files of the host, sent to the master in chunks (``cp.push``, ``cp.push_dir``).

The master stores them below its cachedir, in a directory for each minion, when its option ``file_recv`` is on.

Salt: salt/modules/cp.py
"""

from __future__ import annotations

import fnmatch
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from statecore.model.context import Context

log = logging.getLogger(__name__)

#: Bytes of a chunk, without the option ``file_buffer_size``.
_CHUNK = 262144


def is_plain(path: str) -> bool:
    """Return True if a path that a minion pushes is absolute and has no ``..``."""
    return path.startswith("/") and ".." not in path.split("/")


def send(ctx: Context, path: str, upload_path: str | None, *, keep_symlinks: bool, remove: bool) -> bool:
    """Send one file of the host to the master in chunks. Return True if the master accepted it.

    Return False if the master refuses it, the path is not absolute, or it is not a file. Raise CommandError if the
    master does not answer, HostError if the path cannot be resolved.
    """
    if not is_plain(path) or (upload_path and ".." in upload_path.split("/")):
        return False
    # The path is resolved inside the host's root.
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
                # An empty file is sent as one empty chunk.
                break
            loc += len(data)
    if remove:
        # Without keep_symlinks, the target of a link is removed, as in Salt.
        (ctx.host.path(path, follow=False) if keep_symlinks else source).unlink()
    return True


def send_directory(ctx: Context, path: str, matching: str | None, upload_path: str | None) -> bool:
    """Send the files below a directory of the host to the master; ``matching`` is a glob for their names. Return False
    after the first file that the master refuses, and when there is no file to send.
    """
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
    """Yield the paths of the files and links below a directory, sorted by name. Links to directories are not followed."""
    for one in sorted(directory.iterdir()) if directory.is_dir() else ():
        if one.is_dir() and not one.is_symlink():
            yield from _files_below(one, matching)
        # The host decides whether the target of a link is a file inside its root.
        elif (one.is_symlink() or one.is_file()) and (matching is None or fnmatch.fnmatch(one.name, matching)):
            yield one


def _on_host(ctx: Context, path: Path) -> str:
    """Return the path that the managed host has for a path of this process."""
    return f"/{path.relative_to(ctx.host.root)}"
