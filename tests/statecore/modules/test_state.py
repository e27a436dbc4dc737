"""The verbs of the state module: what they ask the state system, and who may run when."""

from __future__ import annotations

import os

import pytest

from statecore.errors import InvocationError

OTHER = {"jid": "20260102030405678901", "fun": "state.apply", "pid": 1}


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "asked"),
    [
        ("apply", (), {}, ("highstate", {"test": False})),
        ("apply", ("web",), {"test": True}, ("sls", ["web"], {"test": True})),
        ("apply", (["web", "db"],), {}, ("sls", ["web", "db"], {"test": False})),
        (
            "sls",
            ("core, edit.vim",),
            {"saltenv": "dev"},
            ("sls", ["core", "edit.vim"], {"saltenv": "dev", "test": False}),
        ),
        ("sls", (7,), {}, ("sls", ["7"], {"test": False})),
        ("sls", ("a",), {"pillar": {"k": 1}}, ("sls", ["a"], {"pillar": {"k": 1}, "test": False})),
        ("sls", ("a",), {"exclude": "b"}, ("sls", ["a"], {"exclude": "b", "test": False})),
        ("sls", ("a",), {"__pub_jid": "1"}, ("sls", ["a"], {"test": False})),
        ("highstate", (), {"whitelist": "a"}, ("highstate", {"whitelist": "a", "test": False})),
        ("test", ("a",), {}, ("sls", ["a"], {"test": True})),
        ("high", ({"vim": {"test": ["nop"]}},), {}, ("high", {"vim": {"test": ["nop"]}}, {"test": False})),
        ("low", ({"state": "test"},), {}, ("low", {"state": "test"}, {"test": False})),
        (
            "single",
            ("test.nop", "n"),
            {"x": 1, "test": True},
            (
                "low",
                {"x": 1, "state": "test", "fun": "nop", "name": "n", "__id__": "n"},
                {"test": True, "tagged": True},
            ),
        ),
        ("sls_id", ("vim", "a"), {}, ("sls", ["a"], {"test": False, "only_id": "vim"})),
        ("top", ("other.sls",), {}, ("highstate", {"test": False, "state_top": "other.sls"})),
        ("show_top", (), {}, ("show_top", {"test": False})),
        ("show_highstate", (), {}, ("show_high", None, {"test": False})),
        ("show_sls", ("a",), {}, ("show_high", ["a"], {"test": False})),
        ("show_lowstate", (), {}, ("show_low", None, {"test": False})),
        ("show_low_sls", ("a,b",), {}, ("show_low", ["a", "b"], {"test": False})),
    ],
)
def test_verbs(plain, name, args, kwargs, asked):
    plain.call(f"state.{name}", *args, **kwargs)
    assert plain.ports.asked == [asked]


def test_test_mode_of_the_configuration(plain):
    plain.opts["test"] = True
    plain.call("state.apply", "a")
    plain.call("state.apply", "a", test=False)
    assert [asked[2]["test"] for asked in plain.ports.asked] == [True, False]


def test_pillar_must_be_a_map(plain):
    with pytest.raises(InvocationError, match="Pillar data must be formatted as a dictionary"):
        plain.call("state.apply", "a", pillar="x")


def test_terse_shows_what_failed_or_changed(plain):
    plain.ports.answer = {
        "a": {"result": True, "changes": {}},
        "b": {"result": False, "changes": {}},
        "c": {"result": True, "changes": {"x": 1}},
    }
    assert list(plain.call("state.apply", "a", terse=True)) == ["b", "c"]


def test_a_second_run_is_refused(plain):
    plain.ports.jobs = [OTHER]
    ctx = plain.context()
    assert ctx.call("state.apply", "a") == [
        'The function "state.apply" is running as PID 1 and was started at 2026, Jan 02 03:04:05.678901'
        " with jid 20260102030405678901"
    ]
    assert ctx.scratch["retcode"] == 1
    assert plain.ports.asked == []


@pytest.mark.parametrize(
    "jobs",
    [
        [],
        [{**OTHER, "pid": os.getpid()}],
        [{**OTHER, "fun": "test.ping"}],
    ],
)
def test_what_is_no_conflict(plain, jobs):
    plain.ports.jobs = jobs
    plain.call("state.apply", "a")
    assert len(plain.ports.asked) == 1


def test_concurrent_runs_when_asked_for(plain):
    plain.ports.jobs = [OTHER]
    plain.call("state.apply", "a", concurrent=True)
    assert len(plain.ports.asked) == 1
    assert plain.call("state.running", concurrent=True) == []
    assert len(plain.call("state.running")) == 1


def test_a_queued_run_goes_before_later_ones(plain):
    plain.ports.jobs = [OTHER, {"jid": "20260101000000000000", "fun": "state.apply", "pid": os.getpid()}]
    plain.call("state.apply", "a", queue=True)
    assert len(plain.ports.asked) == 1


def test_a_queued_run_waits_for_earlier_ones(plain, monkeypatch):
    plain.ports.jobs = [OTHER, {"jid": "20270101000000000000", "fun": "state.apply", "pid": os.getpid()}]
    monkeypatch.setattr("time.sleep", lambda _seconds: plain.ports.jobs.clear())
    plain.call("state.apply", "a", queue=True)
    assert plain.ports.jobs == []
    assert len(plain.ports.asked) == 1


def test_errors_of_showing_give_an_exit_code(plain):
    plain.ports.answer = ["broken"]
    ctx = plain.context()
    assert ctx.call("state.show_sls", "a") == ["broken"]
    assert ctx.scratch["retcode"] == 1
    assert plain.call("state.sls_exists", "a") is False
    assert plain.call("state.show_lowstate") == ["broken"]
    assert plain.call("state.show_states") == ["broken"]


def test_existence(plain):
    plain.ports.answer = {"vim": {}, "git": {}}
    assert plain.call("state.sls_exists", "a") is True
    assert plain.call("state.id_exists", "vim,git", "a") is True
    assert plain.call("state.id_exists", ["vim", "x"], "a") is False


def test_states_in_order(plain):
    plain.ports.answer = [{"__sls__": "b"}, {"__sls__": "a"}, {"__sls__": "b"}]
    assert plain.call("state.show_states") == ["b", "a"]


def test_a_single_without_a_function(plain):
    ctx = plain.context()
    assert ctx.call("state.single", "test", "n") == "Invalid function passed"
    assert ctx.scratch["retcode"] == 1
