"""Jobs and runners that minions ask for, through the door: who may, what is published, who gets the returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltern.mworker.commands import peers
from saltern.mworker.deferred_reply import SealedDeferredReply

pytestmark = pytest.mark.redis

Worker = Any

JOB = {
    "fun": "test.ping",
    "arg": [],
    "tgt": "*",
    "tgt_type": "glob",
    "ret": "",
    "tmo": 5,
    "form": "clean",
    "no_parse": [],
}


@pytest.fixture
def worker(new_worker: Callable[..., Worker]) -> Worker:
    """Its peer rules let web1 call test.*, and run one runner."""
    made = new_worker(
        peer={"web1": ["test."]},
        peer_run={"web1": ["test.arg", {"@wheel": ["key.list_all", {"key.finger": {"args": ["web"]}}]}], "web3": ["."]},
        nodegroups={"all": "web* or db1", "dear": "I@secret:s*"},
    )
    made.accept("db1")
    return made


def pillar(worker: Worker, minion: str, **data: Any) -> None:
    worker.context.keep_pillar(minion, data)


@pytest.mark.parametrize(("rules", "pinned"), [([{"db*": ["test."]}], True), (["test."], False)], ids=str)
def test_what_may_run_on_some_minions_is_sent_to_those(
    new_worker: Callable[..., Worker], rules: list[Any], pinned: bool
) -> None:
    """Minions decide by what they are now, and who may was decided by what the master knows of them."""
    worker = new_worker(peer={"web1": rules})
    worker.accept("db1")
    worker.store.cache.set_grains("db1", {"role": "bank"})
    minion = worker.minion()
    worker.store.cache.set_grains("web1", {"role": "shop"})
    assert minion.ask("minion_pub", **JOB | {"tgt": "role:bank", "tgt_type": "grain"})["minions"] == ["db1"]
    ((_, sent),) = worker.store.publications.range_since(0)
    assert (sent["tgt"], sent["tgt_type"]) == ((["db1"], "list") if pinned else ("role:bank", "grain"))


def test_a_job_is_published_in_the_minions_name(worker: Worker) -> None:
    minion = worker.minion()
    answer = minion.ask("minion_pub", **JOB | {"fun": "test.arg", "arg": ["1", "a=b", "c=no"], "no_parse": ["c"]})
    assert answer["minions"] == ["db1", "web1"]
    load = worker.store.jobs.load(answer["jid"])
    assert load == {
        "jid": answer["jid"],
        "fun": "test.arg",
        "arg": [1, {"__kwarg__": True, "a": "b", "c": "no"}],
        "tgt": "*",
        "tgt_type": "glob",
        "ret": "",
        "user": "web1",
        "id": "web1",
        "owner": "minion web1",
    }
    assert worker.tags() == [f"salt/job/{answer['jid']}/{what}" for what in ("new", "publish")]


def test_a_refusal_is_explained_to_those_who_ask(worker: Worker) -> None:
    answer = worker.minion().ask("minion_pub", **JOB | {"fun": "cmd.run", "explain": True})
    assert answer == {
        "refused": "the master's option peer does not let web1 call cmd.run there; it would with"
        " `peer: {'web1$': [cmd.run]}`"
    }


def test_whole_returns(worker: Worker) -> None:
    minion = worker.minion()
    jid = minion.ask("minion_pub", **JOB)["jid"]
    minion.ask("_return", jid=jid, fun="test.ping", **{"return": True}, retcode=0, success=True, out="nested")
    whole = {"ret": True, "out": "nested", "retcode": 0, "jid": jid}
    assert minion.ask("pub_ret", jid=jid, form="full") == {"web1": whole}


def test_returns_are_for_who_published(worker: Worker) -> None:
    minion = worker.minion()
    jid = minion.ask("minion_pub", **JOB)["jid"]
    minion.ask("_return", jid=jid, fun="test.ping", **{"return": True}, retcode=0, success=True, out="nested")
    assert minion.ask("pub_ret", jid=jid) == {"web1": {"ret": True, "out": "nested"}}
    other = worker.minion("web2")
    for asked in (jid, "20000101000000000000", "", None, ["x"]):
        assert other.ask("pub_ret", jid=asked) == {}
    operators = worker.control("publish", fun="test.ping", tgt="*")["jid"]
    assert minion.ask("pub_ret", jid=operators) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"fun": "cmd.run"},
        {"fun": "test.ping,cmd.run", "arg": [[], ["id"]]},
        {"fun": "publish.publish"},
        {"fun": ""},
        {"fun": ["test.ping"]},
        {"fun": None},
        {"arg": "x"},
        {"arg": ...},
        {"tgt": ...},
        {"ret": ...},
        {"tgt": "a and and b", "tgt_type": "compound"},
        {"tgt_type": "nosuch"},
        {"tgt": "nosuch", "tgt_type": "nodegroup"},
    ],
)
def test_what_is_refused_is_an_empty_answer(worker: Worker, change: dict[str, Any]) -> None:
    pillar(worker, "db1", secret="sesame")
    load = {name: value for name, value in (JOB | change).items() if value is not ...}
    assert worker.minion().ask("minion_pub", **load) == {}
    assert worker.minion("web2").ask("minion_pub", **JOB) == {}
    assert worker.events == []


@pytest.mark.parametrize(
    ("tgt", "tgt_type", "meant"),
    [
        ("secret:sesame", "pillar", ["db1"]),
        ("I@secret:sesame or web1", "compound", ["db1", "web1"]),
        ("db1,web1", "list", ["db1", "web1"]),
        ("all", "nodegroup", ["db1", "web1"]),
        ("dear", "nodegroup", ["db1"]),
        ("nobody", "glob", []),
    ],
)
def test_targets(worker: Worker, tgt: str, tgt_type: str, meant: list[str]) -> None:
    pillar(worker, "db1", secret="sesame")
    answer = worker.minion().ask("minion_pub", **JOB | {"tgt": tgt, "tgt_type": tgt_type})
    assert answer["minions"] == meant
    assert bool(answer["jid"]) is bool(meant)


def test_several_functions_have_arguments_each(worker: Worker) -> None:
    answer = worker.minion().ask("minion_pub", **JOB | {"fun": "test.ping,test.arg", "arg": ["", "1 a=2"]})
    load = worker.store.jobs.load(answer["jid"])
    assert (load["fun"], load["arg"]) == (["test.ping", "test.arg"], [[], [1, {"__kwarg__": True, "a": 2}]])


def test_a_message_that_comes_twice_is_one_job(worker: Worker) -> None:
    minion = worker.minion()
    nonce = {"nonce": "n" * 32}
    first = peers.pub(worker.context, minion.id, JOB | nonce)
    assert peers.pub(worker.context, minion.id, JOB | nonce) == first
    assert peers.pub(worker.context, minion.id, JOB | {"nonce": "m" * 32}) != first


class TestRunner:
    """``minion_runner``."""

    def test_it_is_answered_by_a_process_of_its_own(self, worker: Worker) -> None:
        reply, _ = worker.minion().send(
            {"cmd": "minion_runner", "id": "web1", "fun": "test.arg", "arg": [1], "no_parse": []}
        )
        assert isinstance(reply, SealedDeferredReply)
        assert reply.work is not None

    @pytest.mark.parametrize(
        ("name", "fun", "arg", "answer"),
        [
            ("web2", "test.arg", [], {}),
            ("web1", "manage.up", [], {}),
            ("web1", None, [], {}),
            ("web1", "test.arg", "x", {}),
            ("web1", "test.argument", [], "'test.argument' is not available. The nearest is 'test.arg'."),
        ],
    )
    def test_what_is_not_run(self, worker: Worker, name: str, fun: Any, arg: Any, answer: Any) -> None:
        assert worker.minion(name).ask("minion_runner", fun=fun, arg=arg) == answer

    def test_a_message_that_comes_twice_is_one_runner(self, worker: Worker) -> None:
        load = {"fun": "test.arg", "arg": [], "nonce": "n" * 32}
        assert peers.runner(worker.context, "web1", load).work is not None
        assert peers.runner(worker.context, "web1", load).work is None

    def test_the_reason_is_for_those_who_ask(self, worker: Worker) -> None:
        answer = worker.minion("web2").ask("minion_runner", fun="test.arg", arg=[], form="full")
        assert answer == {
            "form": "full",
            "refused": "the master's option peer_run does not let web2 call test.arg; it would with"
            " `peer_run: {'web2$': [test.arg]}`",
        }

    def test_an_unknown_runner_fails(self, worker: Worker) -> None:
        answer = worker.minion().ask("minion_runner", fun="test.argument", arg=[], form="full")
        assert (answer["form"], answer["success"]) == ("full", False)
        assert "'test.argument' is not available" in answer["return"]


class TestWheel:
    """``minion_wheel``."""

    def test_a_row_allows_it(self, worker: Worker) -> None:
        answer = worker.minion().ask("minion_wheel", fun="key.list_all", arg=[], kwarg={})
        assert (answer["success"], answer["return"]["minions"]) == (True, ["db1", "web1"])
        assert worker.events[-1][1]["user"] == "web1"

    @pytest.mark.parametrize(
        ("name", "fun", "arg"),
        [
            ("web1", "key.accept", ["db2"]),
            ("web1", "key.finger", ["db1"]),
            ("web2", "key.list_all", []),
            # An expression of runners, even of all, is none of wheel functions.
            ("web3", "key.list_all", []),
        ],
    )
    def test_what_no_row_allows(self, worker: Worker, name: str, fun: str, arg: list[str]) -> None:
        minion = worker.minion(name)
        assert minion.ask("minion_wheel", fun=fun, arg=arg, kwarg={}) == {}
        answer = minion.ask("minion_wheel", fun=fun, arg=arg, kwarg={}, explain=True)
        assert answer["refused"].endswith(f"`peer_run: {{'{name}$': [{{'@wheel': [{fun}]}}]}}`")
        assert worker.events == []

    def test_arguments_are_checked(self, worker: Worker) -> None:
        assert worker.minion().ask("minion_wheel", fun="key.finger", arg=["web1"], kwarg={})["success"] is True

    @pytest.mark.parametrize("change", [{"fun": None}, {"arg": "x"}, {"kwarg": [1]}])
    def test_malformed(self, worker: Worker, change: dict[str, Any]) -> None:
        assert worker.minion().ask("minion_wheel", **{"fun": "key.list_all", "arg": [], "kwarg": {}, **change}) == {}

    def test_its_own_fault_is_its_value(self, worker: Worker) -> None:
        answer = worker.minion().ask("minion_wheel", fun="key.list_all", arg=[1, 2], kwarg={})
        assert answer["success"] is False


class TestPublish:
    """``minion_publish``."""

    def test_the_returns_come_later(self, worker: Worker) -> None:
        reply, _ = worker.minion().send({"cmd": "minion_publish", "id": "web1", **JOB})
        assert isinstance(reply, SealedDeferredReply)
        assert len(worker.tags()) == 2

    @pytest.mark.parametrize(
        ("given", "seconds"), [(7, 7.0), ("8", 8.0), (10**9, 3600.0), (2**64 - 1, 3600.0), (-1, -1.0)]
    )
    def test_nobody_waits_for_ever(self, given: Any, seconds: float) -> None:
        assert peers._seconds({"timeout": given}, 5) == seconds

    @pytest.mark.parametrize(
        "change",
        [
            {"tmo": "soon"},
            {"timeout": None},
            {"timeout": float("inf")},
            {"timeout": "9" * 400},
            {"fun": "cmd.run"},
            {"tgt": "nobody"},
        ],
    )
    def test_what_is_refused_is_an_empty_answer(self, worker: Worker, change: dict[str, Any]) -> None:
        assert worker.minion().ask("minion_publish", **JOB | change) == {}
