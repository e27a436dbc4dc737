"""The lab's supervisor: what it is asked, and how its children are made."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.kit.process.prefork import Child, Parent
from saltern.lab.launcher import Control, LogFiles, child_of
from saltern.lab.plan import PORTS, LabError, Paths, Settings, programs
from saltern.lab.supervisor import MARK, clean_environment, prepare_socket_directory, socket_path

ROWS = programs(Settings(Path("/tree"), ("web.1",), 1, {name: row.default for name, row in PORTS.items()}))


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    """The supervisor's end of the socket, without a loop and without processes."""
    children = [Child("reactor", lambda: 0), Child("minion-web1", lambda: 0)]
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(tmp_path / "socket"))
    with server:
        yield Control(server, Parent(children, logging.getLogger("lab")))


def test_the_supervisor_answers_what_it_is_asked(control: Control) -> None:
    assert control.answer({"do": "pid"}) == {"answer": os.getpid()}
    waiting = {"state": "waiting", "pid": 0, "last_end": ""}
    assert control.answer({"do": "states"}) == {"answer": {"reactor": waiting, "minion-web1": waiting}}
    assert control.answer({"do": "stop", "name": "reactor"}) == {"answer": None}
    assert control.parent.watched["reactor"].state == "stopped"
    assert control.answer({"do": "start", "name": "reactor"}) == {"answer": None}
    assert control.parent.watched["reactor"].state == "waiting"


@pytest.mark.parametrize("question", [{"do": "stop", "name": "nobody"}, {"do": "dance"}, {}])
def test_the_supervisor_refuses_what_it_does_not_know(control: Control, question: dict[str, str]) -> None:
    answer = control.answer(question)
    assert isinstance(answer, dict)
    assert answer["error"].startswith("there is nothing to do for ")


def test_every_program_becomes_a_child(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    children = [child_of(row, paths, 3, MasterOptions()) for row in ROWS]
    assert [child.name for child in children] == [row.name for row in ROWS]
    by_name = {child.name: child for child in children}
    assert by_name["redis"].stage < by_name["mworker"].stage < by_name["minion-web.1"].stage
    assert by_name["reactor"].log == tmp_path / "log" / "reactor.log"


def test_a_log_that_has_grown_is_moved_aside(tmp_path: Path) -> None:
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    small.write_text("line\n")
    with large.open("a") as file:
        file.write("x" * 5_000_001)
        file.flush()
        logs = LogFiles([small, large, tmp_path / "none.log"])
        logs.tick(0.0)
        file.write("after\n")
    assert (small.read_text(), large.read_text()) == ("line\n", "after\n")
    assert (tmp_path / "large.log.1").stat().st_size == 5_000_001
    assert not (tmp_path / "small.log.1").exists()
    assert logs.next_time() == 60.0


def test_the_lab_starts_with_nothing_of_another_master() -> None:
    env = {"SALT_CONFIG_DIR": "/x", "SALTERN_RET_PORT": "1", "SALTERN_LAB": "/y", "PATH": "/bin", "HOME": "/root"}
    clean = clean_environment(env, Path("/lab"), Path("/venv/bin"))
    assert clean["PATH"] == f"/venv/bin{os.pathsep}/bin"
    assert clean[MARK] == "/lab"
    assert clean["HOME"] == "/root"
    assert not {"SALT_CONFIG_DIR", "SALTERN_RET_PORT"} & set(clean)


@pytest.mark.parametrize("directory", ["/" + "long/" * 30, "/home/me/" + "é" * 60])
def test_a_socket_that_cannot_be_in_the_lab_is_in_a_short_place_of_its_own(directory: str) -> None:
    path = socket_path(Paths(Path(directory) / ".lab"))
    assert not str(path).startswith(directory)
    assert len(str(path)) < 98
    assert path == socket_path(Paths(Path(directory) / ".lab"))
    assert path != socket_path(Paths(Path(directory) / ".lab2"))


def test_a_socket_is_in_the_lab_where_it_can() -> None:
    assert socket_path(Paths(Path("/home/me/a b%c;d/.lab"))) == Path("/home/me/a b%c;d/.lab/run/supervisor.sock")


def test_a_socket_directory_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    prepare_socket_directory(tmp_path / "own" / "sock")
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(LabError, match="open"):
        prepare_socket_directory(tmp_path / "open" / "sock")
    (tmp_path / "link").symlink_to(tmp_path / "own")
    with pytest.raises(LabError, match="link"):
        prepare_socket_directory(tmp_path / "link" / "sock")
