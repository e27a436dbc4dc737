"""Walking and merging nested values."""

from __future__ import annotations

import pytest

from statecore.model.errors import InvocationError
from statecore.model.values import filter_by, merge, traverse, update

DATA = {"a": {"b": 1, "n": None}, "list": ["x", {"k": "v"}, {2: "two"}], 8080: "port", "t": {True: "yes"}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a:b", 1),
        ("a:n", None),
        ("a", {"b": 1, "n": None}),
        ("a:b:c", "default"),
        ("nothing", "default"),
        ("list:0", "x"),
        ("list:k", "v"),
        ("list:2", "two"),
        ("list:9", "default"),
        ("list:nokey", "default"),
        ("8080", "port"),
        ("t:true", "yes"),
        ("a:[", "default"),
        (8080, "port"),
        ("", "default"),
    ],
)
def test_traverse(path, value):
    assert traverse(DATA, path, "default") == value


def test_traverse_with_another_delimiter():
    assert traverse({"a:b": {"c": 1}}, "a:b|c", delimiter="|") == 1


A = {"foo": {"bar": 1, "qux": True}, "hosts": ["a", "b"], "x": None}
B = {"foo": {"baz": 2, "qux": False}, "hosts": ["b", "c"], "y": 1}


@pytest.mark.parametrize(
    ("strategy", "lists", "merged"),
    [
        ("recurse", False, {"foo": {"bar": 1, "qux": False, "baz": 2}, "hosts": ["b", "c"], "x": None, "y": 1}),
        ("smart", True, {"foo": {"bar": 1, "qux": False, "baz": 2}, "hosts": ["a", "b", "c"], "x": None, "y": 1}),
        ("overwrite", False, {"foo": {"baz": 2, "qux": False}, "hosts": ["b", "c"], "x": None, "y": 1}),
        (
            "aggregate",
            False,
            {"foo": {"qux": False, "baz": 2}, "hosts": ["b", "c"], "x": None, "y": 1},
        ),
        ("list", False, {"foo": [A["foo"], B["foo"]], "hosts": [["a", "b"], ["b", "c"]], "x": None}),
    ],
)
def test_merge(strategy, lists, merged):
    before = repr((A, B))
    assert merge(A, B, strategy, lists=lists) == merged
    assert repr((A, B)) == before


def test_merge_by_an_unknown_strategy():
    with pytest.raises(InvocationError, match="Unknown merging strategy 'best'; there are smart, recurse"):
        merge({}, {}, "best")


def test_update_does_not_share_what_it_takes():
    new = {"a": {"b": []}}
    base = update({}, new)
    base["a"]["b"].append(1)
    assert new == {"a": {"b": []}}


@pytest.mark.parametrize(
    ("table", "kwargs", "chosen"),
    [
        ({"Debian": "d", "RedHat": "r"}, {}, "d"),
        ({"Deb*": "d"}, {}, "d"),
        ({"x": 1, "default": 2}, {}, 2),
        ({"x": 1}, {}, None),
        ({"x": 1}, {"default": "x"}, 1),
        ({"Debian": {"a": 1}}, {"override": {"a": 2, "b": 3}}, {"a": 2, "b": 3}),
        ({"x": 1}, {"override": {"a": 2}}, {"a": 2}),
        ({"Debian": {"a": 1}, "default": {"a": 0, "b": 0}}, {"base": "default"}, {"a": 1, "b": 0}),
        ({"default": {"b": 0}}, {"base": "default"}, {"b": 0}),
    ],
)
def test_filter_by(table, kwargs, chosen):
    assert filter_by(table, "os", {"os": "Debian"}, **kwargs) == chosen


def test_filter_by_takes_the_first_of_a_list_that_matches():
    assert filter_by({"db": 1, "web": 2}, "roles", {"roles": ["x", "web", "db"]}) == 2


def test_filter_by_refuses_what_cannot_be_merged():
    with pytest.raises(InvocationError):
        filter_by({"Debian": "text", "base": {"a": 1}}, "os", {"os": "Debian"}, base="base")
