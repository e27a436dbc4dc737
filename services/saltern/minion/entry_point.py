"""Entry point of the minion's container: boots the mounted host, gives up the right to mount, and becomes the minion.

Commands for the host run by chroot into it. There, package scripts and init scripts need /proc (start-stop-daemon looks up
processes), /dev (null, urandom) and name resolution. All three are the container's own, bound into the host's tree, with the masks
that the container engine put on them. Binding needs the capability SYS_ADMIN, which this process drops before any program of the
host runs.

The tree belongs to the host, whose root may have planted links in it. Places in the tree are opened beneath its root without
following links, and are bound and emptied by their descriptors.

Source: docs/containers.md#a-minion-and-its-mounted-host
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from statecore.host import beneath
from statecore.host.capabilities import drop_own
from statecore.host.detached_run import run_detached
from statecore.host.host import Host
from statecore.model.errors import HostError
from statecore.model.text_lines import lines_of, text_of

_LOG = logging.getLogger("saltern.minion-entrypoint")

#: Flags of mount(2).
_RDONLY, _REMOUNT, _BIND, _REC = 1, 32, 4096, 16384

#: sysexits' EX_CONFIG.
_CONFIG = 78

#: Container's trees that the host gets, and files by which the engine gives the container its names.
TREES, NAMES = ("proc", "dev"), ("etc/resolv.conf", "etc/hosts")

#: Seconds for one start script of the host.
_SCRIPT_SECONDS = 300.0


def main(argv: Sequence[str]) -> NoReturn:
    """Prepare the host at SALTERN_HOST_ROOT and replace this process by the program ``argv``. End with exit code 78 if there is no
    such directory. Raises OSError if the program cannot be started.
    """
    logging.basicConfig(format="minion-entrypoint: %(message)s", level=logging.INFO)
    root = Path(os.environ.get("SALTERN_HOST_ROOT") or "/")
    if root != Path("/"):
        if not root.is_dir():
            _LOG.error("SALTERN_HOST_ROOT=%s is not a directory: mount the host there", root)
            sys.exit(_CONFIG)
        boots = os.path.lexists(root / "usr/bin/dpkg")
        _protect_cgroups()
        # A plain tree of files is a host too (grain userland:none): nothing runs in it, so it needs nothing bound.
        if boots:
            _bind(root)
        # For good, before a program of the host runs.
        drop_own(["SYS_ADMIN"])
        if boots:
            _boot(root)
    os.execvp(argv[0], list(argv))


def _protect_cgroups() -> None:
    """Make cgroups read-only. An engine leaves them writable where a container has SYS_ADMIN: what the minion runs could lift
    its own limits.
    """
    for line in lines_of(text_of(Path("/proc/mounts"), "surrogateescape")):
        _, place, kind, *_ = line.split(" ")
        if kind in ("cgroup", "cgroup2") or place == "/sys/fs/cgroup":
            try:
                _mount(None, place, _REMOUNT | _BIND | _RDONLY)
            except OSError as error:
                _LOG.warning("%s stays writable: %s", place, error.strerror)


def _bind(root: Path) -> None:
    """Bind the container's /proc, /dev and name resolution into the host's tree; log what cannot be bound."""
    with beneath.directory(root) as top:
        for name in TREES:
            try:
                beneath.make_directories(top, name, 0o755)
                with beneath.directory(name, within=top) as place:
                    if not _is_mounted(top, place):
                        _mount(f"/{name}", f"/proc/self/fd/{place}", _BIND | _REC)
            except OSError as error:
                # The host's root may have put a link there. The minion can still repair its files.
                _LOG.warning("/%s of the container is not bound into the host: %s", name, error)
        for name in NAMES:
            # A link there (resolvconf) is the host's business.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), _regular(top, name) as file:
                if file is not None and not _is_mounted(top, file):
                    _mount(f"/{name}", f"/proc/self/fd/{file}", _BIND)


@contextlib.contextmanager
def _regular(top: int, name: str) -> Iterator[int | None]:
    """Yield the descriptor of a regular file beneath the tree, which is made if it is missing; None for a link, or a place that
    a link leads to.
    """
    try:
        opened = beneath.open_beneath(top, name, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        _LOG.info("%s is not bound into the host: %s", name, error.strerror)
        yield None
        return
    try:
        yield opened if stat.S_ISREG(os.fstat(opened).st_mode) else None
    finally:
        os.close(opened)


def _is_mounted(top: int, place: int) -> bool:
    """Return whether something is mounted at ``place``: it is of another file system than the tree, or another mount."""
    return _mount_of(top) != _mount_of(place)


def _mount_of(opened: int) -> str:
    """Return the number of the mount that an open file belongs to."""
    lines = lines_of(text_of(Path(f"/proc/self/fdinfo/{opened}")))
    return next(line.partition(":")[2].strip() for line in lines if line.startswith("mnt_id:"))


def _boot(root: Path) -> None:
    """Boot the host: empty its /run, as this start is its boot, and run the start scripts that are enabled there."""
    with beneath.directory(root) as top:
        try:
            with _listable(top, "run") as run:
                empty(run)
                os.mkdir("lock", 0o755, dir_fd=run)
        except OSError as error:
            _LOG.warning("/run of the host is not emptied: %s", error.strerror)
        try:
            with _listable(top, "etc/rc2.d") as scripts:
                names = sorted(entry.name for entry in os.scandir(scripts) if entry.name.startswith("S"))
        except OSError:
            names = []
    host = Host(root)
    for name in names:
        path = f"/etc/rc2.d/{name}"
        if host.which(path) is None:
            continue
        try:
            ended = run_detached(host, [path, "start"], timeout=_SCRIPT_SECONDS)
        except HostError as error:
            _LOG.warning("%s did not start: %s", name, error)
            continue
        sys.stderr.write(ended.stdout + ended.stderr)
        if ended.retcode:
            _LOG.warning("%s did not start: exit code %d", name, ended.retcode)


@contextlib.contextmanager
def _listable(top: int, name: str) -> Iterator[int]:
    """Yield the descriptor of a directory beneath the tree, which can be listed. Raises OSError, also for a link."""
    opened = beneath.open_beneath(top, name, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield opened
    finally:
        os.close(opened)


def empty(directory: int) -> None:
    """Remove everything in a directory, given by its descriptor. A link is removed, never followed. Raises OSError."""
    for name in [entry.name for entry in os.scandir(directory)]:
        if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=directory)
        else:
            os.unlink(name, dir_fd=directory)


def _mount(source: str | None, target: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source and os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


if __name__ == "__main__":
    main(sys.argv[1:])
