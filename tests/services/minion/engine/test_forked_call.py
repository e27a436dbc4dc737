"""Calls that are worked out in forks: what comes back, what goes wrong, and what does not stay."""

from __future__ import annotations

import datetime
import importlib
import os
import signal
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from saltern.minion.engine.forked_call import ForkedCalls, ForkEnded
from saltern.minion.ipc.framed_socket import FramedSocket

PATIENCE = 60.0


def _elsewhere(calls: ForkedCalls) -> bool:
    return bool(calls.call(os.getpid) != os.getpid())


class Foreseen(Exception):
    """What the caller reckons with."""


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, FramedSocket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, FramedSocket(theirs)


@pytest.fixture
def calls(ends: tuple[socket.socket, FramedSocket]) -> ForkedCalls:
    return ForkedCalls(Foreseen, ends[1])


def _raise(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"os": "Debian", "cpus": 4, "load": 0.5, "ip": ["::1", None, True]}, id="as grains are"),
        pytest.param({"roles": {"web", "db"}, "pair": (1, 2), "raw": b"\xff\x00"}, id="more than JSON"),
        pytest.param("\udcff\u00e9\0", id="not UTF-8"),
        pytest.param({"big": "x" * 5_000_000}, id="more than a pipe holds"),
        pytest.param(None, id="nothing"),
    ],
)
def test_plain_values_come_back_from_another_process(calls: ForkedCalls, value: Any) -> None:
    here = os.getpid()
    assert calls.call(lambda: [value, os.getpid() == here]) == [value, False]


@pytest.mark.parametrize(
    "value",
    [OrderedDict(b=1, a=2), datetime.date(2026, 1, 1), {"path": Path("/x")}],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_themselves_and_made_here(calls: ForkedCalls, value: Any) -> None:
    where: list[int] = []
    for _ in range(2):
        found = calls.call(lambda: where.append(os.getpid()) or value)  # type: ignore[func-returns-value]
        assert found is value
    # The first was tried in a fork, too, and that is not seen here.
    assert where == [os.getpid()] * 2


def test_a_foreseen_error_is_raised_here_with_its_words(calls: ForkedCalls) -> None:
    with pytest.raises(Foreseen, match="the master does not answer: caf\u00e9"):
        calls.call(lambda: _raise(Foreseen("the master does not answer: caf\u00e9")))
    assert _elsewhere(calls)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        pytest.param(lambda: _raise(ValueError("unforeseen")), "ended with 1", id="an error that nobody foresaw"),
        pytest.param(lambda: os._exit(3), "ended with 3", id="an exit"),
        pytest.param(lambda: os.kill(os.getpid(), signal.SIGKILL), "ended with -9", id="the end of it"),
        pytest.param(lambda: sys.exit(0), "ended with 1", id="an exit of Python's"),
    ],
)
def test_a_fork_that_ends_without_a_word_is_told(calls: ForkedCalls, work: Callable[[], Any], words: str) -> None:
    with pytest.raises(ForkEnded, match=words):
        calls.call(work)
    assert _elsewhere(calls)


def test_when_nobody_waits_any_more_the_fork_is_killed(
    calls: ForkedCalls, ends: tuple[socket.socket, FramedSocket], tmp_path: Path
) -> None:
    def work() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        # The fork has the other end as well, being of the same process; the real one does not.
        ends[0].shutdown(socket.SHUT_RDWR)
        time.sleep(PATIENCE)

    started = time.monotonic()
    with pytest.raises(ForkEnded, match="the main process is gone"):
        calls.call(work)
    assert time.monotonic() - started < PATIENCE
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_message_that_waits_ends_nothing_and_is_still_there(
    calls: ForkedCalls, ends: tuple[socket.socket, FramedSocket]
) -> None:
    FramedSocket(ends[0]).put(b"a job")
    assert calls.call(lambda: 1) == 1
    assert ends[1].receive() == b"a job"


def test_what_a_call_loads_does_not_stay(calls: ForkedCalls) -> None:
    assert calls.call(lambda: importlib.import_module("nturl2path").__name__) == "nturl2path"
    assert "nturl2path" not in sys.modules
