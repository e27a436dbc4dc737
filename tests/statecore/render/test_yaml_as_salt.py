"""YAML compared with real Salt's renderer: scalars, maps, merges, tags, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from statecore.model import yaml
from statecore.model.yaml.sls import YamlLoader

#: Plain scalars, one a line.
SCALARS = (Path(__file__).parent / "scalars.txt").read_text("utf-8").splitlines()

DOCUMENTS: dict[str, str] = {
    "maps in lists": "- a: 1\n  b: 2\n- - x\n  - y\n-\n  - z\n",
    "flow": "{a: [1, {b: c}], 'd': \"e\"}",
    "flow over lines": "a: [1,\n  2,\n]\nb: {c: 1,\n  d}\n",
    "blocks": "a: |\n  x\n   y\n\nb: |-\n  x\nc: |+\n  x\n\nd: >\n  x\n  y\n\n  z\ne: >-\n  x\n   y\nf: |2\n    x\n",
    "plain over lines": "a: one\n  two\n\n  three\nb: 'one\n  two'\nc: \"one \\\n  two\"\n",
    "comments": "# x\na: 1 # y\nb: '#'\nc: x#y\n",
    "nothing": "a:\nb: ~\nc: ''\nd: []\ne: {}\n",
    "keys": "1: a\n1.5: b\ntrue: c\nnull: d\n2024-01-01: e\n0644: f\n'1': g\n",
    "explicit keys": "? a\n: 1\n? [x, y]\n: 2\n",
    "a list as key": "? [x]\n: 1\n",
    "a map as key": "{{ a }}: 1\n",
    "braces": "a: {{ b }}\n",
    "aliases": "a: &x [1]\nb: *x\nc: &y {p: *x}\nd: *y\n",
    "a scalar's alias": "a: &x 0644\nb: *x\n*x : c\n",
    "merged": "b: &x {p: 1, q: 2}\na:\n  <<: *x\n  q: 3\n",
    "merged last": "b: &x {p: 1, q: 2}\na:\n  q: 3\n  <<: *x\n",
    "merged twice": "b: &x {p: 1}\nc: &y {q: 2}\na:\n  <<: [*x, *y]\n  r: 3\n",
    "merged in conflict": "b: &x {p: 1}\nc: &y {p: 2, q: 2}\na:\n  <<: [*x, *y]\n",
    "merged over levels": "a: &a {x: 1}\nb: &b\n  <<: *a\n  y: 2\nc:\n  <<: *b\n  x: 3\n",
    "merged from no map": "a: &a [1]\nb:\n  <<: *a\n",
    "merged from a list of no maps": "a: &a 1\nb:\n  <<: [*a]\n",
    "merged numbers": "a: &a {1: x}\nb:\n  <<: *a\n  1: y\n",
    "a key twice": "a: 1\nb: 2\na: 3\n",
    "a key twice, deep": "x:\n  - a: 1\n    a: 2\n",
    "a key twice in flow": "x: {a: 1, a: 2}\n",
    "numbers twice": "1: a\n0x1: b\n",
    "true twice": "true: a\nyes: b\n",
    "one and true": "1: a\ntrue: b\n",
    "null twice": "~: a\nnull: b\n",
    "string and number": "1: a\n'1': b\n",
    "binary": "a: !!binary aGVsbG8=\n",
    "binary without its end": "a: !!binary aGVsbG8\n",
    "a set": "a: !!set {x}\n",
    "pairs": "a: !!pairs [x: 1, x: 2]\n",
    "strings by tag": "a: !!str 5\nb: !!str yes\nc: ! 5\n",
    "numbers by tag": "a: !!int '5'\nb: !!float '1'\nc: !!bool 'yes'\nd: !!null ''\n",
    "octal by tag": "a: !!int '0644'\n",
    "no number": "a: !!int x\n",
    "no boolean": "a: !!bool maybe\n",
    "an ordered map": "!!omap {a: 1, b: 2}\n",
    "a map by tag": "!!map {a: 1}\n",
    "unicode by tag": "a: !!python/unicode x\n",
    "a tag of its own": "a: !vault x\n",
    "a tag of Python": "a: !!python/name:os.system\n",
    "an object of Python": "a: !!python/object/apply:os.system [ls]\n",
    "a tuple of Python": "a: !!python/tuple [1]\n",
    "a timestamp by tag": "a: !!timestamp 2024-01-01\n",
    "tabs": "a:\n\tb: 1\n",
    "a tab behind": "a: 1\t\nb:\t2\n",
    "two colons": "a: b: c\n",
    "no space": "a:b\n",
    "an open bracket": "a: [1\nb: 2\n",
    "an open quote": "a: 'x\nb: 1\n",
    "a wrong indent": "a:\n  - b\n c\n",
    "a list under a map": "a: 1\n- b\n",
    "an unknown alias": "a: *x\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "one document": "---\na: 1\n",
    "one document that ends": "---\na: 1\n...\n",
    "a directive": "%YAML 1.1\n---\na: 1\n",
    "percent": "a: %x\n",
    "an asterisk": "'*':\n  - a\n",
    "a bare asterisk": "*:\n  - a\n",
    "an anchor without value": "a: &x\nb: *x\n",
    "control characters": "a: \x07\n",
    "a zero": "a: \x00\n",
    "line separators": "a: x\u2028y\u0085z\n",
    "a mode in a list": "a:\n  - mode: 0644\n  - dir_mode: 755\n  - x: '0644'\n  - y: 0o644\n",
    "a colon at the end": "a: b:\n",
    "a dash": "a: -\nb: -x\n",
    "question": "a: ?\n",
    "equals": "a: =\n",
    "equals as key": "=: a\n",
    "only a scalar": "text\n",
    "only a list": "- a\n",
    "only nothing": "~\n",
    "false": "false\n",
}

#: Name -> why ours answers otherwise.
DIFFERS: dict[str, str] = {
    **dict.fromkeys(
        ("scalar 12:30", "scalar 12:30:45", "scalar 190:20:30.15", "scalar 24:00"),
        "no number is read in base 60: it is the text as written",
    ),
    "merged in conflict": "of merged maps the first one that has a key gives it, as YAML says; Salt refuses",
}

TEXTS: dict[str, str] = {f"scalar {text}": f"v: {text}\n" for text in SCALARS} | DOCUMENTS


@pytest.fixture(scope="module")
def salts(ask_salt: Any) -> dict[str, Any]:
    files = {f"f{number}.sls": text for number, text in enumerate(TEXTS.values())}
    return dict(zip(TEXTS, ask_salt(files, [["sls", name, "f", {"renderer": "yaml"}] for name in files]), strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("name", TEXTS)
def test_as_salt(name: str, salts: dict[str, Any]) -> None:
    kind, value = salts[name]
    try:
        own = ("value", json.loads(json.dumps(yaml.load(TEXTS[name], yaml.SLS) or {}, default=repr)))
    except yaml.YamlFault as fault:
        own = ("error", str(fault))
    if name in DIFFERS:
        assert own != (kind, value), "no difference any more"
    elif kind == "error":
        assert own[0] == "error", f"Salt refuses it: {value}; ours: {own[1]}"
        assert own[1].split(":")[0] in value or value.split(";")[0] in own[1], value
    else:
        assert _json(own) == _json((kind, value))


def _json(told: Any) -> str:
    # Not a number is not equal to itself.
    return json.dumps(told, sort_keys=True)


#: PyYAML folds Unicode's line ends when it writes them, so that it does not read them itself.
_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x85\u2028\u2029"))
_PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), _TEXT)
_DATA = st.recursive(
    _PLAIN, lambda inner: st.lists(inner) | st.dictionaries(_TEXT | st.integers(), inner), max_leaves=20
)


@given(_DATA, st.booleans())
def test_what_is_written_is_read(data: Any, flow: bool) -> None:
    assert yaml.load(pyyaml.safe_dump(data, default_flow_style=flow, allow_unicode=True), yaml.SLS) == data


@given(st.text(alphabet="ab1 0:-?[]{}&*!|>'\"#%\n,<~.x", max_size=40))
def test_the_quick_way_is_the_usual_way(text: str) -> None:
    """The event builder makes the same values, and refuses the same texts, as PyYAML with the same rules."""
    try:
        usual = ("value", pyyaml.load(text, Loader=YamlLoader))
    except (pyyaml.YAMLError, ValueError, TypeError, LookupError):
        usual = ("error", None)
    try:
        own = ("value", yaml.load(text, yaml.SLS))
    except yaml.YamlFault:
        own = ("error", None)
    assert repr(own) == repr(usual)
