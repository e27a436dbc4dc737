"""Log lines: for people and for machines, with what they are about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from saltern.kit.config.master import ConfigError
from saltern.kit.process.logs import LEVELS, configure


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
    configure("mworker", "info", "json")
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


def test_text_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure("publisher", "warning", "text")
    logging.getLogger("x").warning("away", extra={"jid": "2026", "minion": "web1"})
    logging.getLogger("x").info("not shown")
    line = capsys.readouterr().err
    assert line.endswith("publisher [WARNING ] away [jid=2026 minion=web1]\n")


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    configure("publisher", "quiet", "text")
    logging.getLogger("x").critical("the end")
    assert capsys.readouterr().err == ""


def test_configuring_twice_logs_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure("a", "info", "text")
    configure("b", "info", "text")
    logging.getLogger("x").info("once")
    assert capsys.readouterr().err.count("once") == 1


@pytest.mark.parametrize("level", LEVELS)
def test_salts_levels_are_known(level: str) -> None:
    configure("a", level, "text")
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
        configure("a", level, form)
