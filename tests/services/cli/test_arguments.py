"""Words of a command line become the values that real Salt makes of them."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from saltern.kit.command.arguments import on_the_wire, parse_arguments, value_of

WORDS = [
    *("hello", "a b", "/etc/passwd", "web*", "a.b.c", "pkg-name", "1.2.3", "10.0.0.1", "::1", "fe80::1/64", "C:\\x"),
    *(
        "1",
        "-1",
        "+1",
        "0",
        "00",
        "007",
        "0644",
        "0o17",
        "0x1f",
        "0b11",
        "1_000",
        "_1",
        "1_",
        "1e3",
        "1.5",
    ),
    *(
        "1.",
        ".5",
        "1.5e3",
        ".inf",
        "-.inf",
        "1e",
        "1.0e+3",
        "9" * 19,
        "9" * 20,
        "20260101000000000000",
        "9" * 30,
        "-" + "9" * 20,
    ),
    *(
        "true",
        "True",
        "TRUE",
        "tRUE",
        "false",
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "n",
        "null",
        "Null",
        "None",
        "none",
        "~",
        "~x",
    ),
    *(
        "",
        " ",
        "   ",
        "---",
        "...",
        "--- a",
        "|",
        "!",
        "!x",
        "&a",
        "*a",
        "%x",
        "@x",
        "`x",
        ">",
        "?",
        ":",
        "-",
        "- a",
        "a:",
        "a: b",
    ),
    *(
        "[]",
        "[1, a, true]",
        "[1, [2, {a: b}]]",
        "[1,",
        "{}",
        "{a: 1}",
        "{a: 1, a: 2}",
        "{a: {b: [c]}}",
        "{a",
        " [1]",
        " {a: 1}",
    ),
    *(
        "#",
        "#x",
        "a #b",
        "a#b",
        "[1] # x",
        "5 # five",
        " # x",
        "'quoted'",
        '"quoted"',
        '"a\\tb"',
        "'1'",
        '"1',
        "a'b",
        "it's",
    ),
    *(
        "2020-01-01",
        "2020-01-01 10:00:00",
        "[2020-01-01]",
        "!!str 1",
        "!!int '3'",
        "!!binary aGk=",
        "!!set {a, b}",
        "<<",
        "=",
    ),
    *(
        "a\tb",
        "a\nb",
        "k=a\nb",
        "a\rb",
        "naïve",
        "☃",
        "a=b",
        "a=1",
        "a=[1, 2]",
        "a={x: y}",
        "a=",
        "a==b",
        "a=b=c",
        "1a=b",
        "a-b=c",
    ),
    *(
        "a.b=c",
        "é=1",
        "=x",
        "a =b",
        "a= b",
        "test=True",
        "name=None",
        "k=0644",
        "k=20260101000000000000",
        "_x=1",
        "a@b=c",
    ),
    *(
        "pillar={'a': 'b'}",
        "mods=a,b",
        "a, b",
        "a,b",
        "x=yes",
        "ls -l",
        "ls -l # all",
        "echo a: b",
        "G@os:Debian",
        "foo:bar",
    ),
]


@pytest.fixture
def salt(oracle: object) -> Iterator[Callable[[list[str]], Any]]:
    python = Path(os.environ["SALTERN_ORACLE"]) / "bin" / "python"
    script = Path(__file__).with_name("salt_arguments.py")
    process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(words: list[str]) -> Any:
        process.stdin.write(json.dumps(words) + "\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        return process.stdout.readline().rstrip("\n")  # type: ignore[union-attr]

    yield ask
    process.communicate(timeout=20)


def ours(words: list[str]) -> str:
    return repr(on_the_wire(*parse_arguments(words)))


@pytest.mark.oracle
def test_words_are_read_as_salt_reads_them(salt: Callable[[list[str]], str]) -> None:
    different = [(word, expected, ours([word])) for word in WORDS if (expected := salt([word])) != ours([word])]
    assert not different
    assert ours(WORDS) == salt(WORDS)


@pytest.mark.oracle
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(word=st.text(st.sampled_from("ab01 .:-_=#[]{},'\"!&*|>%@~yYesnNoftrul/+\\"), max_size=9) | st.text(max_size=6))
def test_random_words_are_read_as_salt_reads_them(salt: Callable[[list[str]], str], word: str) -> None:
    # No number is read in base 60 here (docs/differences.md).
    assume(not re.search(r"[0-9_]:[0-5]?[0-9]", word))
    assert ours([word]) == salt([word])


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("web1", "web1"),
        ("12:30", "12:30"),
        ("1:30:00", "1:30:00"),
        ("1:1", "1:1"),
        ("0644", 644),
        ("[1, a]", [1, "a"]),
        ("{a: 1}", {"a": 1}),
        ("a: 1", "a: 1"),
        ("None", None),
        ("true", True),
        ("1.5", 1.5),
        ("a #b", "a #b"),
        ("2020-01-01", "2020-01-01"),
    ],
)
def test_value(word: str, value: Any) -> None:
    found = value_of(word)
    assert (type(found), found) == (type(value), value)


def test_arguments_split_into_positional_and_keyword() -> None:
    positional, keyword = parse_arguments(["a", "n=1", "m=1", "20260101000000000000"], no_parse=["m"])
    assert positional == ["a", "20260101000000000000"]
    assert keyword == {"n": 1, "m": "1"}
    assert on_the_wire(positional, keyword)[-1] == {"__kwarg__": True, "n": 1, "m": "1"}
    assert on_the_wire(["a"], {}) == ["a"]


def test_literals_are_what_repr_shows() -> None:
    assert ast.literal_eval(ours(["k={a: [1, x]}"])) == [{"__kwarg__": True, "k": {"a": [1, "x"]}}]
