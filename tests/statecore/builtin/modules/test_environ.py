"""Environment variables of this process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from statecore.builtin.modules import environ


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    """Variables of the module's own: pytest keeps some in those of the process."""
    own = {"A": "1"}
    monkeypatch.setattr(environ, "os", SimpleNamespace(environ=own))
    return own


@pytest.mark.parametrize(
    ("name", "args", "value", "left"),
    [
        ("get", ("A",), "1", {"A": "1"}),
        ("get", ("B", "x"), "x", {"A": "1"}),
        ("has_value", ("A",), True, {"A": "1"}),
        ("has_value", ("A", "2"), False, {"A": "1"}),
        ("item", (["A", "B"],), {"A": "1", "B": ""}, {"A": "1"}),
        ("items", (), {"A": "1"}, {"A": "1"}),
        ("setval", ("B", "2"), "2", {"A": "1", "B": "2"}),
        ("setval", ("A", False), "", {"A": ""}),
        ("setval", ("A", False, True), None, {}),
        ("setval", ("A", 3), False, {"A": "1"}),
        ("setenv", ({"B": "2"}, True, True), {"A": None, "B": "2"}, {"B": "2"}),
        ("setenv", ({"B": 2, "C": "3"},), False, {"A": "1"}),
    ],
)
def test_calls(plain, variables, name, args, value, left):
    assert plain.call(f"environ.{name}", *args) == value
    assert variables == left


def test_commands_of_a_mounted_host_get_what_is_set(plain):
    given = {}
    ctx = plain.context()
    ctx.host.set_variable = lambda name, value: given.update({name: value})
    ctx.call("environ.setenv", {"B": "2", "C": False})
    ctx.call("environ.setval", "A", False, True)
    assert given == {"B": "2", "C": "", "A": None}


def test_permanent_is_for_windows(plain):
    assert plain.call("environ.setval", "SALTERN_A", "1", permanent="HKLM") == "1"
    plain.call("environ.setval", "SALTERN_A", False, false_unsets=True, permanent=True)
