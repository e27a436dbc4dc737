"""Texts of peers that would steer a terminal, reorder a line or forge a record of a log."""

from __future__ import annotations

import json
import logging
from datetime import datetime

import pytest

from saltern.cli import eventlisten
from saltern.kit.command.output.color import OFF, fit_for_terminal
from saltern.kit.process.logs import JsonFormatter, TextFormatter
from saltwire.errors import PeerFault
from saltwire.handshake import parse_sign_in
from saltwire.ids import is_minion_id

#: Attack -> characters that do it.
CONTROLS = {
    "a colour": "\x1b[31m",
    "a terminal's title": "\x1b]0;title\x07",
    "a C1 control sequence": "\x9b2J",
    "a carriage return": "\rroot",
    "a line end": "\n2026-01-01 00:00:00,000 mworker [INFO    ] sign-in: accept",
    "a vertical tab": "\x0b",
    "a backspace": "\x08\x08",
    "delete": "\x7f",
    "right to left": "\u202egnp.exe",
    "an isolated direction": "\u2066x\u2069",
    "an Arabic letter mark": "\u061c",
    "a line separator": "\u2028",
    "a paragraph separator": "\u2029",
    "a next line": "\x85",
}

#: Characters that show nothing, so that two ids look the same.
INVISIBLE = {
    "a zero width space": "\u200b",
    "a byte order mark": "\ufeff",
    "a soft hyphen": "\u00ad",
    "a hard space": "\u00a0",
}


def has(text: str, attack: str) -> bool:
    return any(one in text for one in CONTROLS[attack] if not one.isprintable())


@pytest.mark.parametrize("attack", [*CONTROLS, *INVISIBLE])
def test_no_minion_has_such_an_id(attack: str) -> None:
    minion = f"web1{(CONTROLS | INVISIBLE)[attack]}"
    assert not is_minion_id(minion)
    with pytest.raises(PeerFault) as caught:
        parse_sign_in({"id": minion, "pub": "x", "nonce": "0" * 32}, version=3)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("minion", ["web-1.example.com", "a b", "ä", "日本", "web:1"])
@pytest.mark.ordinary
def test_ids_in_any_script_are_allowed(minion: str) -> None:
    assert is_minion_id(minion)


def record(message: str, **fields: str) -> logging.LogRecord:
    made = logging.LogRecord("saltern", logging.INFO, "", 0, "a request was refused: %s", (message,), None)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("attack", CONTROLS)
@pytest.mark.parametrize("where", ["message", "minion"])
def test_a_log_shows_no_control_character(attack: str, where: str) -> None:
    one = record(CONTROLS[attack]) if where == "message" else record("x", minion=CONTROLS[attack])
    first, *others = TextFormatter("mworker").format(one).split("\n")
    assert all(line.startswith("  ") for line in others)
    assert all(line.isprintable() for line in (first, *others))
    line = JsonFormatter("mworker").format(one)
    assert line.isprintable()
    assert json.loads(line)["role"] == "mworker"


@pytest.mark.parametrize("attack", [name for name in CONTROLS if name != "a line end"])
def test_a_terminal_gets_no_control_character(attack: str) -> None:
    assert not has(fit_for_terminal(f"a{CONTROLS[attack]}b", OFF), attack)


@pytest.mark.parametrize("attack", [name for name in CONTROLS if name != "a line end"])
def test_listeners_of_events_show_no_control_character(attack: str) -> None:
    tag = f"site/{CONTROLS[attack]}"
    assert not has(eventlisten.shown(tag, {CONTROLS[attack]: CONTROLS[attack]}, datetime(2026, 1, 1)), attack)


@pytest.mark.ordinary
def test_texts_of_people_stay_as_they_are() -> None:
    text = "grüße, 日本\n\tzweite Zeile"
    assert fit_for_terminal(text, OFF) == text
    assert "grüße, 日本" in TextFormatter("mworker").format(record("grüße, 日本"))
