"""A role's frame: options, probes, signals, exit codes."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.process.process import EX_CONFIG, catch_signals, role_arguments
from saltern.kit.process.service import Role, RoleProgram, run_role


def program(name: str, loop: Callable[[Role], object]) -> RoleProgram:
    """A role that runs ``loop`` without preparation."""
    return RoleProgram(name, lambda role: lambda: (loop(role), None)[1])


@pytest.fixture(autouse=True)
def _process_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signal handlers and log handlers belong to the process that runs the tests; put back."""
    for name in list(os.environ):
        if name.startswith("SALTERN_"):
            monkeypatch.delenv(name)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    root.handlers[:] = handlers
    root.setLevel(level)
    faulthandler.enable(sys.__stderr__)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_loop_in_its_own_time(number: signal.Signals, tmp_path: Path) -> None:
    turns = []

    def loop(role: Role) -> None:
        while role.running():
            turns.append(1)
            if len(turns) == 3:
                os.kill(os.getpid(), number)
        turns.append(0)

    assert run_role(program("publisher", loop), ["-c", str(tmp_path)]) == 0
    assert turns == [1, 1, 1, 0]


def test_a_role_has_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "master").write_text("timeout: 7\nlog_level: error\nrequest_deadline: 10\n")
    seen: list[Role] = []
    assert run_role(program("mworker", seen.append), ["-c", str(tmp_path), "-l", "debug"]) == 0
    (role,) = seen
    assert (role.name, role.options.timeout, role.keys) == ("mworker", 7, tmp_path / "keys" / "mworker")
    assert role.log.name == "saltern.mworker"
    assert logging.getLogger().level == logging.DEBUG


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("timeout: long\n", "line 1: option 'timeout' must be a whole number, not 'long'"),
        ("log_level: loud\n", "log_level must be one of"),
        ("log_format: xml\n", "log_format must be text or json"),
        ("health_host: 127.0.0.1\nhealth_port: 70000\n", "health_port 127.0.0.1:70000"),
        ("health_host: nowhere.invalid\nhealth_port: 8080\n", "health_port nowhere.invalid:8080"),
    ],
)
def test_a_configuration_that_cannot_be_used(
    text: str, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "master").write_text(text)
    assert run_role(program("reqserver", lambda role: None), ["-c", str(tmp_path)]) == EX_CONFIG
    said = capfd.readouterr().err
    assert said.startswith("saltern reqserver: ")
    assert says in said
    assert "Traceback" not in said


def test_a_fault_that_the_loop_finds_ends_the_same_way(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def loop(role: Role) -> None:
        raise ConfigError("no keys")

    assert run_role(program("reqserver", loop), ["-c", str(tmp_path)]) == EX_CONFIG
    assert capfd.readouterr().err == "saltern reqserver: no keys\n"


def test_running_counts_as_an_iteration(new_role: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(new_role)
    role: Role = new_role("publisher", MasterOptions())
    iterations: list[None] = []
    monkeypatch.setattr(role.health, "record_iteration", lambda: iterations.append(None))
    assert role.running()
    role.stop.request(signal.SIGTERM, None)
    assert not role.running()
    assert len(iterations) == 2


def test_signals_are_caught_from_the_call_on() -> None:
    stop = catch_signals()
    assert not stop.requested
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.requested


def test_arguments() -> None:
    assert vars(role_arguments("a", [])) == dict.fromkeys(("config_dir", "log_level", "log_file", "log_file_level"))
    given = role_arguments("a", ["--log-file", "/x", "--log-file-level", "debug"])
    assert (given.log_file, given.log_file_level) == ("/x", "debug")
    with pytest.raises(SystemExit):
        role_arguments("a", ["--nonsense"])


@pytest.mark.parametrize(
    ("words", "config_dir", "log_level", "pool"),
    [
        (["-c", "d"], "d", None, None),
        (["--config-dir", "d", "-l", "debug"], "d", "debug", None),
        (["--pool", "p", "--log-level", "", "-c", "a", "-c", "b"], "b", "", "p"),
        (["-cd"], "d", None, None),
        (["--config-dir=d", "--poo", "p"], "d", None, "p"),
        (["-ldebug", "--pool", "-1"], None, "debug", "-1"),
    ],
)
def test_arguments_are_read_in_all_their_forms(
    words: list[str], config_dir: str | None, log_level: str | None, pool: str | None
) -> None:
    given = role_arguments("a", words, {"--pool": ("worker_pool", "a pool")})
    assert (given.config_dir, given.log_level, given.worker_pool) == (config_dir, log_level, pool)


@pytest.mark.parametrize(
    "words", [["-c"], ["-c", "-l"], ["-c", "d", "more"], ["-c", "--config-dir=e", "x"], ["--", "x"]]
)
def test_what_is_no_argument_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        role_arguments("a", words)
    assert ended.value.code == 2
    assert "usage: saltern a" in capsys.readouterr().err


def test_a_role_that_cannot_start_says_why_for_a_while(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "master").write_text("config_error_pause: 30\nlog_level: error\n")
    said: list[str] = []

    def loop(role: Role) -> None:
        # What a probe would ask meanwhile, and then the signal that ends it.
        def ask() -> None:
            said.extend(role.health.unready())
            role.stop.requested = True

        threading.Timer(0.05, ask).start()
        raise ConfigError("/keys/x: No such file")

    assert run_role(program("publisher", loop), ["-c", str(tmp_path)]) == EX_CONFIG
    assert said == ["configuration: /keys/x: No such file"]
    assert "saltern publisher: /keys/x: No such file" in capfd.readouterr().err


def test_a_taken_port_is_another_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A supervisor leaves a process down for good whose configuration is unusable, but starts this one again."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (tmp_path / "master").write_text(f"internal_interface: 127.0.0.1\nhealth_port: {port}\n")
        assert run_role(program("publisher", lambda role: None), ["-c", str(tmp_path)]) == 69
    assert f"health_port 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
