"""Linux capabilities that commands of a mounted host lose. A command of a mounted host runs in a chroot; root with one of these
capabilities could leave it, or reach the kernel or the machine's disks from it.

The child process drops them after its chroot, before the program starts: from its bounding set, so that no program has them
again, and from its other sets. It is one system call for each capability, without a further process.

Source: docs/containers.md#capabilities-of-a-hosts-commands
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.model.lazy import lazy_module
from statecore.model.text_lines import lines_of, text_of

if TYPE_CHECKING:
    import ctypes
else:
    # The import takes milliseconds, and most minions manage their own machine.
    ctypes = lazy_module("ctypes")

log = logging.getLogger(__name__)

#: Capability -> (its number, what root in a chroot could do with it).
LOST: Mapping[str, tuple[int, str]] = {
    "DAC_READ_SEARCH": (2, "open any file of a file system by its handle"),
    "SETPCAP": (8, "change sets of capabilities"),
    "SYS_MODULE": (16, "load code into the kernel"),
    "SYS_RAWIO": (17, "write to memory and ports of the machine"),
    "SYS_CHROOT": (18, "leave the chroot by another one"),
    "SYS_PTRACE": (19, "take over processes outside of the chroot"),
    "SYS_ADMIN": (21, "mount, and enter other namespaces"),
    "SYS_BOOT": (22, "restart the machine, or start another kernel"),
    "SYS_TIME": (25, "set the machine's clock"),
    "MKNOD": (27, "make devices, such as the machine's disks"),
    "MAC_OVERRIDE": (32, "pass the rules of SELinux, AppArmor or Smack"),
    "MAC_ADMIN": (33, "change these rules"),
    "SYSLOG": (34, "read addresses of the kernel, and its log"),
    "PERFMON": (38, "observe the kernel and other processes"),
    "BPF": (39, "load programs into the kernel"),
    "CHECKPOINT_RESTORE": (40, "choose ids of processes, and read their links"),
}

_SETPCAP = LOST["SETPCAP"][0]

#: Operation of prctl(2), and the version of capget(2) with 64 capabilities.
_CAPBSET_DROP = 24
_VERSION_3 = 0x20080522

_STATUS = Path("/proc/self/status")


def lost_numbers(keep: Collection[str], bounding: int) -> tuple[int, ...]:
    """Return the numbers of the capabilities that a command loses, of those in the bounding set ``bounding`` (bits).

    ``keep``: names of capabilities that it keeps. SETPCAP, which the dropping of the others needs, is the last one.
    """
    found = [number for name, (number, _) in LOST.items() if name not in keep and bounding & (1 << number)]
    return tuple(sorted(found, key=lambda number: number == _SETPCAP))


def dropper(keep: Collection[str] = ()) -> Callable[[], None]:
    """Return the function that a child process calls, as root, to lose the capabilities of LOST.

    ``keep``: names of capabilities that stay. The function raises OSError if the kernel refuses. What can be dropped is looked up
    now; a process without SETPCAP can drop nothing for good, which is logged once.
    """
    sets = _sets(text_of(_STATUS))
    numbers = lost_numbers(keep, sets["CapBnd"] | sets["CapPrm"] | sets["CapInh"])
    if not numbers:
        return _nothing
    if not sets["CapEff"] & (1 << _SETPCAP):
        _say_once(", ".join(name for name, (number, _) in LOST.items() if number in numbers))
        return _nothing
    return _prepared(numbers, sets)


def drop_own(names: Collection[str]) -> None:
    """Drop these capabilities of LOST from all sets of this process, for good. Raises OSError if the kernel refuses."""
    sets = _sets(text_of(_STATUS))
    numbers = lost_numbers(LOST.keys() - set(names), sets["CapBnd"] | sets["CapPrm"] | sets["CapInh"])
    if numbers:
        _prepared(numbers, sets)()


def _nothing() -> None:
    """Drop nothing: there is nothing to drop, or it cannot be dropped."""


@functools.cache
def _say_once(names: str) -> None:
    log.warning(
        "commands of the mounted host keep the capabilities %s, which this process cannot take from them: it lacks SETPCAP; "
        "give it SETPCAP, or start it without these capabilities",
        names,
    )


def _sets(status: str) -> dict[str, int]:
    """Return {name: bits} of the sets of capabilities in a /proc/PID/status."""
    lines = (line.partition(":") for line in lines_of(status) if line.startswith("Cap"))
    return {name: int(value, 16) for name, _, value in lines}


@dataclass(frozen=True, slots=True)
class _Drop:
    """What a child process does, prepared by its parent: a child that computes takes milliseconds, system calls take none."""

    libc: ctypes.CDLL
    numbers: tuple[int, ...]
    #: Arguments of capset(2).
    header: ctypes.Array[ctypes.c_uint32]
    sets: ctypes.Array[ctypes.c_uint32]

    def __call__(self) -> None:
        """Drop the capabilities. Raises OSError if the kernel refuses."""
        for number in self.numbers:
            _checked(self.libc.prctl(_CAPBSET_DROP, number, 0, 0, 0))
        # The kernel takes from the ambient set what leaves the permitted or the inheritable one.
        _checked(self.libc.capset(self.header, self.sets))


def _prepared(numbers: tuple[int, ...], sets: Mapping[str, int]) -> _Drop:
    """Return the dropping of capabilities by a process that has these sets."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    left = ~sum(1 << number for number in numbers)
    # Effective, permitted, inheritable: first for capabilities 0 to 31, then for 32 to 63.
    words = [(sets[name] & left) >> shift & 0xFFFFFFFF for shift in (0, 32) for name in ("CapEff", "CapPrm", "CapInh")]
    return _Drop(libc, numbers, (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * len(words))(*words))


def _checked(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"capabilities cannot be dropped: {os.strerror(number)}")
