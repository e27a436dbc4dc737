"""A disk of a few megabytes under Redis' append-only file, so that it is really full: no error is played.

It is a tmpfs in a mount namespace of Redis' own, which ends with Redis: only root makes one. Redis' file is there for as long as
the disk is to be full; before and after it is where it always is.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import redis

from tests.chaos.field import Field

#: Where it is mounted, below the lab's directory.
NAME = "small-disk"

_MEGABYTES = 24

#: Seconds for each thing that Redis does by itself.
_PATIENCE = 60.0


def may_mount() -> bool:
    """Whether this machine lets the tests make mount namespaces."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0


def with_small_disk(words: Sequence[str], place: Path) -> list[str]:
    """The words that start the same program, by the same process, with the disk mounted there."""
    place.mkdir(exist_ok=True)
    mount = f'mount -t tmpfs -o size={_MEGABYTES}m none "$0" && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, str(place), *words]


def fill(field: Field) -> None:
    """Redis keeps its file on the small disk, and that is full: it has said so."""
    server = field.redis_now()
    _move(server, field.root / NAME)
    with _ballast(field).open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(1 << 16))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    # What is left of its last block takes a few writes yet.
    _until(lambda: not _writes(server), "Redis notices that its disk is full")
    said = server.info("persistence")
    assert said["aof_last_write_status"] == "err", said


def free(field: Field) -> None:
    """There is room again; what Redis still had to write it writes by itself."""
    server = field.redis_now()
    _ballast(field).unlink()
    _until(lambda: _writes(server), "Redis writes again")
    _move(server, field.root / "redis")


def _ballast(field: Field) -> Path:
    """The file that fills the disk, as seen from outside of its namespace."""
    return Path(f"/proc/{field.processes['redis'].pid}/root") / (field.root / NAME / "ballast").relative_to("/")


def _writes(server: redis.Redis) -> bool:
    try:
        server.set("salt:test", "x" * 1000)
        server.delete("salt:test")
    except redis.ResponseError as error:
        if "MISCONF Errors writing to the AOF file: No space left on device" not in str(error):
            raise
        return False
    return True


def _move(server: redis.Redis, place: Path) -> None:
    """The append-only file is written anew in another directory."""
    server.config_set("appendonly", "no")
    server.config_set("dir", str(place))
    server.config_set("appendonly", "yes")

    def done() -> bool:
        now = server.info("persistence")
        return not (now["aof_rewrite_in_progress"] or now["aof_rewrite_scheduled"]) and now["aof_enabled"] == 1

    _until(done, f"Redis has written its file in {place}")


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {_PATIENCE} s: {what}"
        time.sleep(0.05)  # between two questions; the deadline is above
