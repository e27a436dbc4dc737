"""Grains: reading, and setting those of the static file."""

from __future__ import annotations

import pytest
import yaml

from statecore.model.errors import CommandError, InvocationError


@pytest.fixture
def kept(plain):
    """Reads the static grains file."""
    return lambda: yaml.safe_load((plain.directory / "grains").read_text())


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value"),
    [
        ("get", ("os",), {}, "Debian"),
        ("get", ("roles:0",), {}, "web"),
        ("get", ("nothing",), {}, ""),
        ("get", ("nothing", None), {}, None),
        ("fetch", ("os",), {}, "Debian"),
        ("has_value", ("os",), {}, True),
        ("has_value", ("nothing",), {}, False),
        ("item", ("os", "nothing"), {}, {"os": "Debian", "nothing": ""}),
        ("item", ("id",), {"sanitize": True}, {"id": "MINION.DOMAINNAME"}),
        ("ls", (), {}, ["id", "os", "os_family", "roles"]),
        ("equals", ("os", "Debian"), {}, True),
        ("filter_by", ({"Debian": {"p": "apache2"}, "RedHat": {"p": "httpd"}},), {}, {"p": "apache2"}),
        ("filter_by", ({"Debian": {"p": 1}},), {"merge": {"p": 2}}, {"p": 2}),
    ],
)
def test_reading(plain, name, args, kwargs, value):
    assert plain.call(f"grains.{name}", *args, **kwargs) == value


def test_items(plain):
    assert plain.call("grains.items") == plain.grains


def test_setting_writes_the_file_and_refreshes(plain, kept):
    ctx = plain.context()
    assert ctx.call("grains.setval", "k", {"a": 1}) == {"k": {"a": 1}}
    assert kept() == {"k": {"a": 1}}
    assert ctx.call("grains.get", "k:a") == 1
    assert plain.ports.asked == ["refresh_grains", "refresh_pillar"]


def test_what_was_kept_stays(plain, kept):
    plain.call("grains.setval", "a", 1)
    plain.call("grains.setvals", {"b": 2, "c": 3})
    plain.call("grains.delkey", "b")
    assert kept() == {"a": 1, "c": 3}


def test_lists(plain, kept):
    ctx = plain.context()
    assert ctx.call("grains.append", "roles", "db") == {"roles": ["web", "db"]}
    assert ctx.call("grains.append", "roles", "db") == "The val db was already in the list roles"
    assert ctx.call("grains.append", "os", "x") == "The key os is not a valid list"
    assert ctx.call("grains.append", "os", "x", convert=True) == {"os": ["Debian", "x"]}
    assert ctx.call("grains.append", "deep:er:list", [1, 2]) == {"deep": {"er": {"list": [1, 2]}}}
    assert ctx.call("grains.remove", "roles", "web") == {"roles": ["db"]}
    assert ctx.call("grains.remove", "roles", "web") == "The val web was not in the list roles"
    assert kept()["roles"] == ["db"]


@pytest.mark.parametrize(
    ("key", "value", "kwargs", "result", "changes"),
    [
        ("os", "Debian", {}, True, {}),
        ("new", 1, {}, True, {"new": 1}),
        ("os", "Other", {}, True, {"os": "Other"}),
        ("roles", "x", {}, False, {}),
        ("roles", "x", {"force": True}, True, {"roles": "x"}),
        ("os", {"a": 1}, {}, False, {}),
        ("os", {"a": 1}, {"force": True}, True, {"os": {"a": 1}}),
        ("a:b:c", 1, {}, True, {"a": {"b": {"c": 1}}}),
        ("a|b", 1, {"delimiter": "|"}, True, {"a": {"b": 1}}),
        ("os:x", 1, {}, False, {}),
        ("os:x", 1, {"force": True}, True, {"os": {"x": 1}}),
        ("os:Debian", 1, {}, True, {"os": {"Debian": 1}}),
        ("roles:web", 1, {}, True, {"roles": [{"web": 1}]}),
        ("roles:db", 1, {}, True, {"roles": ["web", {"db": 1}]}),
    ],
)
def test_set(plain, key, value, kwargs, result, changes):
    answer = plain.call("grains.set", key, value, **kwargs)
    assert (answer["result"], answer["changes"]) == (result, changes)
    assert answer["comment"] or changes


def test_delval_sets_none(plain, kept):
    plain.call("grains.setval", "a", 1)
    assert plain.call("grains.delval", "os")["changes"] == {"os": None}
    assert kept() == {"a": 1, "os": None}


def test_a_broken_file_is_not_overwritten(plain):
    (plain.directory / "grains").write_text("a: [")
    with pytest.raises(CommandError, match="Unable to read existing grains file"):
        plain.call("grains.setval", "k", 1)
    assert (plain.directory / "grains").read_text() == "a: ["


def test_no_place_for_the_file(plain):
    del plain.opts["conf_file"]
    with pytest.raises(CommandError, match="set 'conf_file' or 'grains_file'"):
        plain.call("grains.setval", "k", 1)


def test_setvals_wants_a_map(plain):
    with pytest.raises(InvocationError, match="must be a dictionary"):
        plain.call("grains.setvals", ["a"])
