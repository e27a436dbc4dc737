"""The namespaces of the managed host, for a minion in a container that shares the host's PID namespace.

With Docker's ``--pid=host`` or a pod's ``hostPID``, process 1 is the host's init. It gives access to the host's root
(``/proc/1/root``), mounts, network and host name. A command that enters these namespaces runs as if started on the
host, as with nsenter(1), but without a further program or process.
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

#: Process 1, which is the host's init.
FIRST = Path("/proc/1")

#: Entered in this order. Mounts are last, because /proc may differ after them. The minion already has the PID namespace.
_KINDS = ("uts", "ipc", "net", "cgroup", "mnt")


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Open descriptors of the host's namespaces and root, for a child process to enter."""

    kinds: tuple[int, ...]
    root: int
    libc: ctypes.CDLL

    def enter(self) -> None:
        """Enter the namespaces and the root directory of process 1. Call as root, in a child process with a single thread.

        Raises OSError if the kernel refuses.
        """
        for descriptor in self.kinds:
            if self.libc.setns(descriptor, 0) != 0:
                raise PermissionError(
                    errno.EPERM, "the namespaces of process 1 cannot be entered: SYS_ADMIN is lacking"
                )
        os.fchdir(self.root)
        os.chroot(".")


@contextlib.contextmanager
def of_first(root: Path) -> Iterator[Namespaces]:
    """Yield the namespaces of process 1. Raises HostError, also when ``root`` is not the root of process 1.

    The roots must be the same, so that commands run on the system whose files are managed.
    """
    # Imported here: the import takes milliseconds, and few minions need it.
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
