"""Plain documents have the same value when built from events and from nodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecore.model import yaml
from statecore.model.yaml import YamlFault, load, plain_events, sls

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_DATA = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=20,
)


def from_events(text: str) -> Any:
    return plain_events.build(sls.YamlLoader(text), sls._PLAIN, sls.YamlLoader.yaml_implicit_resolvers)


def from_nodes(text: str) -> Any:
    loader = sls.YamlLoader(text)
    node = loader.get_single_node()
    return None if node is None else sls._Builder(loader, aliases=True).value(node)


@given(data=_DATA, flow=st.sampled_from([True, False, None]))
def test_both_ways_give_the_same(data: Any, flow: bool | None) -> None:
    text = yaml.dump(data, default_flow_style=flow, allow_unicode=True)
    try:
        found = from_events(text)
    except plain_events.NotPlain:
        # A key that is too long, or a text that is tagged: the nodes know what to do.
        return
    assert found == from_nodes(text)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "a", "a: 0644", "a: 2026-11-21", "- ~", "{a: [b, {c: yes}]}", "'1': 1\n1: 2"]
)
def test_plain(text: str) -> None:
    assert from_events(text) == from_nodes(text) == load(text, yaml.SLS)


NOT_PLAIN = {
    "an anchor": "a: &x 1\nb: *x",
    "an alias": "a: &x [1]\nb: *x",
    "a merge": "x: &x {a: 1}\ny:\n  <<: *x\n  b: 2",
    "a tag": "a: !!str 1",
    "a binary": "a: !!binary aGVsbG8=",
    "a set": "!!set {a, b}",
    "a list as a key": "? [a]\n: 1",
    "two documents": "a: 1\n---\nb: 2",
    "a key twice": "a: 1\na: 2",
}


@pytest.mark.parametrize("text", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_what_is_not_plain_is_left_to_the_nodes(text: str) -> None:
    with pytest.raises(plain_events.NotPlain):
        from_events(text)


def test_a_fault_is_told_with_its_line() -> None:
    with pytest.raises(YamlFault) as caught:
        load("a: 1\nb: [\n", yaml.SLS)
    assert caught.value.line == 3
