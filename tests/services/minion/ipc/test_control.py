"""The minion's own door: questions and answers of any size, from several at once, and who says nothing or nonsense."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import zmq

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.duties import leadership
from saltern.minion.ipc.control import ControlSocket, MinionNotRunning, ask


def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    if request.get("verb") == "refuse":
        raise ValueError("no such job")
    return {"told": request}


class Serving:
    """A control socket in a loop of its own."""

    def __init__(self, directory: Path) -> None:
        self.control = ControlSocket(directory)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop)
        self._thread.start()

    def _loop(self) -> None:
        while not self._ended.is_set():
            poller = zmq.Poller()
            self.control.register(poller)
            self.control.serve(dict(poller.poll(20)), answer)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.control.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Deeper than a socket's path may be long."""
    deep = tmp_path / ("d" * 100) / "cache"
    deep.mkdir(parents=True)
    return deep


@pytest.fixture
def serving(place: Path) -> Iterator[Serving]:
    made = Serving(place)
    yield made
    made.close()


def test_a_minion_that_ends_late_leaves_its_successors_socket(place: Path) -> None:
    """One that is told to end lets its jobs finish for some seconds; the next may have begun meanwhile."""
    late = ControlSocket(place)
    successor = Serving(place)
    late.close()
    try:
        assert ask(place, {"verb": "list"}) == {"told": {"verb": "list"}}
    finally:
        successor.close()
    assert not (place / "minion.sock").exists()


@pytest.mark.usefixtures("serving")
def test_a_question_is_answered(place: Path) -> None:
    assert ask(place, {"verb": "list"}, 5) == {"told": {"verb": "list"}}
    assert ask(place, {"verb": "refuse"}, 5) == {"error": "no such job"}


@pytest.mark.usefixtures("serving")
def test_large_questions_and_answers_travel_whole(place: Path) -> None:
    large = {"jobs": {f"job{number}": "x" * 1000 for number in range(3000)}}
    assert ask(place, large, 10) == {"told": large}


@pytest.mark.usefixtures("serving")
def test_several_ask_at_once(place: Path) -> None:
    told: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda n=n: told.append(ask(place, {"n": n}, 5))) for n in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(one["told"]["n"] for one in told) == list(range(20))


@pytest.mark.usefixtures("serving")
def test_who_talks_nonsense_is_told_so_and_who_leaves_is_forgotten(place: Path) -> None:
    handle = os.open(place, os.O_RDONLY)
    address = f"/proc/self/fd/{handle}/minion.sock"
    for message, said in ((b"w\xc1", b"not msgpack"), (b"w\x01", b"not a map")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
            end.settimeout(5)
            end.connect(address)
            end.send(message)
            assert said in end.recv(1000)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        end.connect(address)
    os.close(handle)
    assert ask(place, {"verb": "list"}, 5) == {"told": {"verb": "list"}}


@pytest.mark.usefixtures("serving")
def test_nobody_else_may_open_it(place: Path) -> None:
    assert stat.S_IMODE((place / "minion.sock").stat().st_mode) == 0o600


def test_where_no_minion_runs(place: Path) -> None:
    with pytest.raises(MinionNotRunning, match=f"no minion runs with the cache directory {place}: No such file"):
        ask(place, {}, 1)
    Serving(place).close()
    with pytest.raises(MinionNotRunning, match="no minion runs"):
        ask(place, {}, 1)


def test_a_minion_that_does_not_answer(place: Path) -> None:
    silent = ControlSocket(place)
    with pytest.raises(MinionNotRunning, match=r"does not answer within 0\.1 seconds"):
        ask(place, {}, 0.1)
    silent.close()


def test_what_a_killed_minion_left_is_replaced(place: Path) -> None:
    first = ControlSocket(place)
    second = Serving(place)
    assert ask(place, {"a": 1}, 5) == {"told": {"a": 1}}
    second.close()
    first.close()


def test_a_minion_works_where_no_socket_can_be_made(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(directory: Path) -> ControlSocket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(leadership, "ControlSocket", refuse)
    own = leadership.Leadership(MinionOptions(id="web1", cachedir=str(place)), shared=False)
    assert own._control is None
    assert "schedule.*, beacons.* and beacons do not work" in caplog.text
