"""What our own minions ask and say of their jobs, and what stock ones are sent again when they are heard of."""

from __future__ import annotations

import time
from typing import Any

import pytest

from saltern.mworker.commands import missed as missed_module
from saltwire.jid import new_jid

pytestmark = pytest.mark.redis

Worker = Any


def publish(worker: Worker, *minions: str, fun: str = "test.ping", **fields: Any) -> str:
    """The JID of a new job."""
    answer = worker.control("publish", tgt=list(minions), tgt_type="list", fun=fun, arg=[], **fields)
    assert isinstance(answer, dict), answer
    return str(answer["jid"])


def sent(worker: Worker) -> list[tuple[str, Any]]:
    """(jid, target) of every publication."""
    return [(load["jid"], load["tgt"]) for _, load in worker.store.publications.range_since(0)]


def states(worker: Worker, jid: str) -> dict[str, str]:
    return {minion: life.state.value for minion, life in worker.store.jobs.life(jid).items()}


class TestMissed:
    """``_missed``."""

    def test_a_minion_has_the_jobs_that_it_did_not_take(self, worker: Worker) -> None:
        minion = worker.minion()
        worker.accept("web2")
        jids = [publish(worker, "web1", "web2", fun=f"test.{name}") for name in ("a", "b", "c")]
        publish(worker, "web2")
        minion.ask("_return", jid=jids[1], fun="test.b", **{"return": True})
        answer = minion.ask("_missed", after=0)
        assert [job["jid"] for job in answer["jobs"]] == [jids[0], jids[2]]
        assert answer["next"] == 0
        job = answer["jobs"][0]
        assert (job["fun"], job["arg"], job["tgt"], job["tgt_type"]) == ("test.a", [], ["web1", "web2"], "list")
        window = worker.context.options.replay_window
        assert job["replay_until"] > (time.time() + window - 60) * 1000
        assert worker.store.presence.present(0) == {"web1"}

    def test_what_must_not_run_late_is_not_among_them(self, worker: Worker) -> None:
        minion = worker.minion()
        publish(worker, "web1", no_replay=True)
        for fun in ("saltutil.find_job", "saltutil.running"):
            publish(worker, "web1", fun=fun)
        answer = minion.ask("_missed", after=0)
        assert (answer["jobs"], answer["next"]) == ([], 0)
        assert abs(answer["now"] - time.time() * 1000) < 60_000

    def test_only_what_came_after(self, worker: Worker) -> None:
        minion = worker.minion()
        publish(worker, "web1")
        assert minion.ask("_missed", after=int((time.time() + 60) * 1000))["jobs"] == []

    @pytest.mark.parametrize("after", [None, "x", -1, 1.5, True, [1]])
    def test_whatever_it_asks_for(self, worker: Worker, after: Any) -> None:
        minion = worker.minion()
        jid = publish(worker, "web1")
        assert [job["jid"] for job in minion.ask("_missed", after=after)["jobs"]] == [jid]
        assert minion.ask("_missed")["jobs"]

    def test_a_long_answer_comes_in_parts(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(missed_module, "_MOST_BYTES", 2500)
        minion = worker.minion()
        jids = []
        for _ in range(5):
            jids.append(publish(worker, "web1", fun="x." + "y" * 1000))
            time.sleep(0.002)
        came: list[str] = []
        after = 0
        for _ in range(9):
            answer = minion.ask("_missed", after=after)
            came += [job["jid"] for job in answer["jobs"] if job["jid"] not in came]
            after = answer["next"]
            if not after:
                break
        assert came == jids
        assert after == 0


class TestSigns:
    """``_job_signs``."""

    def test_a_minion_says_that_it_has_begun(self, worker: Worker) -> None:
        minion = worker.minion()
        jid = publish(worker, "web1")
        now = int(time.time() * 1000)
        assert minion.ask("_job_signs", signs=[{"jid": jid, "sign": "started", "ms": now}]) is None
        (life,) = worker.store.jobs.life(jid).values()
        assert life.state.value == "started"
        assert minion.ask("_missed", after=0)["jobs"] == []

    @pytest.mark.parametrize(
        "signs",
        [
            None,
            "x",
            [1, None, "x"],
            [{}],
            [{"jid": "JID", "sign": "returned", "ms": 1}],
            [{"jid": "JID", "sign": "cancelled", "ms": 1}],
            [{"jid": "JID", "sign": ["started"], "ms": 1}],
            [{"jid": "JID", "sign": "started", "ms": "1"}],
            [{"jid": "JID", "sign": "started", "ms": True}],
            [{"jid": "JID", "sign": "started", "ms": 1 << 60}],
            [{"jid": "JID", "sign": "started"}],
            [{"jid": "../x", "sign": "started", "ms": 1}],
            [{"jid": 5, "sign": "started", "ms": 1}],
        ],
        ids=str,
    )
    def test_what_is_no_sign_changes_nothing(self, worker: Worker, signs: Any) -> None:
        minion = worker.minion()
        jid = publish(worker, "web1")
        for sign in signs if isinstance(signs, list) else ():
            if isinstance(sign, dict) and sign.get("jid") == "JID":
                sign["jid"] = jid
        assert minion.ask("_job_signs", signs=signs) is None
        assert states(worker, jid) == {"web1": "expected"}

    def test_nobody_speaks_for_another_minion(self, worker: Worker) -> None:
        other = worker.minion("web2")
        worker.accept("web1")
        jid = publish(worker, "web1")
        other.ask("_job_signs", signs=[{"jid": jid, "sign": "started", "ms": 1}], id="web1")
        assert states(worker, jid) == {"web1": "expected"}
        other.ask("_job_signs", signs=[{"jid": new_jid(time.time()), "sign": "started", "ms": 1}])


class TestWhenBack:
    """Jobs that wait, for minions that do not ask."""

    def test_a_job_is_sent_again_at_the_start_event(self, worker: Worker) -> None:
        worker.accept("web1", "web2")
        jid = publish(worker, "web1", "web2", when_back="1h")
        assert states(worker, jid) == {"web1": "offline", "web2": "offline"}
        minion = worker.minion()
        # Its subscription may not have arrived when it signs in: so the event counts, too, and each time.
        assert sent(worker)[1:] == [(jid, ["web1"])]
        for number in (2, 3):
            minion.ask("_minion_event", tag="salt/minion/web1/start", data="x", pretag=None)
            assert len(sent(worker)) == 1 + number
        assert states(worker, jid) == {"web1": "expected", "web2": "offline"}
        minion.ask("_return", jid=jid, fun="test.ping", **{"return": True})
        minion.ask("_minion_event", tag="salt/minion/web1/start", data="x", pretag=None)
        assert len(sent(worker)) == 4, "it has returned"

    def test_one_that_was_there_a_moment_ago_may_be_gone(self, worker: Worker) -> None:
        minion = worker.minion()
        jid = publish(worker, "web1", when_back=3600)
        assert states(worker, jid) == {"web1": "expected"}
        minion.ask("_minion_event", tag="other/event", data={}, pretag=None)
        minion.sign_in()
        assert len(sent(worker)) == 1, "it hears it, as far as anybody knows"
        minion.ask("_minion_event", tag="salt/minion/web1/start", data="x", pretag=None)
        assert sent(worker)[1:] == [(jid, ["web1"])]

    def test_any_word_of_a_minion_that_was_away_brings_it_its_jobs(self, worker: Worker) -> None:
        minion = worker.minion()
        worker.store.presence.forget("web1")
        jid = publish(worker, "web1", when_back=3600)
        minion.ask("_return", jid=new_jid(time.time() - 9), fun="test.ping", **{"return": True})
        assert sent(worker)[1:] == [(jid, ["web1"])]

    def test_a_minion_of_ours_asks_for_them_and_is_sent_nothing(self, worker: Worker) -> None:
        minion = worker.minion()
        minion.ask("_missed", after=0)
        worker.store.presence.forget("web1")
        jid = publish(worker, "web1", when_back=3600)
        minion.sign_in()
        minion.ask("_minion_event", tag="salt/minion/web1/start", data="x", pretag=None)
        assert len(sent(worker)) == 1
        assert [job["jid"] for job in minion.ask("_missed", after=0)["jobs"]] == [jid]

    def test_what_was_called_off_is_not_sent(self, worker: Worker) -> None:
        worker.accept("web1")
        jid = publish(worker, "web1", when_back=3600)
        assert worker.store.jobs.cancel(jid, None, int(time.time() * 1000)) == ["web1"]
        worker.minion().ask("_minion_event", tag="salt/minion/web1/start", data="x", pretag=None)
        assert len(sent(worker)) == 1
