"""The state modules test, module and grains."""

from __future__ import annotations

import pytest
import yaml

from statecore.model.errors import InvocationError

PRETENDED = {"testing": {"old": "Unchanged", "new": "Something pretended to change"}}


@pytest.mark.parametrize(
    ("fun", "arguments", "test", "result", "changed", "comment"),
    [
        ("nop", {"any": 1}, False, True, False, "Success!"),
        ("nop", {}, True, True, False, "Success!"),
        ("succeed_without_changes", {"comment": "c"}, False, True, False, "c"),
        ("fail_without_changes", {}, False, False, False, "Failure!"),
        ("fail_without_changes", {}, True, False, False, "If we weren't testing, this would be a failure!"),
        ("succeed_with_changes", {}, False, True, True, "Success!"),
        ("succeed_with_changes", {}, True, None, True, "If we weren't testing, this would be successful with changes"),
        ("fail_with_changes", {}, False, False, True, "Failure!"),
        ("fail_with_changes", {}, True, None, True, "If we weren't testing, this would be failed with changes"),
        ("configurable_test_state", {}, False, True, True, ""),
        ("configurable_test_state", {"changes": False, "comment": "c"}, False, True, False, "c"),
        ("configurable_test_state", {"result": False}, False, False, True, ""),
        ("configurable_test_state", {}, True, None, True, "This is a test"),
        ("configurable_test_state", {"changes": False}, True, True, False, "This is a test"),
        ("configurable_test_state", {"result": False}, True, None, True, "This is a test"),
        (
            "configurable_test_state",
            {"result": False, "allow_test_mode_failure": True},
            True,
            False,
            True,
            "This is a test",
        ),
        ("show_notification", {"text": "hello"}, False, True, False, "hello"),
        ("check_pillar", {"present": ["key", "a:b"]}, False, True, False, ""),
        ("check_pillar", {"present": "nothing"}, False, False, False, 'Pillar key "nothing" is missing.\n'),
        ("check_pillar", {"integer": "key"}, False, False, False, "Pillar key \"key\" is not <class 'int'>.\n"),
        ("check_pillar", {"dictionary": "a", "listing": "a:b:c", "string": "key"}, False, True, False, ""),
        (
            "check_pillar",
            {"string": "key", "verbose": True},
            False,
            True,
            False,
            "Those keys passed the check:\n- key (<class 'str'>)\n",
        ),
        ("mod_watch", {}, False, True, True, "Watch statement fired."),
    ],
)
def test_test_states(plain, fun, arguments, test, result, changed, comment):
    entry = plain.state(f"test.{fun}", test=test, name="n", **arguments)
    assert (entry["name"], entry["result"], bool(entry["changes"]), entry["comment"]) == ("n", result, changed, comment)


def test_random_choices_and_warnings(plain):
    entry = plain.state("test.configurable_test_state", name="n", changes="Random", result="random", warnings="w")
    assert entry["changes"] in ({}, PRETENDED)
    assert entry["result"] in (True, False)
    assert entry["warnings"] == ["w"]


@pytest.mark.parametrize(
    ("fun", "arguments"),
    [
        ("configurable_test_state", {"changes": "x"}),
        ("configurable_test_state", {"result": 3}),
        ("configurable_test_state", {"warnings": 3}),
        ("show_notification", {}),
        ("check_pillar", {}),
    ],
)
def test_wrong_arguments(plain, fun, arguments):
    with pytest.raises(InvocationError):
        plain.state(f"test.{fun}", name="n", **arguments)


@pytest.mark.parametrize(
    ("arguments", "result", "changes", "comment"),
    [
        ({"test.echo": [{"text": "hi"}]}, True, {"test.echo": "hi"}, "test.echo: hi"),
        ({"test.echo": ["hi"]}, True, {"test.echo": "hi"}, "test.echo: hi"),
        (
            {"test.ping": None, "test.true": []},
            True,
            {"test.ping": True, "test.true": True},
            "test.ping: True, test.true: True",
        ),
        (
            {"test.echo:a": ["1"], "test.echo:b": ["2"]},
            True,
            {"test.echo:a": "1", "test.echo:b": "2"},
            "test.echo:a: 1, test.echo:b: 2",
        ),
        ({"test.false": []}, False, {}, "'test.false': False"),
        ({"test.false": [], "test.ping": []}, False, {"test.ping": True}, "'test.false': False, test.ping: True"),
        ({"test.outputter": [{"data": {"retcode": 1, "comment": "c"}}]}, False, {}, "'test.outputter' failed: c"),
        ({"test.fib": [-1]}, False, {}, "'test.fib' failed: Negative number is not allowed!"),
        ({"no.such": []}, False, {}, "Unavailable function: no.such."),
        ({}, False, {}, "No function provided."),
    ],
)
def test_module_run(plain, arguments, result, changes, comment):
    entry = plain.state("module.run", name="n", **arguments)
    assert (entry["result"], entry["changes"], entry["comment"]) == (result, changes, comment)


@pytest.mark.parametrize(
    ("arguments", "result", "changes", "comment"),
    [
        ({"text": "hi"}, True, {"ret": "hi"}, "Module function test.echo executed"),
        ({"args": ["hi"]}, True, {"ret": "hi"}, "Module function test.echo executed"),
        ({"kwargs": {"text": "hi"}}, True, {"ret": "hi"}, "Module function test.echo executed"),
        ({}, False, {}, "The following arguments are missing: text"),
    ],
)
def test_module_run_of_old(plain, arguments, result, changes, comment):
    entry = plain.state("module.run", name="test.echo", **arguments)
    assert (entry["result"], entry["changes"]) == (result, changes)
    if arguments:
        assert entry["comment"] == comment


def test_module_run_of_old_with_prefixed_arguments(plain):
    entry = plain.state("module.run", name="test.raise_exception", m_name="ValueError", args=[])
    assert entry["comment"].startswith("Module function test.raise_exception threw an exception")


def test_module_run_in_test_mode_calls_nothing(plain):
    entry = plain.state("module.run", test=True, **{"test.exception": []})
    assert (entry["result"], entry["comment"]) == (None, "Function test.exception to be executed.")


def test_module_wait(plain):
    assert plain.state("module.wait", name="test.echo")["result"] is True
    assert plain.state("module.mod_watch", name="test.echo", sfun="wait", text="x")["changes"] == {"ret": "x"}


GRAINS = [
    ("exists", {"name": "os"}, True, {}, "Grain exists"),
    ("exists", {"name": "x"}, False, {}, "Grain does not exist"),
    ("present", {"name": "os", "value": "Debian"}, True, {}, "Grain is already set"),
    ("present", {"name": "new", "value": 1}, True, {"new": 1}, "Set grain new to 1"),
    ("present", {"name": "os", "value": "X"}, True, {"os": "X"}, "Set grain os to X"),
    ("present", {"name": "a,b", "value": 1, "delimiter": ","}, True, {"a": {"b": 1}}, "Set grain a:b to 1"),
    ("present", {"name": "roles", "value": "x"}, False, {}, "Use 'force=True'"),
    ("present", {"name": "roles", "value": "x", "force": True}, True, {"roles": "x"}, "Set grain roles to x"),
    ("absent", {"name": "x"}, True, {}, "Grain x does not exist"),
    ("absent", {"name": "os"}, True, {"grain": "os", "value": None}, "Value for grain os was set to None"),
    ("absent", {"name": "os", "destructive": True}, True, {"deleted": "os"}, "Grain os was deleted"),
    ("absent", {"name": "roles"}, False, {}, "Use 'force=True'"),
    ("append", {"name": "roles", "value": "db"}, True, {"added": "db"}, "Value db was added to grain roles"),
    ("append", {"name": "roles", "value": "web"}, True, {}, "Value web is already in the list for grain roles"),
    ("append", {"name": "os", "value": "x"}, False, {}, "Grain os is not a valid list"),
    ("append", {"name": "os", "value": "x", "convert": True}, True, {"added": "x"}, "Value x was added to grain os"),
    ("append", {"name": "x", "value": "x"}, False, {}, "Grain x does not exist"),
    ("list_present", {"name": "roles", "value": "web"}, True, {}, "Value web is already in grain roles"),
    (
        "list_present",
        {"name": "roles", "value": "db"},
        True,
        {"new": {"roles": ["web", "db"]}},
        "Append value db to grain roles",
    ),
    ("list_present", {"name": "new", "value": ["a"]}, True, {"new": {"new": ["a"]}}, "Append value ['a'] to grain new"),
    ("list_present", {"name": "os", "value": "x"}, False, {}, "Grain os is not a valid list"),
    (
        "list_absent",
        {"name": "roles", "value": "web"},
        True,
        {"deleted": ["web"]},
        "Value web was deleted from grain roles",
    ),
    ("list_absent", {"name": "roles", "value": "db"}, True, {}, "Value db is absent from grain roles"),
    ("list_absent", {"name": "x", "value": "db"}, True, {}, "Grain x does not exist"),
    ("list_absent", {"name": "os", "value": "x"}, False, {}, "Grain os is not a valid list"),
]


@pytest.mark.parametrize(("fun", "arguments", "result", "changes", "comment"), GRAINS)
def test_grains(plain, fun, arguments, result, changes, comment):
    entry = plain.state(f"grains.{fun}", **arguments)
    assert (entry["result"], entry["changes"]) == (result, changes)
    assert comment in entry["comment"]


@pytest.mark.parametrize(("fun", "arguments", "result", "changes", "comment"), GRAINS)
def test_grains_in_test_mode_touch_nothing(plain, fun, arguments, result, changes, comment):
    entry = plain.state(f"grains.{fun}", test=True, **arguments)
    if changes:
        assert entry["result"] is None
        assert "is set to be" in entry["comment"]
    assert not (plain.directory / "grains").exists()


def test_grains_build_on_each_other_in_a_run(plain):
    ctx = plain.context()
    plain.state("grains.list_present", ctx=ctx, name="roles", value=["web", "db"])
    entry = plain.state("grains.list_present", ctx=ctx, name="roles", value="cache")
    assert entry["changes"] == {"new": {"roles": ["web", "db", "cache"]}}
    assert yaml.safe_load((plain.directory / "grains").read_text()) == {"roles": ["web", "db", "cache"]}
