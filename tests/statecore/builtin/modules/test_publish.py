"""The module ``publish``, and what is built on it: what the master is asked, and what is made of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.model.errors import CommandError, InvocationError

PING = {"function": "test.ping", "seconds": 60, "args": [1], "kwargs": {"a": 2}}


@pytest.fixture
def master(plain: Any) -> Any:
    """Publishes whatever it is asked to; what came back by then is in ``returned``, look for look."""
    plain.returned = [{"web1": {"ret": True}}, {"web1": {"ret": True}, "web2": {"ret": None, "out": "nested"}}]
    looks = iter(plain.returned)
    plain.ports.masters["minion_pub"] = lambda fields: {"jid": "20260101000000000000", "minions": ["web1", "web2"]}
    plain.ports.masters["pub_ret"] = lambda fields: next(looks)
    return plain


def test_returns_are_waited_for(master: Any) -> None:
    assert master.call("publish.publish", "web*", "test.ping") == {"web1": True, "web2": None}
    (cmd, fields), *looks = master.ports.asked
    assert (cmd, fields) == (
        "minion_pub",
        {
            "fun": "test.ping",
            "arg": [],
            "tgt": "web*",
            "tgt_type": "glob",
            "ret": "",
            "tmo": 5,
            "form": "clean",
            "no_parse": [],
        },
    )
    assert looks == [("pub_ret", {"jid": "20260101000000000000"})] * 2


def test_all_of_it(master: Any) -> None:
    assert master.call("publish.full_data", "web*", "test.ping")["web2"] == {"ret": None, "out": "nested"}
    assert master.ports.asked[0][1]["form"] == "full"


def test_who_is_silent_is_not_there(master: Any) -> None:
    assert master.call("publish.publish", "web*", "test.ping", timeout=0) == {"web1": True}


@pytest.mark.parametrize(
    ("arg", "sent"),
    [
        (None, []),
        ("", []),
        ("a", ["a"]),
        ("a,b", ["a,b"]),
        (["a", 1], ["a", 1]),
        ("['x=1', 'y=2']", ["x=1", "y=2"]),
        ("[", ["["]),
        (0, [0]),
        ({"a": 1}, [{"a": 1}]),
    ],
)
def test_arguments(master: Any, arg: Any, sent: list[Any]) -> None:
    master.call("publish.publish", "*", "test.arg", arg)
    assert master.ports.asked[0][1]["arg"] == sent


@pytest.mark.parametrize("answer", [{}, None, "", {"jid": 0, "minions": []}])
def test_what_the_master_does_not_publish_returns_nothing(plain: Any, answer: Any) -> None:
    plain.ports.masters["minion_pub"] = lambda fields: answer
    assert plain.call("publish.publish", "*", "test.ping") == {}
    assert plain.call("publish.publish", "*", "publish.publish") == {}
    assert len(plain.ports.asked) == 1


def test_a_timeout_that_is_none(plain: Any) -> None:
    with pytest.raises(InvocationError, match="timeout is a number of seconds, not 'soon'"):
        plain.call("publish.publish", "*", "test.ping", timeout="soon")


def test_without_a_master(plain: Any) -> None:
    plain.opts["file_client"] = "local"
    assert plain.call("publish.publish", "*", "test.ping") == {}
    said = "No access to master. If using salt-call with --local, please remove."
    assert plain.call("publish.runner", "manage.up") == said
    assert plain.ports.asked == []


def test_runners(plain: Any) -> None:
    plain.ports.masters["minion_runner"] = lambda fields: ["web1"]
    assert plain.call("publish.runner", "manage.up", arg="x", timeout=9) == ["web1"]
    assert plain.ports.asked == [("minion_runner", {"fun": "manage.up", "arg": ["x"], "tmo": 9, "no_parse": []})]


class TestSchedule:
    """``schedule.copy`` and ``move``."""

    @pytest.fixture
    def minion(self, master: Any) -> Any:
        """Its schedule has ``mine``; pillar's has ``pillars``."""
        whole = {"mine": dict(PING), "pillars": dict(PING)}
        told = {"result": True, "comment": ""}
        master.returned[:] = [{"web1": {"ret": told}, "web2": {"ret": told}}]

        def manage(request: Any) -> Any:
            if request["verb"] == "delete":
                whole.pop(request["name"])
            shown = {"pillars": PING} if request.get("where") == "pillar" else whole
            return {"schedule": dict(shown), "unsaved": ""}

        master.ports.managers["schedule"] = manage
        master.whole = whole
        return master

    @pytest.mark.parametrize(("verb", "left"), [("copy", {"mine", "pillars"}), ("move", {"pillars"})])
    def test_a_job_goes_to_others(self, minion: Any, verb: str, left: set[str]) -> None:
        comment = {"copy": "Copied Job mine from schedule to minion(s).", "move": "Moved Job mine from schedule."}[verb]
        answer = minion.call(f"schedule.{verb}", "mine", "web*")
        assert answer == {"result": True, "comment": comment, "minions": ["web1", "web2"]}
        sent = minion.ports.asked[0][1]
        assert (sent["fun"], sent["tgt"]) == ("schedule.add", "web*")
        job = {"function": "test.ping", "seconds": 60, "enabled": True, "job_args": [1], "job_kwargs": {"a": 2}}
        assert sent["arg"] == [{"__kwarg__": True, "name": "mine", **job}]
        assert set(minion.whole) == left

    def test_it_stays_where_others_do_not_take_it(self, minion: Any) -> None:
        minion.returned[0]["web2"]["ret"] = {"result": False, "comment": "no"}
        answer = minion.call("schedule.move", "mine", "web*")
        assert answer == {"result": False, "comment": "the following minions return False", "minions": ["web2"]}
        assert "mine" in minion.whole

    @pytest.mark.parametrize(
        ("verb", "name", "comment"),
        [
            ("copy", "other", "Job other does not exist."),
            ("move", "", "Job name is required."),
            ("move", "pillars", "Job pillars is one of pillar, and is moved there."),
        ],
    )
    def test_what_cannot_be_done(self, minion: Any, verb: str, name: str, comment: str) -> None:
        assert minion.call(f"schedule.{verb}", name, "web*") == {"result": False, "comment": comment}
        assert minion.ports.asked == []

    def test_nobody_answers(self, minion: Any) -> None:
        minion.ports.masters["minion_pub"] = lambda fields: {}
        said = {"result": False, "comment": "no servers answered the published schedule.add command"}
        assert minion.call("schedule.copy", "mine", "web*") == said

    @pytest.mark.parametrize(("verb", "done"), [("copy", "copied"), ("move", "moved")])
    def test_test_mode(self, minion: Any, verb: str, done: str) -> None:
        answer = minion.call(f"schedule.{verb}", "mine", "web*", test=True)
        assert answer == {"result": True, "comment": f"Job: mine would be {done} from schedule."}
        assert minion.ports.asked == []


def test_saltutil_asks_by_the_same_road(master: Any) -> None:
    told = master.call("saltutil.cmd", "web*", "test.arg", ["a"], kwarg={"b": 2}, ret="redis")
    assert told["web2"] == {"ret": None, "out": "nested"}
    cmd, fields = master.ports.asked[0]
    assert (cmd, fields["arg"], fields["ret"], fields["form"]) == (
        "minion_pub",
        ["a", {"b": 2, "__kwarg__": True}],
        "redis",
        "full",
    )
    with pytest.raises(InvocationError, match="not supported on a minion: batch"):
        master.call("saltutil.cmd", "*", "test.ping", batch=1)


def test_saltutil_asks_for_each_minion(master: Any) -> None:
    assert [list(one) for one in master.call("saltutil.cmd_iter", "web*", "test.ping")] == [["web1"], ["web2"]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"refused": "the option peer does not let web1 call test.ping"}, "peer does not let web1 call test.ping"),
        ({}, "its option peer does not let this minion call test.ping there"),
    ],
)
def test_saltutil_says_that_the_master_refuses_a_job(plain: Any, answer: Any, message: str) -> None:
    plain.ports.masters["minion_pub"] = lambda fields: answer
    with pytest.raises(CommandError, match=message):
        plain.call("saltutil.cmd", "*", "test.ping")
    assert plain.call("publish.full_data", "*", "test.ping") == {}


_DONE = {"form": "full", "return": ["web1"], "success": True, "jid": "1"}


@pytest.mark.parametrize(
    ("answer", "full", "value"),
    [
        (_DONE, False, ["web1"]),
        (_DONE, True, {"return": ["web1"], "success": True, "jid": "1"}),
        # Salt's own master.
        (["web1"], False, ["web1"]),
        ({"return": 1}, False, {"return": 1}),
        (["web1"], True, {"return": ["web1"], "success": True}),
    ],
)
def test_saltutil_runs_runners(plain: Any, answer: Any, full: bool, value: Any) -> None:
    plain.ports.masters["minion_runner"] = lambda fields: answer
    assert plain.call("saltutil.runner", "test.arg", ["a"], {"b": 2}, full_return=full, c=3) == value
    (cmd, fields) = plain.ports.asked[0]
    assert (cmd, fields["fun"], fields["arg"]) == (
        "minion_runner",
        "test.arg",
        ["a", {"b": 2, "c": 3, "__kwarg__": True}],
    )


def test_saltutil_calls_wheel_functions(plain: Any) -> None:
    plain.ports.masters["minion_wheel"] = lambda fields: {"return": {"minions": []}, "success": True}
    assert plain.call("saltutil.wheel", "key.list", "acc", a=1) == {"return": {"minions": []}, "success": True}
    assert plain.ports.asked == [
        ("minion_wheel", {"fun": "key.list", "arg": ["acc"], "kwarg": {"a": 1}, "explain": True})
    ]


@pytest.mark.parametrize(
    ("function", "cmd", "answer", "message"),
    [
        ("runner", "minion_runner", {"form": "full", "refused": "no row"}, "The master refuses: no row"),
        ("wheel", "minion_wheel", {"refused": "no row"}, "The master refuses: no row"),
        ("wheel", "minion_wheel", {}, "does not run wheel functions for minions, and did not run key.list_all"),
        ("wheel", "minion_wheel", False, "use salt-key"),
    ],
)
def test_saltutil_says_that_the_master_refuses(plain: Any, function: str, cmd: str, answer: Any, message: str) -> None:
    plain.ports.masters[cmd] = lambda fields: answer
    with pytest.raises(CommandError, match=message):
        plain.call(f"saltutil.{function}", "key.list_all")
