"""Ports of loopback for tests: no two of them get the same one, in whichever process they run.

Asking the system (port 0) for a port that is used only later is a race between processes: it gives the port to another who
asks. So each worker of a run takes ports of its own, from below those that the system gives away.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from itertools import cycle, islice

#: Above the ports of a lab (services/saltern/lab), below Linux' own (net.ipv4.ip_local_port_range).
_PORTS = range(25_600, 32_600)

#: For processes that are away for a while and must find their port again: nobody else takes ports of these.
_KEPT = range(14_000, 18_000)

#: Workers that have ports of their own; with more of them some share.
_WORKERS = 10


def free_ports(count: int) -> list[int]:
    """Different ports of loopback that nothing listens on."""
    return _free_of(_own(_PORTS), count)


def kept_ports(count: int) -> list[int]:
    """The same, of ports that no other test takes when nobody listens there for a while."""
    return _free_of(_own(_KEPT), count)


def _free_of(ports: Iterator[int], count: int) -> list[int]:
    with ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            probe = held.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind(("127.0.0.1", next(ports)))
                found.append(probe.getsockname()[1])
        return found


def free_port() -> int:
    """One such port."""
    return free_ports(1)[0]


@cache
def _own(ports: range) -> Iterator[int]:
    """This worker's part of them, round and round; from anywhere on, as another run may be at work on the same machine."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    mine = ports[worker % _WORKERS :: _WORKERS]
    return islice(cycle(mine), random.randrange(len(mine)), None)
