"""A signal ends the waits of a process at once, and a child process does not wake its parent."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from saltern.kit.process.exposition import Registry
from saltern.kit.process.health import Health
from saltern.kit.process.process import Stop

#: Seconds that no wait of these tests may take, on a busy machine, and the wait that a signal ends.
_PATIENCE, _LONG = 30.0, 60.0


@pytest.fixture
def stop() -> Iterator[Stop]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    made = Stop()
    made.catch()
    yield made
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


def _readable(stop: Stop) -> bool:
    return bool(select.select([stop.fileno()], [], [], 0)[0])


def test_a_signal_ends_the_wait(stop: Stop) -> None:
    main = threading.main_thread().ident
    assert main is not None
    begun = time.monotonic()
    threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGTERM)).start()
    stop.wait(_LONG)
    assert stop.requested
    assert time.monotonic() - begun < _PATIENCE


def test_a_signal_before_the_wait_ends_it(stop: Stop) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    begun = time.monotonic()
    stop.wait(_LONG)
    assert time.monotonic() - begun < _PATIENCE


def test_the_flag_stays_set_when_the_descriptor_is_emptied(stop: Stop) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    assert _readable(stop)
    stop.clear()
    assert not _readable(stop)
    assert stop.requested


def test_the_handler_hurries_a_wait_without_a_descriptor(stop: Stop) -> None:
    hurried: list[bool] = []
    stop.hurry = lambda: hurried.append(stop.requested)
    os.kill(os.getpid(), signal.SIGTERM)
    assert hurried == [True]


def test_a_stop_that_no_signal_reaches_waits_its_time() -> None:
    one = Stop()
    begun = time.monotonic()
    one.wait(0.05)
    assert time.monotonic() - begun >= 0.05
    assert not one.requested


def test_a_signal_of_a_child_does_not_wake_the_parent(stop: Stop) -> None:
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGUSR1, lambda number, frame: None)
        os.kill(os.getpid(), signal.SIGUSR1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert not _readable(stop)


def test_the_probes_end_while_nobody_asks() -> None:
    end = Health("a role", Registry()).serve_on(_listener())
    begun = time.monotonic()
    end()
    assert time.monotonic() - begun < _PATIENCE


def test_probes_are_answered_one_after_the_other() -> None:
    listener = _listener()
    end = Health("a role", Registry()).serve_on(listener)
    try:
        for _ in range(3):
            with socket.create_connection(listener.getsockname(), timeout=_PATIENCE) as client:
                client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                assert client.makefile("rb").readline().startswith(b"HTTP/1.0 200")
    finally:
        end()


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(_PATIENCE)
    return listener
