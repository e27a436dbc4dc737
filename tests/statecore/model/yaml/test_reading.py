"""YAML as Salt reads it: bounds and error lines. render/test_yaml_as_salt.py compares scalars and messages with Salt."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.model import yaml

READ: dict[str, tuple[str, Any]] = {
    "an octal is a mode: its digits": ("0644", 644),
    "zeros": ("000", 0),
    "signed, with zeros": ("-017", -15),
    "hexadecimal": ("0x1f", 31),
    "underscores": ("1_000", 1000),
    "a date stays a text": ("2024-01-02", "2024-01-02"),
    "yes and no": ("[yes, no, on, off]", [True, False, True, False]),
    "y is a letter": ("y", "y"),
    "a time is no number in base 60": ("12:30:45", "12:30:45"),
    "nor one with a fraction": ("1:30.5", "1:30.5"),
    "nor by its tag": ("!!int 1:30", "1:30"),
    "nothing": ("", None),
    "an alias": ("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}),
    "merged maps: what the map says wins": (
        "b: &x {p: 1, q: 2}\na:\n  <<: *x\n  q: 3\n",
        {"b": {"p": 1, "q": 2}, "a": {"p": 1, "q": 3}},
    ),
    "wherever the merge stands": ("b: &x {p: 1}\na: {p: 3, <<: *x}\n", {"b": {"p": 1}, "a": {"p": 3}}),
    "of merged maps the first": ("<<: [{p: 1}, {p: 2, q: 3}]", {"p": 1, "q": 3}),
    "an ordered map": ("!!omap [{a: 1}, {b: 2}]", {"a": 1, "b": 2}),
    "an ordered map as Salt writes it": ("!!omap {a: 1}", {"a": 1}),
}

FAULTS = {
    "a key twice": (
        "a: 1\nb: 2\na: 3\n",
        3,
        "while constructing a mapping: found conflicting ID 'a'",
    ),
    "a key twice, deep": (
        "x:\n  a: 1\n\n  a: 3\n",
        4,
        "while constructing a mapping: found conflicting ID 'a'",
    ),
    "a tab": ("a:\n\tb: 1\n", 2, "found character that cannot start any token"),
    "two colons": ("a: b: c\n", 1, "mapping values are not allowed in this context"),
    "an open bracket": ("a: [1\nb: 2\n", 2, "while parsing a flow sequence"),
    "indentation": ("a:\n  - b\n c\n", 3, "while parsing a block mapping"),
    "a map as key": ("{a: 1}: 2\n", 1, "while constructing a mapping"),
    "a tag of Python": ("a: !!python/name:os.system\n", 1, "could not determine a constructor for the tag"),
    "a tag of its own": ("a: !vault x\n", 1, "could not determine a constructor for the tag '!vault'"),
    "an alias to nothing": ("a: *x\n", 1, "found undefined alias"),
    "an alias in what it repeats": ("a: &x\n  - 1\n  - *x\n", 3, "the alias '*x' is inside its own anchor"),
    "two documents": ("a: 1\n---\nb: 2\n", 2, "expected a single document in the stream"),
    "no number": ("a: !!int x\n", 0, "a value cannot be read"),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_read(text: str, expected: Any) -> None:
    assert yaml.load(text, yaml.SLS) == expected


@pytest.mark.parametrize(("text", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_faults(text: str, line: int, message: str) -> None:
    with pytest.raises(yaml.YamlFault) as caught:
        yaml.load(text, yaml.SLS)
    assert (caught.value.line, str(caught.value)[: len(message)]) == (line, message)


def test_a_bomb_of_aliases() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 20)]
    with pytest.raises(yaml.YamlFault, match="aliases repeat more than 100000 values"):
        yaml.load("\n".join(["l0: &l0 [x, x, x, x, x, x, x, x, x, x]", *levels]), yaml.SLS)


def test_many_honest_aliases() -> None:
    text = "base: &b {p: 1, q: 2}\n" + "".join(f"k{n}: *b\n" for n in range(2000))
    assert len(yaml.load(text, yaml.SLS)) == 2001


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 5000,
        "- " * 5000 + "x",
        "? " * 5000 + "x",
        "".join(f"{' ' * n}a:\n" for n in range(300)),
        "".join(f"{'  ' * n}a:\n{'  ' * n}-\n" for n in range(150)),
    ],
    ids=["lists", "maps", "entries", "keys", "indentation", "both"],
)
def test_too_deep(text: str) -> None:
    with pytest.raises(yaml.YamlFault, match="nests deeper than 200 levels"):
        yaml.load(text, yaml.SLS)
    assert yaml.key_lines(text) == {}


def test_deep_enough() -> None:
    assert yaml.load("[" * 200 + "]" * 200)
    assert yaml.load("\n".join(f"k{n}: [{{a: [1]}}]" for n in range(500)))["k1"] == [{"a": [1]}]


def test_key_lines() -> None:
    found = yaml.key_lines(
        "x:\n  test.nop:\n    - name: y\n    - function\n    - require:\n      - cmd: z\nlist: [a, b]\n"
    )
    assert found == {
        ("x",): 1,
        ("x", "test.nop"): 2,
        ("x", "test.nop", "name"): 3,
        ("x", "test.nop", "function"): 4,
        ("x", "test.nop", "require"): 5,
        ("x", "test.nop", "require", "cmd"): 6,
        ("list",): 7,
        ("list", "a"): 7,
        ("list", "b"): 7,
    }
    assert yaml.key_lines("a: [") == {}
