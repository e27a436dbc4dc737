"""What becomes of a job on its minions, over a real Redis."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from masterstore import job_scripts, keys
from masterstore.job_filter import JobFilter
from masterstore.life import LETTERS, MOVES, Life, State
from masterstore.lives import Settled, SignResult, jid_ms
from masterstore.store import Store

pytestmark = pytest.mark.redis

JID, LATER, LATEST = "20260101000000000000", "20260101000001000000", "20260101000002000000"
MADE = jid_ms(JID)
TTL = 1000
S = State


def load(jid: str = JID, **fields: Any) -> dict[str, Any]:
    return {"jid": jid, "fun": "test.ping", "tgt": "*", "tgt_type": "glob", "arg": [], "user": "root"} | fields


def ret(minion: str, jid: str = JID, **fields: Any) -> dict[str, Any]:
    return {"jid": jid, "id": minion, "fun": "test.ping", "return": True, "retcode": 0, "success": True} | fields


def publish(store: Store, *minions: str, jid: str = JID, **more: Any) -> tuple[str, ...]:
    now = jid_ms(jid)
    return store.jobs.publish(load(jid), minions, request_id=jid, ttl=TTL, now_ms=now, **more).offline


def states(store: Store, jid: str = JID) -> dict[str, str]:
    return {minion: life.state.value for minion, life in store.jobs.life(jid).items()}


def counted(store: Store, *names: str, jid: str = JID) -> dict[str, str]:
    meta = store.jobs.meta(jid)
    return {name: meta[name] for name in names if name in meta}


def found(raw: redis.Redis, key: str) -> list[str]:
    return [jid.decode() for jid in raw.zrange(key, 0, -1)]


# --------------------------------------------------------------------------------------------------------------------- signs


def test_a_life_in_order(store: Store, raw: redis.Redis) -> None:
    publish(store, "a", "b")
    assert store.jobs.life(JID) == {minion: Life(S.EXPECTED, {S.EXPECTED: MADE}) for minion in "ab"}
    assert store.jobs.sign("a", [(JID, "delivered", MADE + 3), (JID, "started", MADE + 5)], MADE + 10) == [
        SignResult(JID, True, S.DELIVERED), SignResult(JID, True, S.STARTED)
    ]  # fmt: skip
    store.jobs.record_return(ret("a"), ttl=TTL, now_ms=MADE + 900)
    steps = {S.EXPECTED: MADE, S.DELIVERED: MADE + 3, S.STARTED: MADE + 5, S.RETURNED: MADE + 900}
    assert store.jobs.life(JID)["a"] == Life(S.RETURNED, steps)
    assert raw.hgetall(keys.life(JID)) == {b"a": b"d3s5r900"}
    assert TTL - 5 <= raw.ttl(keys.life(JID)) <= TTL
    assert counted(store, "answered", "delivered", "started", "late", "ended") == {
        "answered": "1", "delivered": "0", "started": "0"
    }  # fmt: skip
    assert raw.zscore("salt:seen", "a") == MADE + 10


@pytest.mark.parametrize("to", State)
@pytest.mark.parametrize("state", State)
def test_redis_decides_by_the_table(store: Store, raw: redis.Redis, state: State, to: State) -> None:
    publish(store, "a")
    raw.hset(keys.life(JID), "a", f"{LETTERS[state]}5")
    if to is S.RETURNED:
        store.jobs.record_return(ret("a"), ttl=TTL, now_ms=MADE + 9)
        may = True
    else:
        (stepped,) = store.jobs.sign("a", [(JID, to, MADE + 9)], MADE + 9)
        may = to in MOVES[state]
        assert stepped == SignResult(JID, may, to if may else state)
    assert states(store) == {"a": (to if may else state).value}


@pytest.mark.parametrize(
    ("ms", "kept"),
    [(MADE + 7, MADE + 7), (MADE - 5000, MADE), (MADE + 9999, MADE + 10)],
    ids=["as said", "before", "future"],
)
def test_a_clock_that_is_wrong_is_put_right(store: Store, ms: int, kept: int) -> None:
    publish(store, "a")
    store.jobs.sign("a", [(JID, "started", ms)], MADE + 10)
    assert store.jobs.life(JID)["a"].times[S.STARTED] == kept


def test_signs_about_jobs_that_are_not_the_minions(store: Store, raw: redis.Redis) -> None:
    publish(store, "a")
    assert store.jobs.sign("b", [(JID, "started", MADE), (LATER, "started", MADE)], MADE) == [
        SignResult(JID, False, None), SignResult(LATER, False, None)
    ]  # fmt: skip
    assert not raw.exists(keys.life(JID), keys.life(LATER), keys.job(LATER))
    assert store.jobs.sign("a", [], MADE) == []
    with pytest.raises(ValueError, match="dancing"):
        store.jobs.sign("a", [(JID, "dancing", MADE)], MADE)


def test_a_return_wins_over_everything_and_is_late_where_the_job_was_given_up(store: Store, raw: redis.Redis) -> None:
    publish(store, "a", "b", "c", offline=["c"])
    store.jobs.move(JID, S.LOST, ["a"], MADE + 5)
    assert store.jobs.cancel(JID, ["b"], MADE + 6) == ["b"]
    assert counted(store, "lost", "cancelled", "offline") == {"lost": "1", "cancelled": "1", "offline": "1"}
    assert [store.jobs.record_return(ret(minion), ttl=TTL, now_ms=MADE + 9).late for minion in "abc"] == [True] * 3
    assert counted(store, "lost", "cancelled", "offline", "late", "answered") == {
        "lost": "0", "cancelled": "0", "offline": "0", "late": "3", "answered": "3"
    }  # fmt: skip
    assert found(raw, "salt:idx:state:late") == [JID]
    assert not raw.exists("salt:idx:state:lost", "salt:idx:state:cancelled", "salt:idx:state:offline")
    assert store.jobs.sign("a", [(JID, "started", MADE + 10)], MADE + 10) == [SignResult(JID, False, S.RETURNED)]


def test_a_job_runs_until_nobody_is_waited_for(store: Store, raw: redis.Redis) -> None:
    publish(store, "a", "b")
    assert found(raw, "salt:idx:state:running") == [JID]
    store.jobs.record_return(ret("a"), ttl=TTL, now_ms=MADE + 1)
    assert "ended" not in store.jobs.meta(JID)
    store.jobs.move(JID, S.LOST, ["b"], MADE + 5)
    assert (found(raw, "salt:idx:state:running"), store.jobs.meta(JID)["ended"]) == ([], str(MADE + 5))
    # It spoke again: the job is not over.
    store.jobs.sign("b", [(JID, "started", MADE + 7)], MADE + 7)
    assert (found(raw, "salt:idx:state:running"), "ended" in store.jobs.meta(JID)) == ([JID], False)
    assert store.jobs.record_return(ret("b", retcode=1), ttl=TTL, now_ms=MADE + 8).complete
    assert (found(raw, "salt:idx:state:running"), store.jobs.meta(JID)["ended"]) == ([], str(MADE + 8))
    assert found(raw, "salt:idx:result:failed") == [JID]
    assert not raw.exists("salt:idx:result:ok")


def test_a_life_that_another_hand_wrote(store: Store, raw: redis.Redis) -> None:
    publish(store, "a")
    raw.hset(keys.life(JID), "a", "what?")
    assert states(store) == {"a": "expected"}
    assert "'what?' is no life" in store.faults.known[keys.life(JID)]
    # A return is not lost over it.
    assert store.jobs.record_return(ret("a"), ttl=TTL, now_ms=MADE + 3).complete
    assert keys.life(JID) in store.faults.known
    assert states(store) == {"a": "returned"}


@pytest.mark.parametrize(
    "name",
    [keys.job(JID), keys.life(JID), keys.job_minions(JID), "minions", "salt:jobs:bytes", "salt:idx:result:failed"],
)
def test_a_key_of_another_type_costs_no_return(store: Store, raw: redis.Redis, name: str) -> None:
    publish(store, "a")
    raw.delete(name)
    raw.lpush(name, "x")
    assert store.jobs.record_return(ret("a", retcode=1), ttl=TTL, now_ms=MADE + 3).first
    assert store.jobs.returns(JID) == {"a": ret("a", retcode=1)}
    assert name in store.faults.known


# -------------------------------------------------------------------------------------------------------------------- cancel


def test_cancel_takes_those_that_have_not_begun(store: Store) -> None:
    publish(store, "a", "b", "c", "d", offline=["d"])
    store.jobs.sign("a", [(JID, "started", MADE + 1)], MADE + 1)
    store.jobs.sign("b", [(JID, "delivered", MADE + 1)], MADE + 1)
    assert store.jobs.cancel(JID, None, MADE + 2) == ["b", "c", "d"]
    assert store.jobs.cancel(JID, None, MADE + 3) == []
    assert store.jobs.cancel(LATER, None, MADE + 3) == store.jobs.cancel(LATER, ["a"], MADE + 3) == []
    # Who gets it all the same is told so.
    assert store.jobs.sign("c", [(JID, "delivered", MADE + 4)], MADE + 4) == [SignResult(JID, False, S.CANCELLED)]


# ------------------------------------------------------------------------------------------------------------ missed, waiting


def test_missed_jobs_are_those_that_may_still_run(store: Store) -> None:
    until = MADE + 60_000
    publish(store, "a", "b", replay_until_ms=until)
    publish(store, "a", jid=LATER, replay_until_ms=until)
    publish(store, "a", jid=LATEST)  # only who hears it
    assert [job["jid"] for job in store.jobs.missed("a", MADE - 1, MADE + 5000)] == [JID, LATER]
    assert store.jobs.missed("a", MADE - 1, MADE + 5000)[0] == load() | {"replay_until": until}
    assert [job["jid"] for job in store.jobs.missed("a", MADE, MADE + 5000)] == [LATER]
    assert [job["jid"] for job in store.jobs.missed("a", MADE - 1, MADE + 5000, limit=1)] == [LATER]
    assert [job["jid"] for job in store.jobs.missed("b", MADE - 1, MADE + 5000)] == [JID]
    assert store.jobs.missed("a", MADE - 1, until) == store.jobs.missed("x", 0, MADE) == []
    store.jobs.sign("a", [(JID, "delivered", MADE + 5000)], MADE + 5000)
    store.jobs.cancel(LATER, None, MADE + 5000)
    assert store.jobs.missed("a", MADE - 1, MADE + 5000) == []


def test_missed_among_jobs_for_everybody(store: Store, raw: redis.Redis) -> None:
    many = [f"m{number}" for number in range(job_scripts.WIDE + 1)]
    publish(store, *many, replay_until_ms=MADE + 60_000)
    assert found(raw, keys.WIDE_JOBS) == [JID]
    assert not raw.exists(keys.index("minion", "m7"))
    assert [job["jid"] for job in store.jobs.missed("m7", MADE - 1, MADE + 1)] == [JID]
    assert store.jobs.missed("x", MADE - 1, MADE + 1) == []


def test_a_job_waits_for_who_is_away(store: Store, raw: redis.Redis) -> None:
    store.presence.seen("here", MADE)
    store.presence.seen("gone", MADE - 500_000)
    until = MADE + 3_600_000
    away = publish(store, "here", "gone", "new", away_since_ms=MADE - 180_000, when_back_until_ms=until)
    assert away == ("gone", "new")
    assert states(store) == {"here": "expected", "gone": "offline", "new": "offline"}
    assert store.jobs.waiting_jobs(MADE) == {JID: until}
    for minion, offline in (("here", False), ("gone", True)):
        assert store.jobs.waiting(minion, MADE) == [load() | {"replay_until": until}]
        assert bool(store.jobs.waiting(minion, MADE, offline=True)) is offline
    # Kept until the last may come back, and as long as any job after that.
    for name in (keys.load(JID), keys.job(JID), keys.life(JID), keys.waiting_of("gone"), keys.WAITING):
        # An index a sixteenth longer: it is not renewed with each job.
        assert 3600 + TTL - 5 <= raw.ttl(name) <= (3600 + TTL) * 17 / 16 + 1
    store.jobs.sign("gone", [(JID, "started", MADE + 9)], MADE + 9)
    assert store.jobs.waiting("gone", MADE + 9) == []
    assert store.jobs.waiting_jobs(MADE) == {JID: until}
    assert store.jobs.cancel(JID, ["new"], MADE + 10) == ["new"]
    assert store.jobs.waiting_jobs(MADE) == {JID: until}, "who was here a moment ago may be gone"
    store.jobs.record_return(ret("here"), ttl=TTL, now_ms=MADE + 10)
    assert store.jobs.waiting_jobs(MADE) == {}
    assert not raw.exists("salt:waiting:gone", "salt:waiting:new", "salt:waiting:here")
    # A return does not shorten what it is kept for.
    store.jobs.record_return(ret("gone"), ttl=TTL, now_ms=MADE + 10)
    assert raw.ttl(keys.ret(JID)) > 3600


def test_silence_of_minions_that_never_sign_says_nothing(store: Store) -> None:
    store.jobs.missed("ours", 0, MADE)
    assert publish(store, "ours", "stock", away_since_ms=MADE - 1000) == ("ours",)
    assert publish(store, "ours", "stock", jid=LATER, away_since_ms=MADE, when_back_until_ms=MADE * 2) == (
        "ours",
        "stock",
    )


def test_a_waiting_job_is_sent_again_once(store: Store, second: Store) -> None:
    until = MADE + 3_600_000
    publish(store, "a", "b", offline=["a", "b"], when_back_until_ms=until)
    (job,) = store.jobs.waiting("a", MADE + 5)
    assert [store.jobs.resend("a", job, MADE + 5), second.jobs.resend("a", job, MADE + 5)] == [True, False]
    *_, (_, entry) = store.publications.range_since(0)
    named = {"expected": ["a"], "replay_until": until, "recorded_ms": MADE + 5}
    assert entry == load(tgt=["a"], tgt_type="list") | named
    assert len(store.publications.range_since(0)) == 2
    assert states(store) == {"a": "expected", "b": "offline"}
    assert (store.jobs.waiting("a", MADE + 5, offline=True), store.jobs.waiting("a", MADE + 5)) == ([], [job])
    assert store.jobs.resend("a", job, MADE + 5, again=True), "it has just started"
    assert states(store) == {"a": "expected", "b": "offline"}
    assert not store.jobs.resend("b", job, until)
    assert not store.jobs.resend("b", load(LATER), MADE)


def test_the_load_of_a_missed_job_that_cannot_be_read_is_stepped_over(store: Store, raw: redis.Redis) -> None:
    publish(store, "a", replay_until_ms=MADE + 60_000)
    publish(store, "a", jid=LATER, replay_until_ms=MADE + 60_000)
    raw.set(keys.load(JID), b"{", keepttl=True)
    assert [job["jid"] for job in store.jobs.missed("a", 0, MADE + 5000)] == [LATER]
    assert keys.load(JID) in store.faults.known


# -------------------------------------------------------------------------------------------------------------------- settle

MINUTE = 60_000


def test_what_signs_and_says_nothing_expires_and_others_stay(store: Store, raw: redis.Redis) -> None:
    store.jobs.missed("ours", 0, MADE)
    publish(store, "ours", "stock", "gone", offline=["gone"], replay_until_ms=MADE + 5 * MINUTE)
    assert store.jobs.settle(MADE + 4 * MINUTE, MADE) == Settled(0, 0)
    assert store.jobs.settle(MADE + 5 * MINUTE + 1, MADE) == Settled(2, 0)
    assert states(store) == {"ours": "expired", "stock": "expected", "gone": "expired"}
    # It is looked at again, later each time, as long as somebody is waited for.
    assert MADE + 7 * MINUTE < raw.zscore(keys.DUE, JID) < MADE + 8 * MINUTE
    store.jobs.record_return(ret("stock"), ttl=TTL, now_ms=MADE + 6 * MINUTE)
    assert found(raw, "salt:idx:state:running") == []
    assert store.jobs.settle(MADE + 60 * MINUTE, MADE) == Settled(0, 0)
    assert not raw.exists(keys.DUE)


def test_a_job_that_waits_expires_at_its_deadline_and_no_earlier(store: Store) -> None:
    publish(store, "a", offline=["a"], replay_until_ms=MADE + MINUTE, when_back_until_ms=MADE + 60 * MINUTE)
    assert store.jobs.settle(MADE + 59 * MINUTE, MADE) == Settled(0, 0)
    assert store.jobs.settle(MADE + 61 * MINUTE, MADE) == Settled(1, 0)
    assert store.jobs.waiting("a", MADE + 61 * MINUTE) == []
    assert store.jobs.waiting_jobs(MADE) == {}


def test_a_minion_that_fell_silent_is_lost_until_it_speaks(store: Store, raw: redis.Redis) -> None:
    publish(store, "a", "b")
    for minion in "ab":
        store.jobs.sign(minion, [(JID, "started", MADE)], MADE)
    raw.zadd(keys.DUE, {JID: MADE})
    store.presence.seen("b", MADE + 9 * MINUTE)
    assert store.jobs.settle(MADE + 12 * MINUTE, MADE + 2 * MINUTE) == Settled(0, 1)
    assert states(store) == {"a": "lost", "b": "started"}
    assert found(raw, "salt:idx:state:lost") == [JID]
    store.jobs.sign("a", [(JID, "started", MADE)], MADE + 13 * MINUTE)
    assert states(store)["a"] == "started"
    assert not raw.exists("salt:idx:state:lost")


def test_a_job_for_thousands_is_settled_in_steps(store: Store) -> None:
    many = [f"m{number}" for number in range(2500)]
    publish(store, *many, offline=many[:2000])
    assert store.jobs.settle(MADE + 2 * MINUTE, MADE) == Settled(2000, 0)
    assert counted(store, "expired", "offline") == {"expired": "2000", "offline": "0"}


def test_what_is_due_and_gone_is_no_longer_due(store: Store, raw: redis.Redis) -> None:
    publish(store, "a")
    raw.delete(keys.job(JID))
    assert store.jobs.settle(MADE + 60 * MINUTE, MADE) == Settled(0, 0)
    assert not raw.exists(keys.DUE)


# ------------------------------------------------------------------------------------------------------------------- indexes


def test_jobs_are_found_by_a_minion_whether_they_are_wide_or_not(store: Store) -> None:
    many = [f"m{number}" for number in range(job_scripts.WIDE + 1)]
    publish(store, *many)
    publish(store, "m7", "x", jid=LATER)
    store.jobs.record_return(ret("m7", jid=LATER), ttl=TTL, now_ms=MADE)
    for minion, jids in {"m7": [LATER, JID], "m8": [JID], "x": [LATER], "y": []}.items():
        assert [job.jid for job in store.found_jobs.page(JobFilter(minions=(minion,))).jobs] == jids, minion
    running = JobFilter(minions=("x",), states=("running",), functions=("test.*",), users=("root",), targets=("*",))
    assert [job.jid for job in store.found_jobs.page(running).jobs] == [LATER]


def test_indexes_of_a_job(store: Store, raw: redis.Redis) -> None:
    long = "x" * 300
    store.jobs.publish(
        load(fun=["test.ping", "cmd.run"], tgt=long), ["a", "b"], request_id="r", ttl=TTL, now_ms=MADE
    )  # fmt: skip
    hashed = keys.short(long)
    assert len(hashed) < 80
    for name in ("minion:a", "minion:b", "fun:test.ping", "fun:cmd.run", "user:root", f"tgt:{hashed}"):
        assert raw.zrange(f"salt:idx:{name}", 0, -1, withscores=True) == [(JID.encode(), float(MADE))], name
    assert found(raw, keys.FUNCTIONS) == ["cmd.run", "test.ping"]
    assert raw.hgetall(keys.JOB_BYTES) == {str(MADE // 3_600_000).encode(): store.jobs.meta(JID)["bytes"].encode()}


def test_an_index_does_not_grow_for_ever(store: Store, raw: redis.Redis) -> None:
    for number in range(40):
        jid = f"202601010000{number:02}000000"
        store.jobs.publish(load(jid), ["a"], request_id=jid, ttl=10, now_ms=jid_ms(jid))
    # Ten seconds of one job a second, and no maintenance.
    for name in ("salt:jobs", "salt:idx:minion:a", "salt:idx:fun:test.ping", "salt:idx:user:root", "salt:jobs:due"):
        assert raw.zcard(name) == 11, name
