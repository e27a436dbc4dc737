"""A worker's wait for several reqservers, over its own sockets."""

from __future__ import annotations

import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links.addresses import Addresses
from saltern.kit.links.sockets import LinkKeys
from saltern.kit.process.cpu_limit import CpuLimit, cpu_limit
from saltern.kit.process.metrics import new_metrics
from saltern.kit.process.process import Stop
from saltern.mworker.reqserver_links import ReqserverLinks

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"

#: Two reqservers; none is there.
HOSTS = ("127.0.0.1", "127.0.0.2")


@pytest.fixture
def stop() -> Iterator[Stop]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    made = Stop()
    made.catch()
    yield made
    signal.set_wakeup_fd(-1)
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def links(
    context: Context, role_keys: Path, new_options: Callable[..., MasterOptions], stop: Stop
) -> Iterator[ReqserverLinks]:
    options = new_options(reqserver_host=list(HOSTS))
    keys, metrics = LinkKeys.load(role_keys / "mworker"), new_metrics("mworker")
    made = ReqserverLinks(context, options, keys, Addresses(HOSTS), b"w", b"default", metrics, stop=stop)
    stop.hurry = made.hurry
    made.begin()
    yield made
    made.close()


def readable(stop: Stop) -> bool:
    return bool(select.select([stop.fileno()], [], [], 0)[0])


def _overrun() -> None:
    with cpu_limit(0.01):
        while True:
            pass


def test_a_signal_that_does_not_end_the_worker_does_not_keep_it_awake(links: ReqserverLinks, stop: Stop) -> None:
    with pytest.raises(CpuLimit):
        _overrun()
    assert readable(stop)
    assert links.receive() is None
    assert not readable(stop)


def test_a_signal_ends_the_wait(links: ReqserverLinks, stop: Stop) -> None:
    links._patience = 60.0
    signal.raise_signal(signal.SIGTERM)
    began = time.monotonic()
    assert links.receive() is None
    assert stop.requested
    assert time.monotonic() - began < 30
