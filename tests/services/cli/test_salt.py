"""``salt`` against a scripted master: what is asked of it, what is printed, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.cli import salt
from saltern.cli.request import parse_request
from saltern.kit.config.master import ConfigError
from saltern.kit.links.control import ControlError, ControlTimeout

JID = "20260101000000000000"
LATER = (
    "The minions may not have all finished running and any remaining minions will return upon completion. "
    "To look up the return data for this job later, run the following command:"
)


def ret(minion: str, value: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return f"salt/job/{JID}/ret/{minion}", {"id": minion, "return": value, "retcode": 0, "success": True, **more}


def job(*minions: str, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"jid": JID, "minions": list(minions), "missing": list(missing)}


def test_returns_are_printed_as_they_come(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a", "b")}, [(0.1, *ret("b", True)), (0.2, *ret("a", {"x": 1}))])
    assert salt.run(["*", "test.ping"], fake.context()) == 0
    out, err = capsys.readouterr()
    assert out == "b:\n    True\na:\n    ----------\n    x:\n        1\n"
    assert err == ""
    # Heard before published: no return is missed.
    assert fake.order == ["subscribe salt/job/", "ready", "publish"]
    (asked,) = fake.sent("publish")
    assert len(asked.pop("request_id")) == 32
    assert asked == {
        "tgt": "*",
        "tgt_type": "glob",
        "fun": "test.ping",
        "arg": [],
        "kwargs": {},
        "ret": "",
        "user": "tester",
    }


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["-L", "a, b", "f.x"], {"tgt": ["a", "b"], "tgt_type": "list"}),
        (["-L", "a b", "f.x"], {"tgt": ["a", "b"], "tgt_type": "list"}),
        (["-G", "os:Debian", "f.x", "--delimiter", "|"], {"tgt_type": "grain", "kwargs": {"delimiter": "|"}}),
        (["f.x", "-E", "f.y", "--out=json"], {"tgt": "f.x", "tgt_type": "pcre", "fun": "f.y"}),
        (["-C", "G@a:b and c*", "f.x"], {"tgt": "G@a:b and c*", "tgt_type": "compound"}),
        (["-N", "web", "f.x"], {"tgt_type": "nodegroup"}),
        (["-S", "10.0.0.0/8", "f.x"], {"tgt_type": "ipcidr"}),
        (["-I", "a:b", "f.x"], {"tgt_type": "pillar"}),
        (["-J", "a:b", "f.x"], {"tgt_type": "pillar_pcre"}),
        (["-P", "a:b", "f.x"], {"tgt_type": "grain_pcre"}),
        (["*", "f.x", "1", "a=[1, b]", "c"], {"arg": [1, "c", {"__kwarg__": True, "a": [1, "b"]}]}),
        (["*", "f.x", "-1", "--", "-v"], {"arg": [-1, "-v"]}),
        (["*", "f.x", "a=1", "--no-parse", "a"], {"arg": [{"__kwarg__": True, "a": "1"}]}),
        (
            ["*", "f.x,f.y", "1", ",", "2", "k=3"],
            {"fun": ["f.x", "f.y"], "arg": [[1], [2, {"__kwarg__": True, "k": 3}]]},
        ),
        (["*", "f.x,f.y", "1,2"], {"arg": [[1], [2]]}),
        (["*", "f.x,f.y", ","], {"arg": [[], []]}),
        (["*", "f.x,f.y", "a,b", "/", "c", "--args-separator", "/"], {"arg": [["a,b"], ["c"]]}),
        (["*", "f.x", "--metadata", "{a: 1}"], {"kwargs": {"metadata": {"a": 1}}}),
        (["*", "f.x", "--return", "redis"], {"ret": "redis"}),
        (["-d"], {"tgt": "*", "fun": "sys.doc", "arg": []}),
        (["web", "-d", "test.ping"], {"tgt": "web", "fun": "sys.doc", "arg": ["test.ping"]}),
        (["web", "sys.doc", "test", "-d"], {"tgt": "web", "fun": "sys.doc", "arg": ["test"]}),
    ],
)
def test_what_is_published(master: Callable[..., Any], words: list[str], fields: dict[str, Any]) -> None:
    fake = master({"publish": {"jid": None, "minions": [], "error": "no"}})
    salt.run(words, fake.context())
    (asked,) = fake.sent("publish")
    assert {name: asked[name] for name in fields} == fields


def test_no_match(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": {"jid": None, "minions": [], "error": "Master could not resolve"}})
    assert salt.run(["nope*", "test.ping"], fake.context()) == 2
    out, err = capsys.readouterr()
    assert out == "No minions matched the target. No command was sent, no jid was assigned.\n"
    assert err == "ERROR: No return received\n"


def test_a_list_that_was_taken_for_a_glob(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    nobody = {"publish": {"jid": None, "minions": []}}
    for words, hinted in ((["a,b"], True), (["-L", "a,b"], False), (["a*"], False)):
        assert salt.run([*words, "test.ping"], master(nobody).context()) == 2
        assert ("'a,b' is a glob; a list of ids is: salt -L a,b\n" in capsys.readouterr().err) is hinted


def test_failure_of_a_minion(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a")}, [(0, *ret("a", "'x.y' is not available.", retcode=254, out="nested"))])
    assert salt.run(["*", "x.y"], fake.context()) == 1
    out, err = capsys.readouterr()
    assert out == "a:\n    'x.y' is not available.\n"
    assert err == "ERROR: Minions returned with non-zero exit code\n"


@pytest.mark.parametrize("retcode", [{"f.x": 0, "f.y": 1}, [0, 1], 2])
def test_failure_of_one_of_several_functions(master: Callable[..., Any], retcode: Any) -> None:
    fake = master({"publish": job("a")}, [(0, *ret("a", {"f.x": 1}, retcode=retcode))])
    assert salt.run(["*", "f.x,f.y", ","], fake.context()) == 1


def test_silent_minion(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def publish(fields: dict[str, Any]) -> dict[str, Any]:
        return (
            {"jid": "2", "minions": ["b"]}
            if fields["fun"] == "saltutil.find_job"
            else job("a", "b", missing=("ghost",))
        )

    fake = master({"publish": publish, "job_returns": {}}, [(0, *ret("a", True))])
    assert salt.run(["*", "test.ping"], fake.context()) == 1
    out, err = capsys.readouterr()
    text = f"    Minion did not return. [No response]\n    {LATER}\n    \n    salt-run jobs.lookup_jid {JID}\n"
    assert out == f"a:\n    True\nb:\n{text}ghost:\n{text}"
    assert err == "ERROR: Minions returned with non-zero exit code\n"
    probe = fake.sent("publish")[1]
    assert (probe["tgt"], probe["tgt_type"], probe["arg"]) == (["b"], "list", [JID])
    assert fake.now == 15


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"key": "accepted", "age": 7505.3}, "It was last heard of 2 h 5 min ago."),
        ({"key": "accepted", "age": 200000}, "It was last heard of 2 d 7 h ago."),
        ({"key": "accepted", "age": 59.9}, "It was last heard of 59 s ago."),
        (
            {"key": "accepted", "age": 0},
            "It is connected: it was heard of 0 s ago. It did not say that it runs the job.",
        ),
        ({"key": "accepted", "age": None}, "The master has never heard of it."),
        ({"key": "rejected", "age": 5}, "Its key is rejected, not accepted."),
        ({"key": "", "age": None}, "The master has no key of it."),
    ],
)
def test_what_is_known_of_a_silent_minion(
    known: dict[str, Any], said: str, master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({"publish": job("a", "b", missing=("ghost",)), "job_returns": {}, "known": {"ghost": known}})
    fake.events = [(0, *ret("a", True))]
    assert salt.run(["*", "test.ping"], fake.context()) == 1
    out = capsys.readouterr().out
    assert f"ghost:\n    Minion did not return. [No response]\n    {said}\n    {LATER}" in out
    assert f"b:\n    Minion did not return. [No response]\n    {LATER}" in out
    # Once, for all who are silent.
    assert fake.sent("known") == [{"minions": ["b", "ghost"]}]


@pytest.mark.parametrize(
    ("part", "known", "said"),
    [
        (
            {"state": "expected"},
            {"key": "accepted", "age": 99},
            "did not return. [No response]|It was last heard of 1 min 39 s ago.",
        ),
        (
            {"state": "offline"},
            {"key": "accepted", "age": 7505},
            "did not return. [Not connected]|It was offline when the job was "
            "published.|It was last heard of 2 h 5 min ago.",
        ),
        (
            {"state": "started"},
            {"key": "accepted", "age": 1},
            "has not returned yet. [Running]|It has worked on the job for 1 min 5 s.",
        ),
        (
            {"state": "delivered"},
            {"key": "accepted", "age": 3},
            "has not returned yet. [Delivered]|It took the job 1 min 5 s ago.|It was last heard of 3 s ago.",
        ),
        (
            {"state": "lost"},
            {"key": "accepted", "age": None},
            "did not return. [Lost]|It had the job, and fell silent; it was given "
            "up 1 min 5 s ago.|The master has never heard of it.",
        ),
        (
            {"state": "cancelled"},
            {"key": "accepted", "age": 1},
            "did not return. [Cancelled]|The job was called off 1 min 5 s ago, before the minion had begun.",
        ),
        (
            {"state": "expired"},
            {"key": "rejected", "age": 1},
            "did not return. [Expired]|The job was not delivered in time, and is "
            "no longer sent.|Its key is rejected, not accepted.",
        ),
        ({"state": "of tomorrow"}, {"key": "accepted", "age": 99}, "did not return. [No response]"),
    ],
    ids=lambda value: value.get("state") if isinstance(value, dict) else None,
)
def test_where_the_job_is_on_a_silent_minion(
    part: dict[str, Any],
    known: dict[str, Any],
    said: str,
    master: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = {"now": 1_000_000, "minions": {"b": {"since": 935_000, **part}}}
    fake = master({"publish": job("a", "b"), "job_returns": {}, "known": {"b": known}, "job_status": status})
    fake.events = [(0, *ret("a", True))]
    assert salt.run(["*", "test.ping"], fake.context()) == 1
    lines = "".join(f"    {line}\n" for line in f"Minion {said}".split("|"))
    assert f"b:\n{lines}    " in capsys.readouterr().out
    assert fake.sent("job_status") == [{"jid": JID}]


def test_a_return_of_the_last_moment_is_shown(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def returns(fields: dict[str, Any]) -> dict[str, Any]:
        return {"b": {"return": "late", "retcode": 0}} if "minions" in fields else {}

    status = {"now": 1_000_000, "minions": {"b": {"since": 999_000, "state": "returned"}}}
    fake = master({"publish": job("a", "b"), "job_returns": returns, "job_status": status})
    fake.events = [(0, *ret("a", True))]
    assert salt.run(["*", "test.ping"], fake.context()) == 0
    assert capsys.readouterr().out == "a:\n    True\nb:\n    late\n"


def test_summary_tells_the_silent_apart(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    states = {"b": "started", "c": "offline", "d": "lost", "e": "expected"}
    status = {"now": 9000, "minions": {name: {"since": 5000, "state": state} for name, state in states.items()}}
    fake = master({"publish": job(*states), "job_returns": {}, "job_status": status})
    assert salt.run(["--summary", "*", "f.x"], fake.context()) == 1
    assert (
        "# of minions that did not return: 4\n# of minions running: 1\n# of minions offline: 1\n# of minions lost: 1\n"
        "# of minions with errors: 0\n"
    ) in capsys.readouterr().out


@pytest.mark.parametrize("hide", [False, True])
def test_a_job_that_waits_has_not_failed(
    hide: bool, master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    status = {"now": 9000, "minions": {"a": {"since": 5000, "state": "offline"}}}
    known = {"a": {"key": "accepted", "age": 86400}}
    fake = master(
        {
            "publish": {**job("a"), "when_back_until": 1_000_000_000_000},
            "job_returns": {},
            "job_status": status,
            "known": known,
        }
    )
    words = ["--hide-timeout"] if hide else []
    assert salt.run([*words, "--when-back=2h", "--summary", "*", "f.x"], fake.context()) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(
        "a:\n    The job waits for this minion until 2001-09-09 01:46:40 UTC.\n    It was last heard of 1 d 0 h ago.\n"
    )
    assert f"salt-run jobs.cancel {JID}" in captured.out
    assert "# of minions that are waited for: 1" in captured.out
    assert captured.err == ""
    (sent,) = [call for call in fake.sent("publish") if call["fun"] == "f.x"]
    assert sent["when_back"] == 7200


@pytest.mark.parametrize(
    ("state", "key"), [("started", "accepted"), ("lost", "accepted"), ("expected", None), ("cancelled", "accepted")]
)
def test_a_job_does_not_wait_for_whom_has_it_or_has_no_key(
    state: str, key: str | None, master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    status = {"now": 9000, "minions": {"a": {"since": 5000, "state": state}}}
    answers = {"job_returns": {}, "job_status": status, "known": {"a": {"key": key, "age": 99}}}
    fake = master({"publish": {**job("a"), "when_back_until": 1_000_000_000_000}, **answers})
    assert salt.run(["--when-back", "*", "f.x"], fake.context()) == 1
    assert "The job waits" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ([], {}),
        (["--when-back"], {"when_back": 86400}),
        (["--when-back=90"], {"when_back": 90}),
        (["--no-replay"], {"no_replay": True}),
    ],
)
def test_what_becomes_of_the_job_where_nobody_hears_it(
    words: list[str], sent: dict[str, Any], master: Callable[..., Any]
) -> None:
    fake = master({"publish": job("a"), "job_returns": {}})
    fake.events = [(0, *ret("a", True))]
    assert salt.run([*words, "*", "f.x"], fake.context()) == 0
    (published,) = fake.sent("publish")
    assert {name: published[name] for name in ("when_back", "no_replay") if name in published} == sent


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--when-back=soon"], "'soon' is not a duration"),
        (["--when-back=0"], "'0' is not a time of one second or more"),
        (["--when-back="], "is not a duration"),
        (["--when-back", "--no-replay"], "not allowed with argument"),
        (["--when-back", "-b", "2"], "give only one of them"),
        (["--when-back", "--batch-safe-limit=2"], "give only one of them"),
    ],
)
def test_a_wrong_way_to_wait(
    words: list[str], said: str, master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        salt.run([*words, "*", "test.ping"], master({}).context())
    assert ended.value.code == 64
    assert said in capsys.readouterr().err


def test_who_may_not_ask_is_told_the_rest(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    refusal = ControlError("AuthorizationError", "cli may not @jobs")
    fake = master({"publish": job("a"), "job_returns": {}, "known": refusal})
    assert salt.run(["*", "test.ping"], fake.context()) == 1
    assert f"[No response]\n    {LATER}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "ours"),
    [
        (ControlError("TargetError", "Node group x unavailable"), 1),
        (ControlError("AuthorizationError", "cli may not test.ping"), 1),
        (ControlTimeout("tcp://m:4507", 10), 69),
    ],
)
def test_exit_codes_of_salt_can_be_had(
    answer: Exception, ours: int, master: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scripts that count on 0 for a node group that is not there, or for an absent master, ask for it."""
    fake = master({"publish": answer})
    assert salt.run(["-N", "x", "test.ping"], fake.context()) == ours
    monkeypatch.setenv("SALTERN_STOCK_EXIT_CODES", "1")
    forgiven = not (isinstance(answer, ControlError) and answer.name == "AuthorizationError")
    assert salt.run(["-N", "x", "test.ping"], fake.context()) == (0 if forgiven else 1)


def test_hidden_timeouts(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a", missing=("ghost",))}, [(0, *ret("a", True))])
    assert salt.run(["-L", "a,ghost", "test.ping", "--hide-timeout"], fake.context()) == 1
    captured = capsys.readouterr()
    assert captured.out == "a:\n    True\n"
    assert captured.err == "ERROR: Minions returned with non-zero exit code\n"


def test_dropped_return_is_shown_from_the_job_cache(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({"publish": job("a"), "job_returns": {"a": ret("a", "kept")[1]}})
    assert salt.run(["*", "test.ping", "-t", "2"], fake.context()) == 0
    assert capsys.readouterr().out == "a:\n    kept\n"
    assert fake.now == 2


def test_a_bus_that_goes_during_the_wait_is_noticed(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """What it does not bring any more is found by a look, long before the time of the command is over."""

    def returns(fields: dict[str, Any]) -> dict[str, Any]:
        assert "a" not in fields["minions"], "it has returned, and its return may be large"
        there = {"b": 9.0, "c": 12.0}
        return {name: ret(name, name)[1] for name in fields["minions"] if there[name] <= fake.now}

    fake = master({"publish": job("a", "b", "c"), "job_returns": returns}, [(1, *ret("a", "a"))])
    assert salt.run(["*", "f.x", "-t", "600", "--static", "--out=json"], fake.context()) == 0
    assert json.loads(capsys.readouterr().out) == {"a": "a", "b": "b", "c": "c"}
    # 2 s after the last that was heard, and then each pause half as long again: 3, 6, 10.5. What is found shortens them.
    assert fake.now == 12.5
    assert len(fake.sent("job_returns")) == 4


@pytest.mark.parametrize(("hears", "fewest", "most"), [(True, 118, 128), (False, 715, 735)], ids=["bus", "no bus"])
def test_an_idle_wait_looks_seldom(master: Callable[..., Any], hears: bool, fewest: int, most: int) -> None:
    fake = master({"publish": job("a"), "job_returns": {}}, hears=hears)
    assert salt.run(["*", "f.x", "-t", "3590"], fake.context()) == 1
    assert fewest <= len(fake.sent("job_returns")) <= most


def test_events_of_other_jobs_put_no_look_off(master: Callable[..., Any]) -> None:
    others = [(number / 10, "salt/job/1/ret/a", {"return": 1}) for number in range(100)]
    fake = master({"publish": job("a"), "job_returns": {"a": ret("a", True)[1]}}, others)
    assert salt.run(["*", "f.x", "-t", "600"], fake.context()) == 0
    assert fake.now < 3


@pytest.mark.parametrize(
    "away", [ControlTimeout("tcp://master:4507", 2), ControlError("StoreUnavailable", "redis does not answer")]
)
def test_a_master_that_is_away_for_a_look_ends_no_wait(
    master: Callable[..., Any], away: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({"publish": job("a"), "job_returns": away}, [(30, *ret("a", 7))])
    assert salt.run(["*", "f.x", "-t", "60"], fake.context()) == 0
    assert capsys.readouterr() == ("a:\n    7\n", "")
    assert fake.sent("job_returns")


def test_without_the_bus_a_job_that_runs_on_is_waited_for(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    probes = iter(range(1, 100))

    def publish(fields: dict[str, Any]) -> dict[str, Any]:
        return job("a") if fields["fun"] == "f.x" else {"jid": f"probe{next(probes)}", "minions": ["a"]}

    def returns(fields: dict[str, Any]) -> dict[str, Any]:
        if fields["jid"] == JID:
            return {"a": ret("a", "done")[1]} if fake.now >= 60 else {}
        return {"a": {"return": {"jid": JID, "pid": 7}}} if fake.now < 60 else {"a": {"return": {}}}

    fake = master({"publish": publish, "job_returns": returns}, hears=False)
    assert salt.run(["*", "f.x", "-t", "5"], fake.context()) == 0
    assert capsys.readouterr().out == "a:\n    done\n"
    assert 60 <= fake.now <= 66


def test_without_the_event_bus_the_job_cache_is_asked(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({"publish": job("a"), "job_returns": {"a": ret("a", True)[1]}}, hears=False)
    assert salt.run(["*", "test.ping"], fake.context()) == 0
    out, err = capsys.readouterr()
    assert out == "a:\n    True\n"
    assert "no answer from the event bus at 127.0.0.1:4513" in err
    assert fake.now < 1


def test_refused_probe_does_not_end_the_wait(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def publish(fields: dict[str, Any]) -> dict[str, Any]:
        if fields["fun"] == "saltutil.find_job":
            raise ControlError("AuthorizationError", "not allowed")
        return job("a")

    fake = master({"publish": publish, "job_returns": {}}, [(7, *ret("a", True))])
    assert salt.run(["*", "test.sleep"], fake.context()) == 0
    assert "cannot be asked" in capsys.readouterr().err


def test_static_json_is_one_document(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a", "b")}, [(0, *ret("b", True)), (1, *ret("a", [1]))])
    assert salt.run(["*", "f.x", "--out=json", "--static"], fake.context()) == 0
    assert json.loads(capsys.readouterr().out) == {"a": [1], "b": True}


def test_json_is_one_document_a_minion(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a", "b")}, [(0, *ret("b", True)), (1, *ret("a", [1]))])
    assert salt.run(["*", "f.x", "--out=json", "--out-indent=-1"], fake.context()) == 0
    assert capsys.readouterr().out == '{"b": true}\n{"a": [1]}\n'


def test_async(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a")})
    assert salt.run(["--async", "*", "f.x"], fake.context()) == 0
    assert capsys.readouterr().out == f"Executed command with job ID: {JID}\n"
    assert fake.order == ["publish"]


def test_verbose_and_summary(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master(
        {"publish": job("a", "b", missing=("ghost",))}, [(0, *ret("a", True)), (0, *ret("b", "bad", retcode=1))]
    )
    assert salt.run(["-v", "--summary", "*", "f.x", "--out", ""], fake.context()) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"Executing job with jid {JID}\n{'-' * 43}\n\na:\n")
    rule = "-" * 43
    assert out.endswith(
        f"\n\n{rule}\nSummary\n{rule}\n# of minions targeted: 3\n# of minions returned: 2\n"
        "# of minions that did not return: 1\n# of minions with errors: 1\n"
        f"Minions not responding: ghost\nMinions with failures: b\n{rule}\n"
    )


def test_show_jid(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    salt.run(["--show-jid", "*", "f.x"], master({"publish": job("a")}, [(0, *ret("a", 1))]).context())
    assert capsys.readouterr().out == f"jid: {JID}\na:\n    1\n"


@pytest.mark.parametrize("flag", ["-v", "--show-jid"])
def test_what_static_shows_is_one_document(
    master: Callable[..., Any], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = master({"publish": job("a")}, [(0, *ret("a", 1))])
    assert salt.run([flag, "--static", "--out=json", "--out-indent=-1", "*", "f.x"], fake.context()) == 0
    out, err = capsys.readouterr()
    assert out == '{"a": 1}\n'
    assert JID in err


def test_documentation(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    docs = {"test.ping": "\n    Pings.\n\n        example\n    ", "a.b": "Ab.", "no.doc": ""}
    fake = master({"publish": job("a", "b")}, [(0, *ret("a", docs)), (0, *ret("b", docs))])
    assert salt.run(["-d"], fake.context()) == 0
    assert capsys.readouterr().out == "a.b:\n\n    Ab.\n\ntest.ping:\n\n    Pings.\n\n        example\n\n"


def test_ctrl_c_leaves_the_job_running(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a")}, [(1, KeyboardInterrupt(), None)])
    assert salt.run(["*", "f.x"], fake.context()) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"\nExiting gracefully on Ctrl-c\nThis job's jid is: {JID}\n{LATER}\n\nsalt-run jobs.lookup_jid {JID}\n"
    )


def test_master_away(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": ControlTimeout("tcp://master:4507", 10)})
    assert salt.run(["*", "f.x"], fake.context()) == 69
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ERROR: no answer from the master at tcp://master:4507 within 10 s")
    assert err.count("\n") == 1


def test_master_goes_away_during_the_wait(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a"), "job_returns": ControlTimeout("tcp://master:4507", 10)})
    assert salt.run(["*", "f.x"], fake.context()) == 69
    err = capsys.readouterr().err
    assert "tcp://master:4507" in err
    assert f"salt-run jobs.lookup_jid {JID}" in err


def test_refusal(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": ControlError("TargetError", "node group nope is not defined")})
    assert salt.run(["-N", "nope", "f.x"], fake.context()) == 1
    assert capsys.readouterr() == ("", "ERROR: node group nope is not defined\n")


def test_bad_configuration(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def load(config_dir: str | None) -> Any:
        raise ConfigError(f"{config_dir}/master: unknown option 'timeuot'; the nearest is 'timeout'")

    context = master().context()
    object.__setattr__(context, "load", load)
    assert salt.run(["-c", "/x", "*", "f.x"], context) == 78
    assert capsys.readouterr() == ("", "ERROR: /x/master: unknown option 'timeuot'; the nearest is 'timeout'\n")


def test_out_file(master: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out"
    target.write_text("old\n")
    events = [(0, *ret("a", True)), (0, *ret("b", "ü"))]
    words = ["*", "f.x", "--out-file", str(target)]
    salt.run(words, master({"publish": job("a", "b")}, list(events)).context())
    assert target.read_text(encoding="utf-8") == "a:\n    True\nb:\n    ü\n"
    salt.run([*words, "--out-file-append"], master({"publish": job("a", "b")}, list(events)).context())
    assert target.read_text(encoding="utf-8").count("True") == 2
    assert capsys.readouterr().out == ""
    assert salt.run(["*", "f.x", "--out-file", str(tmp_path / "no" / "dir")], master().context()) == 64
    assert capsys.readouterr().err.startswith("ERROR: --out-file ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["*"], "a target and a function are needed"),
        ([], "a target and a function are needed"),
        (["--nosuch", "*", "f.x"], "--nosuch"),
        (["-E", "-L", "*", "f.x"], "not allowed with"),
        (["*", "f.x", "-t", "soon"], "invalid int value"),
        (["*", "f.x,f.y", "a", ",", "b", ",", "c"], "2 functions need 2 lists"),
        (["*", "-d", "a", "b"], "one function or module at a time"),
        (["*", "f.x", "--state-verbose=maybe"], "neither True nor False"),
    ],
)
def test_wrong_command_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_request(words)
    assert ended.value.code == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: salt [options] '<target>' <function> [arguments]")
    assert said in err


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_request([word])
    assert ended.value.code == 0
    assert "salt" in capsys.readouterr().out


def test_colour_is_forced(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"publish": job("a")}, [(0, *ret("a", True))])
    salt.run(["*", "f.x", "--force-color"], fake.context({"NO_COLOR": "1"}))
    assert capsys.readouterr().out == "\x1b[0;36ma\x1b[0;0m:\n    \x1b[0;1;33mTrue\x1b[0;0m\n"


def test_state_output_comes_from_the_configuration(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run = {
        "test_|-a_|-a_|-nop": {
            "result": True,
            "changes": {},
            "comment": "",
            "name": "a",
            "__run_num__": 0,
        }
    }
    fake = master({"publish": job("a")}, [(0, *ret("a", run, out="highstate"))], options={"state_output": "terse"})
    salt.run(["*", "state.apply"], fake.context())
    assert "  Name: a - Function: test.nop - Result: Clean\n" in capsys.readouterr().out


def _states(**results: bool) -> dict[str, Any]:
    return {
        f"test_|-{name}_|-{name}_|-nop": {
            "result": result,
            "changes": {},
            "comment": "",
            "__run_num__": number,
            "__id__": name,
            "__sls__": "web",
        }
        for number, (name, result) in enumerate(results.items())
    }


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["exclude=True,", "--state-output=filter"], {}),
        (["--state-output=filter"], {"state_output_exclude": "True,"}),
        (["exclude=True", "--state-output=filter_id"], {"state_output_exclude": "False,"}),
        (["--output-diff"], {}),
        (["--state-verbose=False"], {}),
    ],
)
def test_states_that_are_left_out(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str], words: list[str], options: dict[str, Any]
) -> None:
    load = ret("web1", _states(kept=False, gone=True), out="highstate", retcode=2)
    fake = master({"publish": job("web1")}, [(0.1, *load)], options=options)
    assert salt.run(["*", "state.apply", *words], fake.context()) == 1
    out = capsys.readouterr().out
    assert "ID: kept" in out
    assert "gone" not in out
    assert "Succeeded: 1\nFailed:    1" in out


def test_one_line_a_state(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master(
        {"publish": job("web1")},
        [(0.1, *ret("web1", _states(a=True, b=False), out="highstate"))],
        options={"state_output": "terse", "state_tabular": "{1}={4}"},
    )
    salt.run(["*", "state.apply"], fake.context())
    assert capsys.readouterr().out.startswith("web1:\na=Clean\nb=Failed\n")


@pytest.mark.parametrize(
    ("words", "options", "shown", "hidden"),
    [
        ([], {}, ["a:", "ghost:"], ["jid: ", "# of minions"]),
        ([], {"show_jid": True}, [f"jid: {JID}"], []),
        ([], {"cli_summary": True}, ["# of minions targeted: 2"], []),
        ([], {"cli_summary": True, "output": "json"}, ['"a": 1'], ["# of minions"]),
        ([], {"show_timeout": False}, ["a:"], ["ghost"]),
        (["--show-timeout"], {"show_timeout": False}, ["ghost:"], []),
        (["--hide-timeout"], {}, ["a:"], ["ghost"]),
    ],
)
def test_what_is_shown_beside_the_returns(
    master: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    options: dict[str, Any],
    shown: list[str],
    hidden: list[str],
) -> None:
    fake = master({"publish": job("a", missing=("ghost",)), "job_returns": {}}, [(0, *ret("a", 1))], options=options)
    salt.run(["*", "f.x", *words], fake.context())
    out = capsys.readouterr().out
    assert [text for text in shown if text not in out] == []
    assert [text for text in hidden if text in out] == []
