"""``salt-run`` against a scripted master, and ``state.event`` against a scripted bus."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from saltern.cli import run
from saltern.cli.context import STOCK_CODES
from saltern.cli.run import exit_code
from saltern.cli.watch_events import tag_matches
from saltern.kit.jobs.returns import NO_MATCH
from saltern.kit.links.control import ControlError, ControlTimeout

JID = "20260101000000000000"
TAG = f"salt/run/{JID}"
JOB = {"runner": {"tag": TAG, "jid": JID}}


def done(value: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return f"{TAG}/ret", {"fun": "runner.x.y", "jid": JID, "return": value, "success": True, "user": "tester", **more}


def test_result_is_shown(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    events = [(0, f"{TAG}/new", {"fun": "x"}), (0, "salt/run/2/ret", {"return": "other"}), (1, *done({"a": [1]}))]
    fake = master(JOB, events)
    assert run.run(["x.y", "1", "b=[2]"], fake.context()) == 0
    assert capsys.readouterr() == ("a:\n    - 1\n", "")
    assert fake.order == ["subscribe salt/run/", "ready", "runner"]
    (asked,) = fake.sent("runner")
    assert asked.pop("request_id")
    assert asked == {"fun": "x.y", "arg": [1], "kwarg": {"b": [2]}, "user": "tester"}


def test_jid_stays_text(master: Callable[..., Any]) -> None:
    fake = master(JOB, [(0, *done({}))])
    run.run(["jobs.lookup_jid", JID, f"cursor={JID}"], fake.context())
    assert (fake.sent("runner")[0]["arg"], fake.sent("runner")[0]["kwarg"]) == ([JID], {"cursor": JID})


STATE = {"test_|-a_|-a_|-nop": {"result": True, "changes": {}, "comment": "", "name": "a", "__run_num__": 0}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"data": {"web1": STATE}, "outputter": "highstate"}, []),
        ({"data": {"web1": STATE}, "outputter": "highstate", "retcode": 0}, []),
        ({"web1": STATE}, ["--out=highstate"]),
    ],
)
def test_state_runs_look_like_state_runs(
    master: Callable[..., Any], value: Any, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["x.y", *words], master(JOB, [(0, *done(value))]).context()) == 0
    assert "Summary for web1" in capsys.readouterr().out


def test_out_wins_over_the_runners_outputter(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    value = {"data": {"web1": True}, "outputter": "nested"}
    run.run(["x.y", "--out=json", "--out-indent=-1"], master(JOB, [(0, *done(value))]).context())
    assert capsys.readouterr().out == '{"web1": true}\n'


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"return": 1}, 0),
        ({"return": "x", "success": False}, 1),
        ({"return": "x", "success": False, "retcode": 3}, 3),
        ({"return": {"retcode": 2, "data": {}}, "success": True}, 2),
        ({"return": {"data": {"retcode": 4}}, "success": True}, 4),
        ({"return": {"retcode": 0, "data": {}}, "success": False}, 0),
    ],
)
def test_exit_code(result: dict[str, Any], code: int) -> None:
    assert exit_code(result) == code


@pytest.mark.parametrize(("stock", "code"), [("", 2), ("1", 0)])
def test_who_asked_nobody_ends_as_salt_does_or_as_stock_does(
    stock: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STOCK_CODES, stock)
    assert exit_code({"return": NO_MATCH, "success": False, "retcode": 2}) == code


def test_failure_is_shown(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["x.y"], master(JOB, [(0, *done("it broke", success=False))]).context()) == 1
    assert capsys.readouterr().out == "it broke\n"


def test_unknown_function(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"runner": ControlError("UnknownFunction", "'x.y' is not available. The nearest is 'x.z'.")})
    assert run.run(["x.y"], fake.context()) == 1
    assert capsys.readouterr().err == "ERROR: 'x.y' is not available. The nearest is 'x.z'.\n"


def test_quiet(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["-q", "x.y"], master(JOB, [(0, *done("text"))]).context()) == 0
    assert capsys.readouterr() == ("", "")


def test_async(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["--async", "x.y"], master(JOB).context()) == 0
    assert capsys.readouterr().out == f"Executed command with job ID: {JID}\n"


@pytest.mark.parametrize("hears", [True, False])
def test_result_that_the_bus_dropped(
    master: Callable[..., Any], hears: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({**JOB, "job_returns": {"master": done("kept")[1]}}, hears=hears)
    assert run.run(["x.y"], fake.context()) == 0
    out, err = capsys.readouterr()
    assert out == "kept\n"
    assert ("no answer from the event bus" in err) is not hears
    assert fake.now == (5.0 if hears else 0.5)


def test_result_too_large_for_the_bus(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({**JOB, "job_returns": {"master": done("large")[1]}}, [(0, *done("VALUE_TRIMMED"))])
    assert run.run(["x.y"], fake.context()) == 0
    assert capsys.readouterr().out == "large\n"
    assert fake.now == 0


def test_timeout(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({**JOB, "job_returns": {}})
    assert run.run(["-t", "7", "x.y"], fake.context()) == 1
    assert f"salt-run jobs.lookup_jid {JID}" in capsys.readouterr().err
    assert fake.now == 7


TOLD = [
    (0, f"{TAG}/new", {"fun": "x"}),
    (0, f"{TAG}/progress", {"message": "half", "_stamp": "now"}),
    (0, f"{TAG}/args", {"name": "sub"}),
    (0, f"{TAG}0/progress", {"message": "another's"}),
]


def test_what_a_runner_tells_of_its_progress(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    """As Salt's salt-run shows events of ``__jid_event__``."""
    assert run.run(["x.y"], master(JOB, [*TOLD, (1, *done(True))]).context()) == 0
    event = "event:\n    ----------\n    _stamp:\n        now\n    message:\n        half\n"
    assert capsys.readouterr().out == f"{event}suffix:\n    progress\nTrue\n"


def test_quiet_says_nothing_of_progress_either(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["-q", "x.y"], master(JOB, [*TOLD, (1, *done(True))]).context()) == 0
    assert capsys.readouterr().out == ""


def test_documentation(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master(JOB, [(0, *done({"b.b": "B.", "a.a": "A."}))])
    assert run.run(["-d", "a"], fake.context()) == 0
    assert capsys.readouterr().out == "a.a:\n\n    A.\n\nb.b:\n\n    B.\n\n"
    assert (fake.sent("runner")[0]["fun"], fake.sent("runner")[0]["arg"]) == ("sys.doc", ["a"])


def test_documentation_of_what_runs_here(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master(JOB, [(0, *done({"jobs.active": "Jobs that run."}))])
    assert run.run(["-d", "jobs"], fake.context()) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("jobs.")] == [
        "jobs.active:",
        "jobs.export:",
        "jobs.watch:",
    ]
    assert "until each minion has returned" in out


def test_master_away(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["x.y"], master({"runner": ControlTimeout("tcp://m:4507", 10)}).context()) == 69
    assert "tcp://m:4507" in capsys.readouterr().err


def test_ctrl_c(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["x.y"], master(JOB, [(1, KeyboardInterrupt(), None)]).context()) == 0
    goes_on = f"The runner goes on. What it returns: salt-run jobs.lookup_jid {JID}"
    assert capsys.readouterr().err == f"\n{goes_on}\n\nExiting gracefully on Ctrl-c\n"


@pytest.mark.parametrize(
    ("words", "said"), [([], "a function is needed"), (["-d", "a", "b"], "one function"), (["-x"], "-x")]
)
def test_wrong_command_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.run(words)
    assert ended.value.code == 64
    assert said in capsys.readouterr().err


EVENTS = [
    (0, "salt/job/1/new", {"jid": "1", "b": {"c": 1}, "a": "ü"}),
    (1, "salt/auth", {"id": "x"}),
    (2, "salt/job/2/new", {"jid": "2"}),
    (3, "salt/job/3/new", {"jid": "3"}),
]


def test_events(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({}, list(EVENTS))
    assert run.run(["state.event", "salt/job/*", "count=2"], fake.context()) == 0
    assert capsys.readouterr().out == (
        'salt/job/1/new\t{"jid": "1", "b": {"c": 1}, "a": "ü"}\nsalt/job/2/new\t{"jid": "2"}\n'
    )
    assert fake.order == ["subscribe ", "ready"]


def test_pretty_events(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    run.run(["state.event", "pretty=True", "count=1"], master({}, list(EVENTS)).context())
    tag, text = capsys.readouterr().out.split("\t")
    assert tag == "salt/job/1/new"
    assert text == json.dumps(EVENTS[0][2], indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def test_quiet_events(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({}, list(EVENTS))
    assert run.run(["state.event", "salt/auth", "count=1", "quiet=True"], fake.context()) == 0
    assert capsys.readouterr().out == ""
    assert fake.now == 1


def test_endless_events_end_by_ctrl_c(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({}, [*EVENTS, (200, KeyboardInterrupt(), None)])
    assert run.run(["state.event"], fake.context()) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_events_without_a_bus(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["state.event"], master({}, hears=False).context()) == 69
    assert "event bus at 127.0.0.1:4513" in capsys.readouterr().err


def test_wrong_arguments_of_state_event(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["state.event", "tags=x"], master({}).context()) == 64
    assert "state.event got an unexpected keyword argument 'tags'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("count=abc", "count must be a whole number, not 'abc'"),
        ("count=1.5", "count must be a whole number, not 1.5"),
        ("count=True", "count must be a whole number, not True"),
        ("quiet=maybe", "quiet must be True or False, not 'maybe'"),
        ("pretty=[1]", "pretty must be True or False, not [1]"),
        ("node=minion", "only the master's bus exists"),
        ("tagmatch={a: 1}", "tagmatch must be a glob or a regular expression of tags, not {'a': 1}"),
    ],
)
def test_wrong_values_of_state_event(
    master: Callable[..., Any], word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.run(["state.event", word], master({}, list(EVENTS)).context()) == 64
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("expression", "matches"),
    [("salt/job/*", True), ("salt/job/1/new", True), (r"salt/job/\d/new", True), ("job", False), ("salt/(job", False)],
)
def test_tag_matches(expression: str, matches: bool) -> None:
    assert tag_matches("salt/job/1/new", expression) is matches
