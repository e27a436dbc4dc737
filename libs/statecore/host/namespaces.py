"""The namespaces of the managed host, where its processes are ours to see: those that its first process lives in.

A minion in a container that shares the host's PID namespace (Docker's ``--pid=host``, ``hostPID`` of a pod) finds the host's
init as process 1, and with it the host's root (``/proc/1/root``), mounts, network and name. A command that enters them runs as
if it had been started on the host: what nsenter(1) does, without the program, and without a process in between.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.model.errors import HostError

if TYPE_CHECKING:
    import ctypes

#: The host's first process, as the minion sees it.
FIRST = Path("/proc/1")

#: The mounts come last: what the others are opened by may not be there behind them. PID is the minion's own already.
_KINDS = ("uts", "ipc", "net", "cgroup", "mnt")


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Descriptors of the host's namespaces and root, for a child to enter."""

    kinds: tuple[int, ...]
    root: int
    libc: ctypes.CDLL

    def enter(self) -> None:
        """In a child that has no threads, as root. Raises OSError."""
        for descriptor in self.kinds:
            if self.libc.setns(descriptor, 0) != 0:
                raise PermissionError(
                    errno.EPERM, "the namespaces of process 1 cannot be entered: SYS_ADMIN is lacking"
                )
        os.fchdir(self.root)
        os.chroot(".")


@contextlib.contextmanager
def of_first(root: Path) -> Iterator[Namespaces]:
    """Those of process 1, which has to have this root: commands must run where files are managed. Raises HostError."""
    # Milliseconds, for what few minions do.
    import ctypes

    opened: list[int] = []
    try:
        try:
            own = os.open(FIRST / "root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.append(own)
            found, wanted = os.fstat(own), root.stat()
            if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
                raise HostError(
                    f"host_pid: the root of process 1 is not {root}: the minion does not share the PID namespace of that host"
                )
            for kind in _KINDS:
                opened.append(os.open(FIRST / "ns" / kind, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise HostError(
                f"host_pid: the namespaces of process 1 cannot be entered: {error.filename}: {error.strerror}; "
                "it takes root, with the capabilities SYS_ADMIN, SYS_PTRACE and SYS_CHROOT"
            ) from error
        yield Namespaces(tuple(opened[1:]), own, ctypes.CDLL(None))
    finally:
        for descriptor in opened:
            os.close(descriptor)
