"""Normalises the layers of images: two builds of the same content give the same bytes.

What differs between two builds of one image is not what its programs read: times, the order of files, logs, caches, copies that
programs keep of files that they change, the day on which an account was made, and the time of a source inside byte code. This
module takes these out of one layer, which is a tar archive. Source: docs/decisions/0031-reproducible-releases.md
"""

from __future__ import annotations

import io
import re
import struct
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import source_hash
from typing import IO

#: Files that are left out: logs, caches, and copies of what a file was before.
LEFT_OUT = re.compile(
    r"var/log/.+"
    r"|var/cache/(?:apt|ldconfig)/.+"
    r"|var/cache/debconf/[^/]+-old"
    r"|var/lib/apt/lists/.+"
    r"|var/lib/dpkg/[^/]+-old"
    r"|etc/(?:passwd|group|shadow|gshadow|subuid|subgid)-"
    r"|root/\.cache(?:/.+)?"
    r"|tmp/.+"
)

_SHADOW = "etc/shadow"

#: Seconds of a day: /etc/shadow counts days.
_DAY = 86400

#: First bytes of byte code: the magic number, flags, then a hash of the source, or its time and its size.
_PYC_HEADER = struct.Struct("<4sIII")

#: Flag of byte code that holds a hash which nobody checks when it is loaded.
_UNCHECKED_HASH = 0b01


@dataclass
class _Entry:
    """A file of a layer: its header, and the header that has its content (another one for a hard link)."""

    info: tarfile.TarInfo
    content: tarfile.TarInfo
    #: Names of the same file, this one included.
    names: list[str] = field(default_factory=list)


def plain_name(name: str) -> str:
    """Return the path of an entry, without ``./`` before it and ``/`` after it."""
    return name.removeprefix("./").strip("/")


def _order(name: str) -> tuple[str, ...]:
    """Return the sort key of a path: a directory comes before what is in it."""
    return tuple(name.split("/"))


def _read_entries(layer: tarfile.TarFile) -> dict[str, _Entry]:
    """Return the map of path to entry, without what is left out. A hard link gets the content of its file."""
    entries: dict[str, _Entry] = {}
    for info in layer:
        name = plain_name(info.name)
        if info.islnk():
            first = entries[plain_name(info.linkname)]
            first.names.append(name)
            entries[name] = _Entry(info, first.content, first.names)
        else:
            entries[name] = _Entry(info, info, [name])
    kept = {name: entry for name, entry in entries.items() if not LEFT_OUT.fullmatch(name)}
    for entry in kept.values():
        entry.names[:] = [name for name in entry.names if name in kept]
    return kept


def normalise(source: IO[bytes], target: IO[bytes], epoch: int) -> None:
    """Write the layer ``source`` (a seekable tar archive) to ``target``, normalised.

    Entries are sorted; times are whole seconds, at most ``epoch`` (seconds since 1970); owners are numbers. Raises
    tarfile.TarError for a broken archive, KeyError for a hard link to a file that is not in the layer.
    """
    with (
        tarfile.open(fileobj=source, mode="r:") as layer,
        tarfile.open(fileobj=target, mode="w:", format=tarfile.PAX_FORMAT) as written,
    ):
        entries = _read_entries(layer)
        for name in sorted(entries, key=_order):
            entry = entries[name]
            first = min(entry.names, key=_order)
            header = _header(name, entry, epoch)
            if entry.content.isreg() and name == first:
                content = _content(layer, name, entry.content, entries, epoch)
                header.size = len(content)
                written.addfile(header, io.BytesIO(content))
            else:
                if entry.content.isreg():
                    header.type, header.linkname = tarfile.LNKTYPE, first
                written.addfile(header)


def _header(name: str, entry: _Entry, epoch: int) -> tarfile.TarInfo:
    """Return the header of a file with the fields that a running container can see; that of a regular file has no size yet."""
    of = entry.content
    header = tarfile.TarInfo(name + "/" if of.isdir() else name)
    header.type = tarfile.REGTYPE if of.isreg() else of.type
    header.mode, header.uid, header.gid = of.mode, of.uid, of.gid
    header.mtime = min(int(of.mtime), epoch)
    header.linkname = of.linkname if of.issym() else ""
    header.devmajor, header.devminor = of.devmajor, of.devminor
    # Capabilities and ACLs; other words of pax are times and long names, which tarfile writes where it needs them.
    header.pax_headers = {
        key: value for key, value in sorted(of.pax_headers.items()) if key.startswith("SCHILY.xattr.")
    }
    return header


def _content(
    layer: tarfile.TarFile, name: str, info: tarfile.TarInfo, entries: Mapping[str, _Entry], epoch: int
) -> bytes:
    content = _read(layer, info)
    if name == _SHADOW:
        return shadow_of_day(content, epoch // _DAY)
    if name.endswith(".pyc"):
        return byte_code_without_time(content, _source(layer, name, entries))
    return content


def _read(layer: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = layer.extractfile(info)
    assert file is not None  # the entry is a regular file
    return file.read()


def shadow_of_day(text: bytes, day: int) -> bytes:
    """Return the text of /etc/shadow with no password changed after ``day`` (days since 1970)."""

    def clamped(field: re.Match[bytes]) -> bytes:
        return field[1] + str(min(int(field[2]), day)).encode() + b":"

    return re.sub(rb"^([^:\n]*:[^:\n]*:)(\d+):", clamped, text, flags=re.MULTILINE)


def byte_code_without_time(code: bytes, source: bytes | None) -> bytes:
    """Return byte code that holds a hash of its source, which Python does not check, in the place of the source's time.

    Python would throw away byte code whose source has another time, and write it again at each start. ``source`` is None where
    the layer does not have it: the hash is then 0.
    """
    if len(code) < _PYC_HEADER.size:
        return code
    magic: bytes
    magic, flags, _, _ = _PYC_HEADER.unpack_from(code)
    if flags:
        return code
    digest = bytes(8) if source is None else source_hash(source)
    return magic + struct.pack("<I", _UNCHECKED_HASH) + digest + code[_PYC_HEADER.size :]


_CACHED = re.compile(r"(?:(.*)/)?__pycache__/(.+?)\.cpython-\d+(?:\.opt-\d)?\.pyc")


def _source(layer: tarfile.TarFile, name: str, entries: Mapping[str, _Entry]) -> bytes | None:
    """Return the source of byte code in __pycache__, or None where it is not in the layer."""
    cached = _CACHED.fullmatch(name)
    if cached is None:
        return None
    entry = entries.get("/".join(filter(None, (cached[1], f"{cached[2]}.py"))))
    return _read(layer, entry.content) if entry is not None and entry.content.isreg() else None
