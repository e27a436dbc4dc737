"""Jinja filters: cases that cannot be compared with real Salt. test_filters_as_salt.py compares the others."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest

from statecore.render.filters import FILTERS, TESTS
from statecore.render.jinja.sandbox import TreeEnvironment
from statecore.sources.local_tree import LocalFiles


def applied(name: str, arguments: tuple[Any, ...]) -> Any:
    """Return the result of a filter of a template's environment."""
    environment = TreeEnvironment(LocalFiles({}), "base", {}, {})
    context = environment.template("", None, None, {}).new_context()
    return environment.call_filter(name, arguments[0], arguments[1:], context=context)


GIVEN: list[tuple[str, tuple[Any, ...], Any]] = [
    ("set_dict_key_value", ({"a": 1}, "b:c", 2), {"a": 1, "b": {"c": 2}}),
    ("append_dict_key_value", ({"a": {"b": [1]}}, "a:b", 2), {"a": {"b": [1, 2]}}),
    ("append_dict_key_value", ({}, "a:b", 2), {"a": {"b": [2]}}),
    ("extend_dict_key_value", ({"a": [1]}, "a", [2, 3]), {"a": [1, 2, 3]}),
    ("update_dict_key_value", ({"a": {"b": 1}}, "a", {"c": 2}), {"a": {"b": 1, "c": 2}}),
    ("intersect", ((1, 2), (2, 3)), {2}),
    ("difference", ("ab", "bc"), {"a"}),
    ("union", ((1,), (2,)), {1, 2}),
    ("symmetric_difference", ((1, 2), (2, 3)), {1, 3}),
    ("unique", ({1, 2},), {1, 2}),
    ("avg", ([],), 0.0),
    ("avg", (4,), 4.0),
    ("min", ([3, 1],), 1),
    ("max", ([3, 1],), 3),
    ("skip", ("x",), ""),
    ("ipwrap", (["::1", "192.0.2.1", "x"],), ["[::1]", "192.0.2.1", "x"]),
    ("ipaddr", (["192.0.2.1", "127.0.0.1"], "loopback"), ["127.0.0.1"]),
    ("ipaddr", ("x",), None),
    ("ip_host", ("192.0.2.1/24",), "192.0.2.1/24"),
    ("filter_by_networks", (["192.0.2.1", "10.0.0.1"], ["10.0.0.0/8"]), ["10.0.0.1"]),
    ("filter_by_networks", ({"eth0": ["10.0.0.1"]}, ["10.0.0.0/8"]), {"eth0": ["10.0.0.1"]}),
    ("filter_by_networks", (["192.0.2.1"], None), ["192.0.2.1"]),
    ("human_to_bytes", ("2g",), 2147483648),
    ("human_to_bytes", ("1.5KiB",), 1536),
    ("human_to_bytes", ("lots",), 0),
    ("human_to_bytes", ("3", "M"), 3145728),
    ("compress", ("abc", [1, 0, 1]), ["a", "c"]),
    ("combinations_with_replacement", ("ab", 2), [("a", "a"), ("a", "b"), ("b", "b")]),
    ("check_whitelist_blacklist", ("x", ["x"], ["x"]), False),
    ("check_whitelist_blacklist", ("web1", "web[0-9]"), True),
    ("check_whitelist_blacklist", ("x", "["), False),
    ("xml", ({"a": {"k": 1, "b": [1, 2]}},), '<?xml version="1.0" ?>\n<a k="1">\n <b>1</b>\n <b>2</b>\n</a>\n'),
    ("xml", ([("a", "x")],), '<?xml version="1.0" ?>\n<a>x</a>\n'),
    ("from_entries", ([{"Name": "a", "Value": 1}, {"other": 1}],), {"a": 1}),
    ("to_entries", (["x"],), [{"key": 0, "value": "x"}]),
    ("traverse", ({"a": [{"b": 1}]}, "a:0:b"), 1),
    ("to_bytes", ("é",), "é".encode()),
    ("yaml_encode", (None,), "null"),
    ("dict_to_sls_yaml_params", ({"a": 1, "b": [2]}, True), "[{a: 1}, {b: [2]}]"),
]

REFUSED: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("yaml_encode", ([1],), TypeError, "yaml_encode takes a single value"),
    ("method_call", ("x", "__class__"), jinja2.exceptions.SecurityError, "'__class__' is not a public method"),
    ("xml", (5,), jinja2.TemplateRuntimeError, "Value is not a dict or list. Cannot render as XML"),
    ("xml", ({},), jinja2.TemplateRuntimeError, "an empty value has no XML"),
    ("to_entries", ("x",), jinja2.TemplateRuntimeError, "Input data must be a dict or list"),
    ("load_json", ("{",), jinja2.TemplateRuntimeError, "Unable to load json from {"),
    (
        "strftime",
        ("soon",),
        ValueError,
        "strftime cannot parse the time 'soon'; write it in ISO 8601 (2024-12-31T23:59:59)",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), GIVEN)
def test_given(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    value = applied(name, arguments)
    assert (list(value) if isinstance(expected, list) and not isinstance(value, str | dict) else value) == expected


@pytest.mark.parametrize(("name", "arguments", "error", "message"), REFUSED)
def test_refused(name: str, arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        applied(name, arguments)
    assert str(caught.value).startswith(message)


def test_random_values() -> None:
    assert FILTERS["random_str"](40) != FILTERS["rand_str"](40)
    assert len(FILTERS["random_hash"](10, "sha512")) == 128
    assert sorted(FILTERS["random_shuffle"]([1, 2, 3], seed="web1")) == [1, 2, 3]
    assert FILTERS["random_shuffle"]("abcdef", seed="x") == FILTERS["random_shuffle"]("abcdef", seed="x")
    assert set(FILTERS["random_sample"]([1, 2, 3], 2)) < {1, 2, 3}


def test_tests() -> None:
    assert TESTS["match"]("ABC", "a", ignorecase=True)
    assert not TESTS["match"]("abc", "b")
    assert TESTS["list"]([])
    assert not TESTS["list"]("x")
