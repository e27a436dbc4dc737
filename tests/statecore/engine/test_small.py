"""The small pure parts: tags, durations, plans, slots, retry, arguments."""

from __future__ import annotations

import inspect
from datetime import timedelta

import pytest

from statecore.engine import drive
from statecore.engine.apply import settle
from statecore.engine.arguments import bind, complaint
from statecore.engine.report import milliseconds, text
from statecore.loader.arguments import Parameters
from statecore.model.errors import CommandError, StateFailure
from statecore.model.types import ChunkId, Outcome, Plan, Step, tag, untag


def step(**outcome):
    return Step("do it", lambda: Outcome(**outcome))


def failing(error):
    def run():
        raise error

    return Step("do it", run)


def test_a_tag_and_back():
    low = {"state": "file", "__id__": "ldap", "name": "/etc/ldap.conf", "fun": "managed"}
    assert tag(low) == "file_|-ldap_|-/etc/ldap.conf_|-managed"
    assert untag(tag(low)) == ChunkId("file", "ldap", "/etc/ldap.conf", "managed")


def test_milliseconds():
    assert milliseconds(timedelta(seconds=1, microseconds=234_567)) == 1234.567


@pytest.mark.parametrize(("comment", "shown"), [("a", "a"), (["a", 1], "a\n1"), (None, ""), (3, "3")])
def test_text(comment, shown):
    assert text(comment) == shown


@pytest.mark.parametrize(
    ("plan", "test", "result", "comment", "changes"),
    [
        (Plan.unchanged("fine", ["note"]), False, True, "note\nfine", {}),
        (Plan.failed("no", {"a": 1}), True, False, "no", {"a": 1}),
        (Plan.change("would", [step()], {"p": 1}, ["n"]), True, None, "n\nwould", {"p": 1}),
        (Plan.change("would", [step(comment="did", changes={"r": 1})], {"p": 1}), False, True, "did", {"r": 1}),
        (
            Plan.change("w", [step(comment="1", changes={"a": 1}), step(comment="2", changes={"b": 2})]),
            False,
            True,
            "1\n2",
            {"a": 1, "b": 2},
        ),
        (Plan.change("w", [step(comment="1", ok=False), step(comment="2")]), False, False, "1", {}),
        (Plan.change("w", [failing(StateFailure("lost", {"x": 1}))]), False, False, "lost", {"x": 1}),
        (Plan.change("w", [failing(CommandError("full"))]), False, False, "Failed to do it: full", {}),
        (Plan.change("w", [failing(KeyError("k"))]), False, False, "Failed to do it: KeyError: 'k'", {}),
    ],
)
def test_a_plan_becomes_an_entry(plan, test, result, comment, changes):
    entry = settle(plan, "n", test=test)
    assert entry == {"name": "n", "changes": changes, "result": result, "comment": comment}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (True, drive.Retry()),
        (False, drive.Retry(attempts=0)),
        ({"attempts": 5, "interval": 1, "splay": 2, "until": False}, drive.Retry(False, 5, 1, 2)),
        ({"attempts": "5"}, drive.Retry()),
        ("yes", drive.Retry()),
    ],
)
def test_retry(given, expected):
    assert drive.parse_retry(given) == expected


def signature(function):
    return inspect.signature(function)


def test_arguments_of_the_engine_do_not_reach_the_function():
    low = {
        "name": "n",
        "fun": "f",
        "state": "s",
        "__id__": "i",
        "require": [],
        "order": 1,
        "onlyif": "x",
        "listen_in": [],
    }
    assert bind(low, Parameters.of(signature(lambda name, **kw: None))).values == {"name": "n"}


def test_a_function_that_names_an_engine_key_gets_it():
    assert bind(
        {"name": "n", "check_cmd": "c"}, Parameters.of(signature(lambda name, check_cmd=None: None))
    ).values == {
        "name": "n",
        "check_cmd": "c",
    }


def test_extra_arguments_go_to_functions_that_take_any():
    assert bind({"name": "n", "x": 1, "__y": 2}, Parameters.of(signature(lambda name, **kw: None))).values == {
        "name": "n",
        "x": 1,
    }


def test_complaints():
    wrong = bind({"name": "n", "usr": 1}, Parameters.of(signature(lambda name, source, user=None: None)))
    assert complaint(wrong, "file.managed").splitlines() == [
        "Missing parameter source for state file.managed",
        "'usr' is an invalid keyword argument for 'file.managed'",
        "Did you mean 'user' instead of 'usr'?",
    ]
    assert complaint(bind({"name": "n"}, Parameters.of(signature(lambda name: None))), "f.g") == ""


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("__slot__:salt:test.echo(hello)", "hello"),
        ("__slot__:salt:test.echo('a, b')", "a, b"),
        ("__slot__:salt:test.echo(text=x) ~ /y", "x/y"),
        ("__slot__:salt:test.arg(k=v).kwargs.k", "v"),
        ("__slot__:salt:test.arg(k=v).nothing.k", None),
        ("__slot__:salt:no.such()", "__slot__:salt:no.such()"),
        ("__slot__:other", "__slot__:other"),
    ],
)
def test_slots(bench, low, slot, value):
    (entry,) = bench.run(low("a", "succeed_without_changes", comment=slot)).values()
    assert entry["comment"] == ("" if value is None else value)


def test_slots_one_level_down(bench):
    from statecore.engine.slots import resolve

    args, kwargs = resolve(
        ["__slot__:salt:test.echo(1)"], {"a": ["__slot__:salt:test.echo(2)", {"b": "x"}]}, bench.context()
    )
    assert (args, kwargs) == (["1"], {"a": ["2", {"b": "x"}]})
