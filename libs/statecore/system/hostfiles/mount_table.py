"""The mount table: parse mountinfo(5), and compare a mount's options with desired ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of

#: Options that the kernel does not list for a mount, and options that control how and when to mount.
#: Salt: salt/states/mount.py.
_UNTOLD = (
    "_netdev actimeo auto async backup-volfile-servers bg bind comment defaults delay_connect direct-io-mode fail group intr"
    " loop noauto nobootwait nofail nogroup nointr nonempty noowner nouser nousers owner password port rbind reconnect remount"
    " retry soft transform_symlinks user users"
)

#: Keys of options with a value that the kernel does not list.
_UNTOLD_KEYS = "actimeo comment credentials direct-io-mode password port pri retry secretfile user"

#: Option -> the opposite option. The kernel lists only the opposite, so its absence means that the option is set.
_UNLESS = {
    "exec": "noexec",
    "suid": "nosuid",
    "dev": "nodev",
    "diratime": "nodiratime",
    "atime": "noatime",
    "async": "sync",
    "norelatime": "relatime",
}

#: File system -> keys of options that the kernel does not list for it.
_IGNORED_OF: Mapping[str, tuple[str, ...]] = {"ramfs": ("size",)}

#: Default options of tmpfs, which the kernel does not list.
_TMPFS = frozenset(("mode=1777", "uid=0", "gid=0"))

_TRANSLATED = {"tcp": "proto=tcp", "udp": "proto=udp"}

_SIZE = re.compile(r"(size|nr_inodes|nr_blocks)=(\d+)([kmg]?)", re.IGNORECASE)
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mounted(NamedTuple):
    """One mounted file system: a line of the mount table, with escapes in paths and options decoded."""

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
        """List of the mount options as in /proc/mounts: those of the mount and of its file system in one list."""
        mode = "ro" if "ro" in (self.opts[:1] + self.superopts[:1]) else "rw"
        rest = [each for each in self.opts[1:] + self.superopts[1:] if each not in ("rw", "ro")]
        return list(dict.fromkeys([mode, *rest]))


@dataclass(frozen=True, slots=True)
class Leniency:
    """Mount options that the kernel need not list for a mount, from a state's ``extra_mount_*`` and ``hidden_opts``
    arguments.
    """

    options: Collection[str] = ()
    keys: Collection[str] = ()
    of_fs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    translated: Mapping[str, str] = field(default_factory=dict)


def parse(text: str) -> dict[str, Mounted]:
    """Map of mount point to its mount, from the text of mountinfo. If several are mounted at one point, the last one,
    which is visible.
    """
    found = {}
    for line in lines_of(text):
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
    r"""Return a field of the mount table with the kernel's escapes (``\040``) decoded."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), word)


def real_path(host: ManagedHost, path: str) -> str:
    """Return a path of the host with its symbolic links resolved, as the host's mount table names it.

    Raises HostError if the path cannot be resolved.
    """
    place = host.path(path.rstrip("/") or "/")
    return "/" + "/".join((place.relative_to(host.root) if host.mounted else place.resolve()).parts).lstrip("/")


def holder(table: Mapping[str, Mounted], path: str) -> Mounted | None:
    """Return the mount that contains a path: the mount at the path, or at its nearest parent; None if there is none."""
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
    """List of the wanted mount options that a mount does not have, in the kernel's form.

    ``number(kind, name)`` returns the id of a user ("uid") or group ("gid").
    """
    have = {_kernel_form(each, fstype, number) for each in active}
    ignored = {**_IGNORED_OF, **lenient.of_fs}.get(fstype, ())
    not_told, keys = {*_UNTOLD.split(), *lenient.options}, {*_UNTOLD_KEYS.split(), *lenient.keys}
    lacking = []
    for given in wanted:
        option = _kernel_form({**_TRANSLATED, **lenient.translated}.get(given, given), fstype, number)
        key = option.partition("=")[0]
        if option in have or option in not_told or key in keys or key in ignored or not option:
            continue
        if option.lower().startswith("x-") or (fstype == "tmpfs" and option in _TMPFS):
            continue
        # The kernel lists a percentage of memory as a number of bytes, which depends on the memory's size.
        if option.startswith("size=") and option.endswith("%"):
            continue
        if option in _UNLESS and _UNLESS[option] not in have:
            continue
        lacking.append(option)
    return lacking


def _kernel_form(option: str, fstype: str, number: Callable[[str, str], str]) -> str:
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
