"""The three questions that probes ask, over HTTP on loopback, and the command that asks them."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator

import pytest

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.process import health as health_module
from saltern.kit.process.health import Health
from saltern.kit.process.metrics import new_metrics
from saltern.kit.process.process import new_health, open_probes
from tests.ports import free_port


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def health(port: int) -> Iterator[Health]:
    made = Health("mworker", new_metrics("mworker").registry, stall_after=30)
    stop = made.serve("127.0.0.1", port)
    yield made
    stop()


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def test_ready_is_when_every_check_passes(health: Health, port: int) -> None:
    assert get(port, "/readyz") == (200, "ok\n")
    health.check("redis", lambda: "redis is away")
    health.check("workers", lambda: None)
    health.check("bus", lambda: "nobody listens")
    assert get(port, "/readyz?verbose") == (503, "redis: redis is away\nbus: nobody listens\n")
    assert get(port, "/healthz") == (200, "ok\n"), "not to be ready is no reason to be killed"


def test_a_check_that_fails_itself_is_a_reason(health: Health, port: int) -> None:
    def broken() -> str | None:
        raise RuntimeError("no such thing")

    health.check("redis", broken)
    assert get(port, "/readyz") == (503, "redis: RuntimeError: no such thing\n")


def test_alive_is_when_the_loop_turns(health: Health, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(health_module.time, "monotonic", lambda: now[0])
    health.record_iteration()
    now[0] += 30
    assert health.alive() is None
    now[0] += 1
    assert health.alive() == "the loop of mworker has not turned for 31 s"
    health.record_iteration()
    assert health.alive() is None


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
def test_a_loop_that_stands_is_told(path: str, port: int) -> None:
    dead = Health("publisher", new_metrics("publisher").registry, stall_after=-1)
    stop = dead.serve("127.0.0.1", port)
    try:
        status, body = get(port, path)
    finally:
        stop()
    assert status == 503
    assert "the loop of publisher has not turned" in body


def test_metrics_are_served_and_nothing_else(health: Health, port: int) -> None:
    status, body = get(port, "/metrics")
    assert status == 200
    assert "salt_redis_up 0.0" in body
    assert get(port, "/") == (404, "not found\n")
    assert get(port, "/etc/passwd")[0] == 404


def test_port_nought_serves_nothing() -> None:
    Health("a", new_metrics("mworker").registry).serve("127.0.0.1", 0)()


def test_a_port_that_is_taken_is_named(health: Health, port: int) -> None:
    with (
        pytest.raises(ConfigError, match=f"health_port 127.0.0.1:{port}: Address already in use"),
        open_probes(new_health("a"), MasterOptions(health_port=port)),
    ):
        pass


def test_probes_end_with_their_block(port: int) -> None:
    for _ in range(2):
        with open_probes(new_health("a"), MasterOptions(health_port=port)):
            assert get(port, "/readyz")[0] == 200
        with pytest.raises(ConnectionRefusedError):
            get(port, "/readyz")


def test_who_asks_otherwise_or_goes_is_no_harm(health: Health, port: int, capfd: pytest.CaptureFixture[str]) -> None:
    for sent, answered in (
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"HTTP/1.0 501 "),
        (b"GET\r\n\r\n", b"HTTP/1.0 404 "),
        (b"\xff\xfe\r\n\r\n", b"HTTP/1.0 501 "),
        (b"GET /" + b"x" * 10_000 + b"\r\n\r\n", b"HTTP/1.0 404 "),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
            one.sendall(sent)
            assert one.recv(len(answered)) == answered
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    assert get(port, "/healthz") == (200, "ok\n")
    assert "Traceback" not in capfd.readouterr().err
