"""What of a tar archive may be unpacked, and how: by the rules of tarfile's filter ``data`` (PEP 706), which Python has from
3.11.4 on and Debian bookworm's 3.11.2 has not."""

from __future__ import annotations

import copy
import os
import tarfile


def renamed(member: tarfile.TarInfo, name: str, linkname: str) -> tarfile.TarInfo:
    """The member under another name."""
    made = copy.copy(member)
    made.name, made.linkname = name, linkname
    return made


def admitted(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo:
    """The member as it may be unpacked below ``target``: relative, nothing for others to write, no owner.

    ``mode`` of a directory or a link is ``None``: theirs is left alone. Raises tarfile.ExtractError for what would leave the
    target, or is neither file, directory nor link.
    """
    root = os.path.realpath(target)
    made = copy.copy(member)
    made.name = member.name.lstrip("/")
    _inside(root, made.name, f"{member.name!r} would be extracted to")
    if not (member.isreg() or member.islnk() or member.isdir() or member.issym()):
        raise tarfile.ExtractError(f"{member.name!r} is a special file")
    if member.islnk() or member.issym():
        if member.linkname.startswith("/"):
            raise tarfile.ExtractError(f"{member.name!r} is a link to an absolute path")
        beside = made.name.rpartition("/")[0] if member.issym() else ""
        _inside(root, os.path.join(beside, member.linkname), f"{member.name!r} would link to")
    made.mode = None if member.isdir() or member.issym() else _mode(member.mode)  # type: ignore[assignment]
    return made


def _mode(mode: int) -> int:
    mode &= 0o755
    if not mode & 0o100:
        mode &= ~0o111
    return mode | 0o600


def _inside(root: str, path: str, what: str) -> None:
    place = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath([place, root]) != root:
        raise tarfile.ExtractError(f"{what} {place!r}, which is outside the destination")
