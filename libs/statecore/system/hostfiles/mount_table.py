"""What is mounted where: mountinfo(5) read, and whether what is mounted has the options that were asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from statecore.model.named_tuple import NamedTuple
from statecore.model.ports import ManagedHost

#: Options that the kernel does not tell of a mount (Salt: states/mount.py), and those that say how and when to mount.
_UNTOLD = (
    "_netdev actimeo auto async backup-volfile-servers bg bind comment defaults delay_connect direct-io-mode fail group intr"
    " loop noauto nobootwait nofail nogroup nointr nonempty noowner nouser nousers owner password port rbind reconnect remount"
    " retry soft transform_symlinks user users"
)

#: The same of options with a value.
_UNTOLD_KEYS = "actimeo comment credentials direct-io-mode password port pri retry secretfile user"

#: Option -> the one whose absence tells it.
_UNLESS = {
    "exec": "noexec",
    "suid": "nosuid",
    "dev": "nodev",
    "diratime": "nodiratime",
    "atime": "noatime",
    "async": "sync",
    "norelatime": "relatime",
}

#: Options of file systems that need not be told by the kernel.
_IGNORED_OF: Mapping[str, tuple[str, ...]] = {"ramfs": ("size",)}

#: What a tmpfs has without being told.
_TMPFS = frozenset(("mode=1777", "uid=0", "gid=0"))

_TRANSLATED = {"tcp": "proto=tcp", "udp": "proto=udp"}

_SIZE = re.compile(r"(size|nr_inodes|nr_blocks)=(\d+)([kmg]?)", re.IGNORECASE)
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mounted(NamedTuple):
    """A line of the table; paths and options as they are, without escapes."""

    mountid: str
    parentid: str
    major: str
    minor: str
    root: str
    point: str
    opts: list[str]
    fstype: str
    device: str
    superopts: list[str]

    def plain_opts(self) -> list[str]:
        """The options as /proc/mounts tells them: of the mount and of its file system in one list."""
        mode = "ro" if "ro" in (self.opts[:1] + self.superopts[:1]) else "rw"
        rest = [each for each in self.opts[1:] + self.superopts[1:] if each not in ("rw", "ro")]
        return list(dict.fromkeys([mode, *rest]))


@dataclass(frozen=True, slots=True)
class Leniency:
    """What a state knows besides of options that need not be told: ``extra_mount_*`` and ``hidden_opts``."""

    options: Collection[str] = ()
    keys: Collection[str] = ()
    of_fs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    translated: Mapping[str, str] = field(default_factory=dict)


def parse(text: str) -> dict[str, Mounted]:
    """Mount point -> what is mounted there; of several the last, which is the one that is seen."""
    found = {}
    for line in text.splitlines():
        words = line.split(" ")
        sign = words.index("-", 6)
        device = words[2].split(":")
        point = plain(words[4])
        found[point] = Mounted(
            mountid=words[0],
            parentid=words[1],
            major=device[0],
            minor=device[1],
            root=plain(words[3]),
            point=point,
            opts=[plain(each) for each in words[5].split(",")],
            fstype=words[sign + 1],
            device=plain(words[sign + 2]),
            superopts=[plain(each) for each in words[sign + 3].split(",")],
        )
    return found


def plain(word: str) -> str:
    """A field without the kernel's escapes."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), word)


def real_path(host: ManagedHost, path: str) -> str:
    """A path of the host without links, as its mount table has it. Raises HostError."""
    place = host.path(path.rstrip("/") or "/")
    return "/" + "/".join((place.relative_to(host.root) if host.mounted else place.resolve()).parts).lstrip("/")


def holder(table: Mapping[str, Mounted], path: str) -> Mounted | None:
    """What is mounted at the nearest mount point above a path (or at it)."""
    while path not in table and path != "/":
        path = path.rpartition("/")[0] or "/"
    return table.get(path)


def missing(
    wanted: Sequence[str],
    active: Sequence[str],
    fstype: str,
    lenient: Leniency,
    number: Callable[[str, str], str],
) -> list[str]:
    """The wanted options that what is mounted has not, in the form in which the kernel would tell them.

    ``number`` makes an id of (uid or gid, a name).
    """
    have = {_told(each, fstype, number) for each in active}
    ignored = {**_IGNORED_OF, **lenient.of_fs}.get(fstype, ())
    not_told, keys = {*_UNTOLD.split(), *lenient.options}, {*_UNTOLD_KEYS.split(), *lenient.keys}
    lacking = []
    for given in wanted:
        option = _told({**_TRANSLATED, **lenient.translated}.get(given, given), fstype, number)
        key = option.partition("=")[0]
        if option in have or option in not_told or key in keys or key in ignored or not option:
            continue
        if option.lower().startswith("x-") or (fstype == "tmpfs" and option in _TMPFS):
            continue
        # A share of the memory is told as a number of bytes, which changes with the memory.
        if option.startswith("size=") and option.endswith("%"):
            continue
        if option in _UNLESS and _UNLESS[option] not in have:
            continue
        lacking.append(option)
    return lacking


def _told(option: str, fstype: str, number: Callable[[str, str], str]) -> str:
    key, sign, value = option.partition("=")
    if size := _SIZE.fullmatch(option):
        return _size(size[1].lower(), int(size[2]), size[3].lower())
    if key == "mode" and value:
        return f"mode={value.lstrip('0') or '0'}"
    if key in ("uid", "gid") and value and not value.isdecimal():
        return f"{key}={number(key, value)}"
    if fstype == "cifs" and key == "user" and sign:
        return f"username={value}"
    return option


def _size(key: str, count: int, unit: str) -> str:
    bytes_ = count * {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[unit]
    return f"size={bytes_ // 1024}k" if key == "size" else f"{key}={bytes_}"
