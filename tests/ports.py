"""Ports of loopback for tests: no two tests get the same port, whichever process they run in.

Port 0 makes the system choose a port, but the system may give the same port to another process before the test uses it.
Therefore each test worker has its own range, below the range from which the system chooses.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from itertools import cycle, islice

from saltern.lab.plan import PORTS, why_not

#: Above the ports of a lab (services/saltern/lab), below Linux' own (net.ipv4.ip_local_port_range).
_PORTS = range(25_600, 32_600)

#: For processes that are away for a while and must find their port again: nobody else takes ports of these.
_KEPT = range(14_000, 18_000)

#: For rows of ports, one after the other.
_ROWS = range(18_000, 20_000)

#: Workers that have ports of their own; with more of them some share.
_WORKERS = 10


def free_ports(count: int) -> list[int]:
    """Return ``count`` different ports of loopback on which nothing listens."""
    return _free_of(_own(_PORTS), count)


def kept_ports(count: int) -> list[int]:
    """Return ``count`` ports that no other test takes, even while nothing listens on them."""
    return _free_of(_own(_KEPT), count)


def free_row(count: int) -> range:
    """Return ``count`` consecutive ports of loopback on which nothing listens. Raise StopIteration if there are none."""

    def is_free(row: range) -> bool:
        with ExitStack() as held, suppress(OSError):
            for port in row:
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return True
        return False

    rows = [range(first, first + count) for first in range(_ROWS.start, _ROWS.stop - count, count)]
    random.shuffle(rows)
    return next(filter(is_free, rows))


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
    """Return a port of loopback on which nothing listens."""
    return free_ports(1)[0]


#: More than a lab has of roles and minions.
_HEALTH_PORTS = 12


def free_shift() -> int:
    """Return a number for ``saltern lab up --shift`` with which nobody listens on any port of the lab.

    The ports are below those that outgoing connections take.
    """
    for shift in random.sample(range(6_000, 15_000), 200):
        numbers = {row.default + shift for row in PORTS.values()}
        numbers |= {PORTS["health_port"].default + shift + offset for offset in range(_HEALTH_PORTS)}
        if not any(why_not(number) for number in numbers):
            return shift
    raise RuntimeError("no free ports")


@cache
def _own(ports: range) -> Iterator[int]:
    """Yield this worker's ports in a circle, starting at random because another test run may use the same machine."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    mine = ports[worker % _WORKERS :: _WORKERS]
    return islice(cycle(mine), random.randrange(len(mine)), None)
