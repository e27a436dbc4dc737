"""A network namespace with nothing but loopback, for a browser whose servers are containers.

Each container that starts or ends changes the machine's network. Chromium then fails the requests that wait for a connection
(net::ERR_NETWORK_CHANGED), and SaltGUI sends none of them again.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

#: Holds the namespace until its input ends, also if the test is killed.
_HOLD = "ip link set lo up && echo ready && exec cat"


class OwnNetwork:
    """A network namespace with nothing but loopback, which only root may make. It exists until ``close``."""

    def __init__(self) -> None:
        """Make the namespace. Raises RuntimeError if the user may not."""
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            raise RuntimeError("unshare --net: no network namespace was made: it needs root, and Debian's iproute2")
        self._file = f"/proc/{self._holder.pid}/ns/net"

    def __enter__(self) -> OwnNetwork:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the namespace go: it ends with the last process in it."""
        self._holder.communicate(timeout=10)

    def listener(self) -> socket.socket:
        """Return a socket of this process that listens on a free port of the namespace's loopback."""
        # A namespace is joined by one thread, and this one ends with the call.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._listen).result()

    def _listen(self) -> socket.socket:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(self._file, "rb") as file:
            if libc.setns(file.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), self._file)
        return socket.create_server(("127.0.0.1", 0), backlog=256)

    def program(self, program: str, directory: Path) -> Path:
        """Write a program into ``directory`` that runs ``program`` in the namespace, and return its path."""
        made = directory / f"{Path(program).name}-in-own-network"
        made.write_text(f'#!/bin/sh\nexec nsenter --net={self._file} {shlex.quote(program)} "$@"\n')
        made.chmod(0o755)
        return made
