"""Finding 38.15: texts that a parser reads in more than linear time. CPU time of n and 4n is compared (tests/fuzz/growth.py)."""

from __future__ import annotations

import pytest

from statecore.system.packages.package_versions import deb, rpm
from tests.fuzz.growth import Shape, grows
from tests.fuzz.parsers import PARSERS

#: Longest text in characters: more than a body or an argument of a request has needs no measurement here.
_LONGEST = 131_072

#: (parser, text) that took quadratic time, or takes it in a stock parser.
KNOWN: tuple[tuple[str, Shape], ...] = (
    *((name, Shape(":59", "a: 1")) for name in PARSERS if name.startswith("YAML, ")),
    *((name, Shape(":59", "a: 1", ".5")) for name in PARSERS if name.startswith("YAML, ")),
    *((name, Shape("7", "a: ")) for name in PARSERS if name.startswith("YAML, ")),
    *((name, Shape("%TAG !t# tag:x,#:\n", "", "--- a\n")) for name in PARSERS if name.startswith("YAML, ")),
    *((name, Shape("<<: {}, ", "{", "a: 1}")) for name in PARSERS if name.startswith("YAML, ")),
    *((name, Shape("[")) for name in ("YAML, SLS", "JSON body", "form", "word", "target glob", "target compound")),
    *(
        (name, Shape(":59", "1"))
        for name in ("word", "argument of a request", "argument of a form", "argument by name")
    ),
    ("target glob", Shape("[", "a:", "b")),
    ("target glob", Shape("[a", "]")),
    ("target glob", Shape("*a")),
    ("target glob", Shape("[!]")),
    ("target grain", Shape("[", "os:")),
    ("target compound", Shape("[", "G@os:")),
    ("target compound", Shape("x or ", "", "x")),
    ("target compound", Shape("not ", "", "x")),
    ("target compound", Shape(")")),
    ("target list", Shape("a,")),
    ("target by RE2", Shape("(a+)+")),
    ("date", Shape("1")),
    ("date", Shape(".", "a", "b")),
    ("date", Shape("1.", "a")),
    ("date", Shape("jan ")),
    ("cron", Shape("1,", "", "* * * * *")),
    ("cron", Shape("*/1,", "", " * * * *")),
    ("duration", Shape("1h")),
    ("duration", Shape("1", "", "x")),
    ("filter of jobs", Shape("[")),
    ("filter of jobs", Shape("a,")),
    ("batch", Shape("9", "", "%")),
    ("version condition", Shape(" ", "a", "b")),
    ("version condition", Shape("\t", ">=1", "b")),
    ("version of Salt", Shape("9")),
    ("version of Salt", Shape("9.")),
    ("Debian version", Shape("9")),
    ("Debian version", Shape("~")),
    ("Debian version", Shape("a1")),
    ("RPM version", Shape("~")),
    ("RPM version", Shape("1.")),
    ("RPM version", Shape("9", "", ":1")),
    ("apk version", Shape("_rc1")),
    ("apk version", Shape(".1", "1")),
    ("header Accept", Shape("a/b;q=0.5,")),
    ("header Accept", Shape(";q=1", "a/b")),
    ("header Cookie", Shape("a=1;")),
    ("header Cookie", Shape("\\", 'a="')),
    ("header Content-Type", Shape(" ", "a", ";")),
    ("form", Shape("a=1&")),
    ("form", Shape("%41", "a=")),
    ("form", Shape("+", "a=")),
    ("JSON body", Shape('{"a":')),
    ("JSON body", Shape("9")),
    ("JSON body", Shape("\\u0041", '"', '"')),
    ("JSON body", Shape("9", "1.")),
    ("JWT", Shape(".")),
    ("JWT", Shape("A", "", ".A.A")),
    ("msgpack", Shape("\x01", "\x91")),
    ("masked argument", Shape("://a:")),
    ("masked argument", Shape("--password ")),
    ("masked argument", Shape("password=")),
    ("masked argument", Shape("-----BEGIN ")),
)


@pytest.mark.parametrize(("name", "shape"), KNOWN, ids=[f"{name} {shape.head}{shape.piece}" for name, shape in KNOWN])
def test_a_parser_takes_linear_time(name: str, shape: Shape) -> None:
    assert grows(PARSERS[name], shape, _LONGEST) == ""


@pytest.mark.ordinary
def test_growth_is_seen() -> None:
    """The measurement itself: a stock parser's quadratic time is found."""

    def base_60(text: str) -> int:
        value = 0
        for part in text.split(":"):
            value = value * 60 + int(part or 0)
        return value

    assert "characters take" in grows(base_60, Shape(":59", "1"), 1_000_000)
    assert grows(lambda text: text.split(":"), Shape(":59", "1"), 1_000_000) == ""


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("one", "two", "order"),
    [
        ("1" * 5000, "1" * 5001, -1),
        ("2" * 5000, "1" * 5000, 1),
        ("007", "7", 0),
        ("1:1", "2", 1),
        ("0:1", "1", 0),
        ("1.0~rc1", "1.0", -1),
    ],
)
def test_long_versions_are_compared(one: str, two: str, order: int) -> None:
    assert deb.compare(one, two) == order
    assert rpm.compare(one, two) == order
