"""Probes of a parent: the answers of its children, joined."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from saltern.kit.config.reading import ConfigError
from saltern.kit.process.exposition import Registry, process_rows
from saltern.kit.process.health import Health
from saltern.kit.process.metrics import new_metrics
from saltern.kit.process.shared_probes import SharedProbes, joined_metrics, new_listener, open_port
from saltern.kit.process.supervision import Watched
from tests.ports import free_ports
from tests.services.kit.process.test_health import get

ONE = '# HELP a_total Of a\n# TYPE a_total counter\na_total 3.0\n# HELP b Of b\n# TYPE b gauge\nb{x="1"} 2.0\n'
TWO = '# HELP a_total Of a\n# TYPE a_total counter\na_total 4.0\n# HELP c Of c\n# TYPE c gauge\nc{process="w-1"} 1.0\n'


def test_each_metric_is_there_once_with_the_rows_of_all() -> None:
    assert joined_metrics({"p-1": ONE, "p-2": TWO}).splitlines() == [
        *("# HELP a_total Of a", "# TYPE a_total counter", 'a_total{process="p-1"} 3.0', 'a_total{process="p-2"} 4.0'),
        *("# HELP b Of b", "# TYPE b gauge", 'b{x="1",process="p-1"} 2.0'),
        # The rows of a child that is itself a parent have their label already.
        *("# HELP c Of c", "# TYPE c gauge", 'c{process="w-1"} 1.0'),
    ]


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@contextlib.contextmanager
def served(port: int, *children: Watched, answering: tuple[str, ...]) -> Iterator[dict[str, Health]]:
    """A parent's probes on ``port``, served by a thread. Children in ``answering`` answer in threads of this process."""
    listeners = {child.name: new_listener() for child in children}
    healths, stops = {}, []
    for name in answering:
        healths[name] = Health("mworker", new_metrics("mworker").registry)
        stops.append(healths[name].serve_on(listeners[name].dup()))
    server = open_port("127.0.0.1", port)
    assert server is not None
    registry = Registry()
    registry.add(process_rows)
    probes = SharedProbes(server, listeners, {child.name: child for child in children}, registry, "mworker")
    ended = threading.Event()

    def loop() -> None:
        with selectors.DefaultSelector() as selector:
            probes.attach(selector)
            while not ended.is_set():
                for key, _ in selector.select(0.05):
                    key.data(key.fileobj)
                probes.tick(time.monotonic())

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield healths
    finally:
        ended.set()
        thread.join(10)
        for stop in stops:
            stop()
        for file in probes.files():
            file.close()


def running(name: str) -> Watched:
    child = Watched(name)
    child.began(1, 0.0)
    return child


def test_a_parent_is_ready_when_all_its_children_are(port: int) -> None:
    with served(port, running("w-1"), running("w-2"), answering=("w-1", "w-2")) as healths:
        assert get(port, "/readyz") == (200, "ok\n")
        healths["w-2"].check("redis", lambda: "redis at redis:6379 does not answer")
        assert get(port, "/readyz") == (503, "w-2: redis: redis at redis:6379 does not answer\n")
        assert get(port, "/healthz") == get(port, "/livez") == (200, "ok\n")
        status, text = get(port, "/metrics")
        assert status == 200
        assert {f'process_resident_memory_bytes{{process="{one}"}}' for one in ("mworker", "w-1", "w-2")} <= {
            line.rpartition(" ")[0] for line in text.splitlines()
        }
        assert text.count("# TYPE process_resident_memory_bytes gauge") == 1
        assert get(port, "/nothing")[0] == 404


def test_a_child_that_is_gone_or_stuck_is_named(port: int) -> None:
    gone = Watched("w-2")
    gone.began(1, 0.0)
    gone.ended(-9, 100.0)
    with served(port, running("w-1"), gone, answering=("w-1",)):
        assert get(port, "/readyz") == (503, "w-2: does not run; its last process ended by signal 9 (Killed)\n")
        # It is about to be started again.
        assert get(port, "/healthz") == (200, "ok\n")
    with served(port, running("w-1"), answering=()):
        assert get(port, "/healthz") == (503, "w-1: no answer within 2 s\n")


def test_a_client_that_sends_nothing_keeps_nobody_waiting(port: int) -> None:
    with served(port, running("w-1"), answering=("w-1",)), socket.create_connection(("127.0.0.1", port)) as silent:
        silent.sendall(b"GET /rea")
        assert get(port, "/readyz") == (200, "ok\n")


def test_a_port_that_is_taken_is_named(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ConfigError, match=f"health_port 127.0.0.1:{port}: "):
        open_port("127.0.0.1", port)
    assert open_port("127.0.0.1", 0) is None
