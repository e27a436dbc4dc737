"""Log lines: for people and for machines, with what they are about."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.master import ConfigError, StateOptions
from saltern.kit.process.logs import LEVELS, configure, tag_job


def options(**given: Any) -> StateOptions:
    return StateOptions(**given)


@pytest.fixture(autouse=True)
def _root() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def fail() -> None:
    raise ValueError("deep\nreason")


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure("mworker", options(log_level="info", log_format="json"))
    log = logging.getLogger("saltern.mworker")
    log.info("return of %s\nand more", "tëst.ping", extra={"jid": "2026", "minion": "web1", "other": "no", "cmd": None})
    log.debug("not shown")
    try:
        fail()
    except ValueError:
        log.exception("failed")
    first, second = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "role": "mworker",
        "logger": "saltern.mworker",
        "message": "return of tëst.ping\nand more",
        "jid": "2026",
        "minion": "web1",
    }
    assert second["level"] == "error"
    assert "ValueError: deep\nreason" in second["exception"]


def test_one_process_of_several_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    configure("mworker", options(log_level="info", log_format="json"), process="mworker-2")
    logging.getLogger("x").info("starts")
    found = json.loads(capsys.readouterr().err)
    assert (found["role"], found["process"]) == ("mworker", "mworker-2")
    configure("mworker", options(log_level="info"), process="mworker-2")
    logging.getLogger("x").info("starts")
    assert " mworker-2 [INFO    ] starts" in capsys.readouterr().err


def test_text_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure("publisher", options(log_level="warning", log_format="text"))
    logging.getLogger("x").warning("away", extra={"jid": "2026", "minion": "web1"})
    logging.getLogger("x").info("not shown")
    line = capsys.readouterr().err
    assert line.endswith("publisher [WARNING ] away [jid=2026 minion=web1]\n")


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    configure("publisher", options(log_level="quiet", log_format="text"))
    logging.getLogger("x").critical("the end")
    assert capsys.readouterr().err == ""


def test_configuring_twice_logs_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure("a", options(log_level="info", log_format="text"))
    configure("b", options(log_level="info", log_format="text"))
    logging.getLogger("x").info("once")
    assert capsys.readouterr().err.count("once") == 1


@pytest.mark.parametrize("level", LEVELS)
def test_salts_levels_are_known(level: str) -> None:
    configure("a", options(log_level=level, log_format="text"))
    assert logging.getLogger().level == LEVELS[level]


@pytest.mark.parametrize(
    ("level", "form", "says"),
    [
        ("verbose", "text", "log_level must be one of quiet, .*, not 'verbose'"),
        ("info", "xml", "log_format must be text or json, not 'xml'"),
    ],
)
def test_unknown_words_are_refused(level: str, form: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        configure("a", options(log_level=level, log_format=form))


def _lines(path: Path) -> list[str]:
    for handler in logging.getLogger().handlers:
        handler.flush()
    return path.read_text().splitlines()


def test_a_log_file_has_salts_format_and_its_own_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "salt/minion"
    configure("minion", options(log_level="error", log_file=str(path), log_level_logfile="info"))
    logging.getLogger("statecore.x").info("first\nsecond")
    assert capsys.readouterr().err == ""
    first, second = _lines(path)
    assert re.fullmatch(r"[\d-]{10} [\d:]{8},\d{3} \[statecore\.x +:\d+ *\]\[INFO +\]\[\d+\] first", first)
    assert second == "  second"


def test_levels_of_single_loggers(capsys: pytest.CaptureFixture[str]) -> None:
    configure("a", options(log_level="debug", log_granular_levels={"deep.own": "error"}))
    logging.getLogger("deep.own.module").warning("left out")
    logging.getLogger("deep.own.module").error("kept")
    assert [line.rpartition("] ")[2] for line in capsys.readouterr().err.splitlines()] == ["kept"]


def test_a_single_logger_may_say_more_than_the_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log"
    levels = {"salt.state": "debug", "deep.own": "trace", "deep.own.quiet": "error"}
    configure(
        "a", options(log_level="warning", log_granular_levels=levels, log_file=str(path), log_level_logfile="error")
    )
    for name in ("statecore.engine.drive", "deep.own", "deep.own.quiet", "deep.other"):
        logging.getLogger(name).setLevel(logging.getLogger(name).level)
        logging.getLogger(name).debug("%s debug", name)
        logging.getLogger(name).error("%s error", name)
    shown = [line.rpartition("] ")[2] for line in capsys.readouterr().err.splitlines()]
    wanted = ["statecore.engine.drive debug", "statecore.engine.drive error", "deep.own debug", "deep.own error"]
    assert shown == [*wanted, "deep.own.quiet error", "deep.other error"]
    assert len(_lines(path)) == 6
    for name in ("statecore.engine", "statecore.compile", "statecore.runtime", "deep.own", "deep.own.quiet"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_an_unknown_level_of_a_logger_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"log_granular_levels: salt\.state must be one of"):
        configure("a", options(log_granular_levels={"salt.state": "loud"}))


@pytest.mark.parametrize(
    ("tty", "env", "coloured"),
    [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False)],
)
@pytest.mark.parametrize("form", ["", "%(colorlevel)s %(message)s"])
def test_levels_have_colours_on_a_terminal(
    tty: bool,
    env: dict[str, str],
    coloured: bool,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr.isatty", lambda: tty, raising=False)
    configure("a", options(log_level="info", log_fmt_console=form))
    logging.getLogger("x").error("no")
    assert ("\033[31m[ERROR   ]\033[0m no" in capsys.readouterr().err) is coloured


def test_lines_of_a_job_have_its_jid(capsys: pytest.CaptureFixture[str]) -> None:
    configure("minion", options(log_level="info"))
    tag_job("2026")
    tag_job("2027")
    logging.getLogger("x").info("first\nsecond")
    logging.getLogger("x").info("other", extra={"jid": "1"})
    first, second, other = capsys.readouterr().err.splitlines()
    assert (first.endswith(" first [jid=2027]"), second, other.endswith(" other [jid=1]")) == (True, "  second", True)


def test_the_console_has_salts_format(capsys: pytest.CaptureFixture[str]) -> None:
    form = "%(colorlevel)s %(jid)s <%(minion_id)s> %(colormsg)s"
    configure("a", options(log_level="info", log_fmt_console=form))
    logging.getLogger("x").info("hello", extra={"jid": "2026"})
    logging.getLogger("x").info("again")
    assert capsys.readouterr().err == "[INFO    ] [JID: 2026] <> hello\n[INFO    ]  <> again\n"


def test_a_log_file_that_cannot_be_opened_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    configure("a", options(log_file=str(tmp_path / "file/log")))
    assert "cannot be written" in capsys.readouterr().err


def test_a_log_file_turns_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    configure("a", options(log_file=str(path), log_rotate_max_bytes=200, log_rotate_backup_count=1))
    for number in range(9):
        logging.getLogger("x").warning("line %d with some words in it", number)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1"]


def test_a_syslog(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "dev-log"))
        server.settimeout(10)
        configure("a", options(log_file=f"file://{tmp_path}/dev-log/LOG_DAEMON", log_fmt_logfile="%(message)s"))
        logging.getLogger("x").error("heard")
        assert server.recv(1000) == b"<27>heard\x00"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"log_fmt_console": "%(nothing"}, "log_fmt_console: '%\\(nothing' is no format of log lines"),
        ({"log_granular_levels": {"x": "loud"}}, "log_granular_levels: x must be one of quiet"),
        ({"log_file": "/dev/null", "log_level_logfile": "loud"}, "log_level_logfile must be one of"),
    ],
)
def test_options_that_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        configure("a", options(**given))
