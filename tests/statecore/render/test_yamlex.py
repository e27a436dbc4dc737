"""The renderer ``yamlex`` and the values that it marks, beside real Salt."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from statecore.model.errors import SlsError
from statecore.runtime.runtime import Runtime, local_runtime
from tests.statecore.pillar.conftest import GRAINS

from .conftest import fault_of

_P = "placeholder: "

#: Name -> YAML that both read.
TEXTS: dict[str, str] = {
    "plain": "foo: bar\nn: [1, null, true, 1.5]\n",
    "aggregated values": "a: lol\nfoo: !aggregate hello\nbar: !aggregate [1, 2]\nbaz: !aggregate\n  a: 42\n  c: x y\n",
    "scalars": f"{_P}!aggregate foo\n{_P}!aggregate bar\n{_P}!aggregate foo\n",
    "lists": f"{_P}!aggregate foo\n{_P}!aggregate [bar, baz]\n{_P}!aggregate []\n{_P}!aggregate ~\n",
    "maps": f"{_P}!aggregate {{foo: 42}}\n{_P}!aggregate {{bar: null}}\n{_P}!aggregate {{baz: inga}}\n",
    "deep": f"{_P}{{foo: !aggregate {{foo: 42}}}}\n{_P}{{foo: !aggregate {{bar: null}}}}\n{_P}{{foo: !aggregate {{b: 1}}}}\n",
    "on keys": f"{_P}{{!aggregate foo: {{foo: 42}}}}\n{_P}{{!aggregate foo: {{bar: null}}}}\n",
    "reset": f"{_P}{{!aggregate foo: {{foo: 42}}}}\n!reset {_P}{{!aggregate foo: {{baz: inga}}}}\n",
    "reset a value": f"{_P}!aggregate [1]\n{_P}!reset [2]\n",
    "repeated keys": "a: 1\na: 2\nb: {x: 1}\nb: {y: 2}\n",
    "mixed": "b: {x: 1}\nb: !aggregate {y: 2}\nc: !aggregate {x: 1}\nc: 4\nd: 1\nd: !aggregate x\n",
    "numbers": "a: 0644\nb: 010\nc: 0\nd: 00\ne: 1_000\nf: -3\ng: !aggregate 010\n",
    "dates and words": "a: 2020-01-02\nb: yes\nc: ~\nd: !!binary aGk=\n",
    "anchors": "base: &b {x: 1, y: 2}\na:\n  <<: *b\n  y: 3\nc: *b\n",
    "nested aggregates": "a: !aggregate {l: !aggregate [1]}\na: !aggregate {l: !aggregate [2], m: 1}\n",
    "empty": "",
    "list": "- 1\n- !aggregate x\n",
}

FAULTS: dict[str, tuple[str, int]] = {
    "tab": ("a:\n\tb: 1\n", 3),
    "open": ("a: [1\n", 3),
    "other tag": ("a: !other x\n", 2),
    "map as a key": ("? {a: 1}\n: 2\n", 2),
}

#: Two pillar files, merged with an option.
PILLARS = {
    "b.sls": "a: first\nb: !aggregate first\nc:\n  k1: first\n  k2: !aggregate first\nl: [1]\nm: !aggregate {x: 1}\n",
    "c.sls": "a: second\nb: !aggregate second\nc:\n  k2: !aggregate second\n  k3: second\nl: [2]\nm: !aggregate {y: 2}\n",
}


@pytest.fixture(scope="module")
def files() -> dict[str, str | bytes]:
    """Files whose first line names the renderer."""
    texts = {f"t{at}.sls": f"#!yamlex\n{text}" for at, text in enumerate(TEXTS.values())}
    faults = {f"f{at}.sls": f"#!yamlex\n{text}" for at, (text, _) in enumerate(FAULTS.values())}
    return {**texts, **faults, "pair.sls": "#!yamlex_jinja\na: !aggregate {{ 1 }}\na: !aggregate 2\n"}


@pytest.fixture(scope="module")
def salts(ask_salt: Any, files: Mapping[str, str | bytes]) -> dict[str, Any]:
    """Map of name to Salt's result."""
    names = list(files)
    return dict(zip(names, ask_salt(files, [["sls", name, name[:-4], {}] for name in names]), strict=True))


def _own(runtime: Runtime, name: str) -> Any:
    tree = runtime.contexts.run_context({}).tree
    try:
        return json.loads(json.dumps(tree._data(tree.source(name[:-4], "base")), default=repr))
    except SlsError as error:
        return error


@pytest.mark.oracle
@pytest.mark.parametrize("at", range(len(TEXTS)), ids=TEXTS)
def test_as_salt(
    at: int, salts: Mapping[str, Any], files: Mapping[str, str | bytes], own_runtime: Callable[..., Runtime]
) -> None:
    assert ["value", _own(own_runtime(files), f"t{at}.sls")] == list(salts[f"t{at}.sls"])


@pytest.mark.oracle
def test_the_old_pair(salts: Mapping[str, Any], files: Mapping[str, str], own_runtime: Callable[..., Runtime]) -> None:
    assert _own(own_runtime(files), "pair.sls") == salts["pair.sls"][1] == {"a": [1, 2]}


@pytest.mark.oracle
@pytest.mark.parametrize("first", ["[1]", "!aggregate [1]"])
def test_a_list_over_another(first: str, own_runtime: Callable[..., Runtime], ask_salt: Any) -> None:
    """Salt's list is empty: it copies the later list before that is read."""
    files = {"a.sls": f"#!yamlex\na: {first}\na: [2]\n"}
    assert _own(own_runtime(files), "a.sls") == {"a": [2]}
    assert ask_salt(files, [["sls", "a.sls", "a", {}]]) == [("value", {"a": []})]


@pytest.mark.parametrize("at", range(len(FAULTS)), ids=FAULTS)
def test_faults(at: int, files: Mapping[str, str | bytes], own_runtime: Callable[..., Runtime]) -> None:
    tree = own_runtime(files).contexts.run_context({}).tree
    place, _, _ = fault_of(lambda: tree.render(f"f{at}", "base"))
    assert place == f"f{at}.sls:{list(FAULTS.values())[at][1]}"


@pytest.mark.oracle
@pytest.mark.parametrize("at", range(len(FAULTS)), ids=FAULTS)
def test_salt_fails_too(at: int, salts: Mapping[str, Any]) -> None:
    assert salts[f"f{at}.sls"][0] == "error"


@pytest.mark.oracle
@pytest.mark.parametrize(
    "function",
    [
        ["slsutil.merge", [{"l": [1]}, {"l": [2], "m": 1}], {"strategy": "aggregate"}],
        ["slsutil.merge", [{"l": {"a": 1}}, {"l": {"b": 2}}], {"strategy": "aggregate"}],
        ["slsutil.merge", [{"l": {"a": 1}}, {"l": {"b": 2}}], {"renderer": "yamlex_jinja"}],
        ["slsutil.renderer", [], {"string": "#!yamlex\na: !aggregate 1\na: !aggregate 2\n"}],
    ],
    ids=str,
)
def test_functions_as_salt(function: list[Any], ask_salt: Any, own_runtime: Callable[..., Runtime]) -> None:
    ((kind, value),) = ask_salt({}, [["call", *function]])
    assert kind == "value", value
    assert own_runtime({}).call(*function).value == value


@pytest.mark.parametrize(
    ("opts", "expected"),
    [
        ({"pillar_source_merging_strategy": "aggregate"}, None),
        ({"renderer": "yamlex"}, None),
        ({"renderer": "jinja|yamlex"}, None),
        (
            {},
            {
                "a": "second",
                "b": ["second"],
                "c": {"k1": "first", "k2": ["second"], "k3": "second"},
                "l": [2],
                "m": {"x": 1, "y": 2},
            },
        ),
    ],
)
def test_pillar(opts: Mapping[str, Any], expected: Any, tmp_path: Any) -> None:
    """Values that yamlex marked are joined across pillar files with the strategy "aggregate"."""
    aggregated = {
        "a": "second",
        "b": ["first", "second"],
        "c": {"k2": ["first", "second"], "k3": "second"},
        "l": [2],
        "m": {"x": 1, "y": 2},
    }
    (tmp_path / "top.sls").write_text("#!yaml\nbase:\n  '*':\n    - b\n    - c\n")
    for name, text in PILLARS.items():
        (tmp_path / name).write_text(f"#!yamlex\n{text}")
    runtime = local_runtime(
        {"id": "web1", "pillar_roots": {"base": [str(tmp_path)]}, "cachedir": str(tmp_path / "cache"), **opts},
        grains=GRAINS,
    )
    assert dict(runtime.pillar) == (aggregated if expected is None else expected)
