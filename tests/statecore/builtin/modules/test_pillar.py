"""Pillar: paths, merging, compiling anew, masking."""

from __future__ import annotations

import pytest

from statecore.model.errors import CommandError, InvocationError


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value"),
    [
        ("get", ("key",), {}, "value"),
        ("get", ("a:b:c:0",), {}, 1),
        ("get", ("a|b|c|d",), {"delimiter": "|"}, 2),
        ("get", ("nothing",), {}, ""),
        ("get", ("nothing", None), {}, None),
        ("get", ("nothing", [1]), {}, [1]),
        ("get", ("none", 7), {}, None),
        ("get", ("a", {"x": 1, "b": {"y": 2}}), {"merge": True}, {"x": 1, "b": {"y": 2, "c": [1, {"d": 2}]}}),
        ("get", ("nothing", {"x": 1}), {"merge": True}, {"x": 1}),
        ("get", ("a:b:c", [0, 1]), {"merge": True}, [0, 1, {"d": 2}]),
        ("get", ("key", {"x": 1}), {"merge": True}, "value"),
        ("fetch", ("key",), {}, "value"),
        ("item", ("key", "nothing"), {}, {"key": "value", "nothing": ""}),
        ("raw", ("key",), {}, "value"),
        ("keys", ("a:b",), {}, ["c"]),
        ("filter_by", ({"val*": 1}, "key"), {}, 1),
        ("items", (), {}, {"fresh": 1}),
        ("data", (), {}, {"fresh": 1}),
        ("items", (), {"pillar": {"more": 2}}, {"fresh": 1, "more": 2}),
        ("ls", (), {}, ["fresh"]),
        ("obfuscate", (), {}, {"fresh": "<int>"}),
        ("get", ("fresh",), {"pillarenv": "dev"}, 1),
    ],
)
def test_reading(plain, name, args, kwargs, value):
    plain.ports.compiled = {"fresh": 1}
    assert plain.call(f"pillar.{name}", *args, **kwargs) == value


def test_the_environment_asked_for(plain):
    plain.call("pillar.items", pillarenv="dev", saltenv="test")
    assert plain.ports.asked == [("pillar", "test", "dev")]


def test_missing_keys_raise_when_the_option_says_so(plain):
    plain.opts["pillar_raise_on_missing"] = True
    with pytest.raises(CommandError, match="Pillar key not found: nothing"):
        plain.call("pillar.get", "nothing")
    assert plain.call("pillar.get", "nothing", "x") == "x"


@pytest.mark.parametrize(("key", "error"), [("nothing", CommandError), ("key", InvocationError)])
def test_keys_of_what_has_none(plain, key, error):
    with pytest.raises(error):
        plain.call("pillar.keys", key)


MASK = "**********"


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value"),
    [
        ("get", ("a",), {}, {"b": {"c": [MASK, {"d": MASK}]}}),
        ("get", ("a",), {"unmask": True}, {"b": {"c": [1, {"d": 2}]}}),
        ("get", ("none",), {}, None),
        ("get", ("empty",), {}, ""),
        ("get", ("nothing", 5), {}, MASK),
        ("item", ("key",), {}, {"key": MASK}),
        ("raw", ("key",), {}, "value"),
        ("raw", ("key",), {"unmask": False}, MASK),
        ("keys", ("a",), {}, ["b"]),
    ],
)
def test_masked_when_an_operator_asks(plain, name, args, kwargs, value):
    ctx = plain.context()
    ctx.scratch["pillar.mask"] = True
    assert ctx.call(f"pillar.{name}", *args, **kwargs) == value


def test_masking_can_be_switched_off(plain):
    plain.opts["pillar_mask_output"] = False
    ctx = plain.context()
    ctx.scratch["pillar.mask"] = True
    assert ctx.call("pillar.get", "key") == "value"
