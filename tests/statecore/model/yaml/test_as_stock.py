"""The dialects beside PyYAML and beside Salt's own loader: the same values, but for numbers in base 60, which stay texts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from statecore.model import yaml
from tests.conftest import Oracle

_LETTERS = "ab1059 :.-+_exXoEfN?[]{}&*!|>'\"#%\n,<~="


class _Stock(pyyaml.CSafeLoader):
    """PyYAML's loader, which leaves numbers in base 60 as they are written."""


def _or_text(tag: str) -> None:
    usual = pyyaml.CSafeLoader.yaml_constructors[tag]
    made = lambda loader, node: node.value if ":" in node.value else usual(loader, node)  # noqa: E731
    _Stock.add_constructor(tag, made)


_or_text("tag:yaml.org,2002:int")
_or_text("tag:yaml.org,2002:float")

#: Errors of PyYAML and of the values that it builds.
_FAULTS = (pyyaml.YAMLError, ValueError, TypeError, LookupError, OverflowError, AttributeError)


def _outcome(text: str, dialect: yaml.Dialect) -> tuple[str, Any]:
    try:
        return "value", yaml.load(text, dialect)
    except yaml.YamlFault:
        return "error", None


@given(st.text(alphabet=_LETTERS, max_size=30))
def test_plain_yaml_is_pyyamls(text: str) -> None:
    try:
        expected: tuple[str, Any] = ("value", pyyaml.load(text, Loader=_Stock))
    except _FAULTS:
        expected = ("error", None)
    assert repr(_outcome(text, yaml.PLAIN)) == repr(expected)


@given(
    st.from_regex(r"\A[-+]?[0-9_]{1,4}(:[0-9]{1,3}){0,4}(\.[0-9]{0,3})?\Z")
    | st.from_regex(r"\A[-+]?(0[xob]?|\.)?[0-9a-fA-F_]{1,6}(\.[0-9]{0,3})?([eE][-+]?[0-9]{1,3})?\Z")
)
def test_numbers_are_pyyamls(text: str) -> None:
    try:
        expected: tuple[str, Any] = ("value", pyyaml.load(text, Loader=_Stock))
    except _FAULTS:
        expected = ("error", None)
    assert repr(_outcome(text, yaml.PLAIN)) == repr(expected)


#: Asks Salt for the value of each text of a JSON list; prints their ``repr``, or "error".
_ASK = """
import json, sys
import salt.utils.yaml
def value(text):
    try:
        return repr(salt.utils.yaml.safe_load(text))
    except Exception:
        return "error"
print(json.dumps([value(text) for text in json.load(sys.stdin)]))
"""

_SCALARS = (
    "1",
    "0",
    "7",
    ":",
    ".",
    "-",
    "+",
    "_",
    "e",
    "0x",
    "0b",
    "true",
    "no",
    "~",
    "2024-01-02",
    "a",
    "'",
    '"',
    " ",
)


def _texts() -> list[str]:
    chosen = random.Random(38)
    scalars = ["".join(chosen.choices(_SCALARS, k=chosen.randint(1, 5))) for _ in range(1_500)]
    forms = ("{}", "a: {}", "- {}\n- {}", "{{a: {}}}", "{}: b", "[{}, {}]", "a: &x {}\nb: *x", "<<: {{a: {}}}\nb: {}")
    return [
        form.replace("{}", scalar).replace("{{", "{").replace("}}", "}") for scalar in scalars for form in forms[:4]
    ] + [chosen.choice(forms).replace("{}", scalar).replace("{{", "{").replace("}}", "}") for scalar in scalars]


@pytest.mark.oracle
@pytest.mark.parametrize("dialect", [yaml.SALT, yaml.SLS, yaml.ARGUMENT], ids=lambda each: each.documents)
def test_salts_yaml_is_salts(oracle: Oracle, dialect: yaml.Dialect) -> None:
    texts = _texts()
    salts: list[str] = json.loads(oracle.run("python", "-c", _ASK, stdin=json.dumps(texts)))
    differ = []
    for text, expected in zip(texts, salts, strict=True):
        kind, value = _outcome(text, dialect)
        own = repr(value) if kind == "value" else "error"
        # In base 60 a colon is between digits. Its value is compared in test_numbers_are_pyyamls.
        if own != expected and not _has_base_60(text):
            differ.append((text, own, expected))
    assert differ == []


def _has_base_60(text: str) -> bool:
    try:
        return repr(pyyaml.load(text, Loader=_Stock)) != repr(pyyaml.load(text, Loader=pyyaml.CSafeLoader))
    except _FAULTS:
        return False
