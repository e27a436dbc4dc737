"""A model of jobs on minions over a real Redis: whatever happens in whatever order, nothing is lost and nothing runs twice.

The model knows the promises and not the table: what was acknowledged stays; nobody runs a job twice; who comes back in time gets
its job; what was called off is not handed out; counts and indexes say what lives say. That it can fail is shown by breaking the
table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from masterstore import keys, life
from masterstore.life import INDEXED, MOVES, OPEN, UNDELIVERED, State
from masterstore.lives import jid_ms
from masterstore.pinned_connection import PinnedScript
from masterstore.store import Store
from tests.masterstore.conftest import raw_client

pytestmark = pytest.mark.redis

S = State
OURS, STOCK = ("our1", "our2"), ("stock1", "stock2")
MINIONS = (*OURS, *STOCK)
FIRST = "20260101000000000000"
MINUTE = 60_000
REPLAY, WAIT, SILENCE = 5 * MINUTE, 60 * MINUTE, 10 * MINUTE
TTL = 10 * 86400


def jid_of(ms: int, number: int) -> str:
    at, below = divmod(ms - jid_ms(FIRST), 1000)
    return f"20260101{at // 3600:02}{at // 60 % 60:02}{at % 60:02}{below:03}{number:03}"


@dataclass
class Minion:
    """One minion as it is on its host."""

    here: bool = True
    #: Where it reads the publications on: what was sent while it was away is gone.
    heard: int = 0
    #: Jobs that it has had, for ever: the journal of ours; of stock ones nothing but a record for the model.
    had: Counter[str] = field(default_factory=Counter)
    #: Jobs that it works on, and results that were not acknowledged.
    working: list[str] = field(default_factory=list)
    spool: list[str] = field(default_factory=list)


class Jobs(RuleBasedStateMachine):
    """Everything that touches a job, in any order."""

    url = ""
    moves: Mapping[State, tuple[State, ...]] = MOVES

    def __init__(self) -> None:
        super().__init__()
        self.store = Store.open(self.url, timeout=5.0, client_name="model")
        self.raw = raw_client(self.url)
        self.raw.flushall()
        if self.moves is not MOVES:
            broken(self.store, self.moves)
        self.now = jid_ms(FIRST)
        self.minions = {name: Minion() for name in MINIONS}
        #: JID -> (minions, when it waits until, who was away), and what its first publish said.
        self.jobs: dict[str, tuple[tuple[str, ...], int, frozenset[str]]] = {}
        self.acknowledged: dict[tuple[str, str], int] = {}
        self.called_off: set[tuple[str, str]] = set()
        self.began: set[tuple[str, str]] = set()
        for name in OURS:
            self.store.jobs.missed(name, 0, self.now)
        for name in MINIONS:
            self.store.presence.seen(name, self.now)

    # -------------------------------------------------------------------------------------------------------------- the master

    @rule(to=st.sets(st.sampled_from(MINIONS), min_size=1), waits=st.booleans(), again=st.booleans())
    def publish(self, to: set[str], waits: bool, again: bool) -> None:
        if len(self.jobs) >= 4:
            return
        jid, names = jid_of(self.now, len(self.jobs)), tuple(sorted(to))
        away = frozenset(name for name in names if not self.minions[name].here)
        for number in range(2 if again else 1):
            # The second time it comes as a retry does: of another worker, which gave it a JID of its own.
            load = {"jid": jid if number == 0 else jid_of(self.now, 900), "fun": "test.ping", "tgt": "*"}
            published = self.store.jobs.publish(
                load, names, request_id=jid, ttl=TTL, now_ms=self.now, offline=away,
                replay_until_ms=self.now + (WAIT if waits else REPLAY), when_back_until_ms=self.now + WAIT if waits else 0,
            )  # fmt: skip
            assert (published.jid, published.created) == (jid, number == 0)
        self.jobs[jid] = (names, self.now + WAIT if waits else 0, away)

    @rule(which=st.integers(0, 3), whom=st.sets(st.sampled_from(MINIONS)) | st.none())
    def cancel(self, which: int, whom: set[str] | None) -> None:
        if self.jobs:
            jid = sorted(self.jobs)[which % len(self.jobs)]
            for name in self.store.jobs.cancel(jid, whom, self.now):
                assert name in self.jobs[jid][0]
                assert (jid, name) not in self.began, "a job that works was called off"
                self.called_off.add((jid, name))

    @rule()
    def look_after(self) -> None:
        self.store.jobs.settle(self.now, self.now - SILENCE)

    @rule(ms=st.sampled_from([1, 1000, 2 * MINUTE, 30 * MINUTE]))
    def time_goes_on(self, ms: int) -> None:
        self.now += ms

    # ------------------------------------------------------------------------------------------------------------ the minions

    @rule(name=st.sampled_from(MINIONS))
    def leave(self, name: str) -> None:
        self.hear(name)
        self.minions[name].here = False

    @rule(name=st.sampled_from(MINIONS), twice=st.booleans())
    def come_back(self, name: str, twice: bool) -> None:
        """Ours asks for what it missed; to a stock one a worker sends what waits for it; two workers at the same time try."""
        minion = self.minions[name]
        if not minion.here:
            minion.here, minion.heard = True, len(self.store.publications.range_since(0))
        self.store.presence.seen(name, self.now)
        waiting = self.store.jobs.waiting(name, self.now)
        offered = [*waiting, *(self.store.jobs.missed(name, jid_ms(FIRST) - 1, self.now) if name in OURS else ())]
        for load in offered:
            jid = str(load["jid"])
            assert (jid, name) not in self.called_off, "what was called off was handed out"
            assert (jid, name) not in self.acknowledged, "what had returned was handed out"
            assert self.now < load["replay_until"]
            if name in OURS:
                self.take(name, jid)
        if name in STOCK:
            for load in waiting * (2 if twice else 1):
                self.store.jobs.resend(name, load, self.now)

    @rule(name=st.sampled_from(MINIONS))
    def hear(self, name: str) -> None:
        minion = self.minions[name]
        if minion.here:
            sent = self.store.publications.range_since(0)
            new, minion.heard = sent[minion.heard :], len(sent)
            for _, load in new:
                if name in load["expected"]:
                    self.take(name, str(load["jid"]))

    def take(self, name: str, jid: str) -> None:
        minion = self.minions[name]
        if name in OURS and minion.had[jid]:
            return
        minion.had[jid] += 1
        minion.working.append(jid)

    @rule(name=st.sampled_from(OURS), sign=st.sampled_from(["delivered", "started"]), off=st.integers(-10, 10))
    def sign(self, name: str, sign: str, off: int) -> None:
        """Of every job that it had: a sign may be on its way for long, and come after the return."""
        minion = self.minions[name]
        if minion.here and minion.had:
            signs = [(jid, sign, self.now + off * MINUTE) for jid in minion.had]
            for stepped in self.store.jobs.sign(name, signs, self.now):
                assert stepped.state is not None
                if stepped.moved and sign == "started":
                    self.began.add((stepped.jid, name))

    @rule(name=st.sampled_from(MINIONS))
    def finish(self, name: str) -> None:
        minion = self.minions[name]
        minion.spool += minion.working
        minion.working = []

    @rule(name=st.sampled_from(MINIONS), heard=st.booleans())
    def send(self, name: str, heard: bool) -> None:
        """``heard``: whether the acknowledgement reaches the minion; without it the return comes again."""
        minion = self.minions[name]
        if not (minion.here and minion.spool):
            return
        jid = minion.spool[0]
        value = self.now
        ret = {"jid": jid, "id": name, "fun": "test.ping", "return": value, "retcode": 0, "success": True}
        recorded = self.store.jobs.record_return(ret, ttl=TTL, now_ms=self.now)
        assert recorded.first == ((jid, name) not in self.acknowledged), "a return is first once"
        self.acknowledged.setdefault((jid, name), value)
        if heard:
            minion.spool.pop(0)

    # ----------------------------------------------------------------------------------------------------------- the promises

    @invariant()
    def nothing_runs_twice(self) -> None:
        for name, minion in self.minions.items():
            assert max(minion.had.values(), default=0) <= 1, f"{name} ran a job twice"

    @invariant()
    def what_was_acknowledged_stays(self) -> None:
        for jid in self.jobs:
            kept = {name: ret["return"] for name, ret in self.store.jobs.returns(jid).items()}
            assert kept == {name: value for (one, name), value in self.acknowledged.items() if one == jid}

    @invariant()
    def lives_counts_and_indexes_agree(self) -> None:
        for jid, (names, until, _) in self.jobs.items():
            lives, meta = self.store.jobs.life(jid), self.store.jobs.meta(jid)
            assert tuple(lives) == names
            states = Counter(each.state for each in lives.values())
            for name, each in lives.items():
                assert (each.state is S.RETURNED) == ((jid, name) in self.acknowledged)
                if (jid, name) in self.called_off:
                    assert each.state in (S.CANCELLED, S.RETURNED), "what was called off lives on"
                times = list(each.times.values())
                assert times == sorted(times)
                assert jid_ms(jid) <= times[0] <= times[-1] <= self.now
                waits = bool(until) and each.state in UNDELIVERED
                assert (self.raw.zscore(keys.waiting_of(name), jid) == until) is waits
            assert int(meta["answered"]) == states[S.RETURNED]
            for state in (S.DELIVERED, S.STARTED, *INDEXED):
                assert int(meta.get(state.value, 0)) == states[state], state
            for state in INDEXED:
                assert (self.raw.zscore(keys.index("state", state.value), jid) is not None) == (states[state] > 0), (
                    state
                )
            open_ones = sum(states[state] for state in OPEN)
            assert (self.raw.zscore(keys.index("state", "running"), jid) is not None) == (open_ones > 0)
            assert ("ended" in meta) == (open_ones == 0)
            assert (self.raw.zscore(keys.index("result", "ok"), jid) is not None) == (states[S.RETURNED] == len(names))
            assert (self.raw.zscore(keys.WAITING, jid) is not None) == (
                bool(until) and any(states[state] for state in UNDELIVERED)
            )
        assert not self.store.faults.known

    def teardown(self) -> None:
        """Everybody comes back, and then all time is over: each job has an end on each minion, and the right one."""
        back = self.now
        for name, minion in self.minions.items():
            self.come_back(name, twice=True)
            for _ in range(2):
                self.hear(name)
            self.finish(name)
            while minion.spool:
                self.send(name, heard=True)
        self.now += 2 * WAIT
        for _ in range(6):
            self.look_after()
            self.now += 48 * 60 * MINUTE
        self.nothing_runs_twice()
        self.what_was_acknowledged_stays()
        self.lives_counts_and_indexes_agree()
        for jid, (names, until, away) in self.jobs.items():
            lives = self.store.jobs.life(jid)
            for name in names:
                ran, state = self.minions[name].had[jid] > 0, lives[name].state
                assert (state is S.RETURNED) is ran, f"{name}: {state}, and it ran: {ran}"
                assert ran or state not in OPEN or name in STOCK, f"{name}: {state} for ever"
                in_time = back < max(until, jid_ms(jid) + REPLAY if name in OURS else 0)
                reached = in_time and (name in OURS or name in away) and (jid, name) not in self.called_off
                assert ran or not reached or (state is S.EXPIRED and until == 0), (
                    f"{name} came back in time, and never got it"
                )
        self.raw.close()


def broken(store: Store, moves: Mapping[State, tuple[State, ...]]) -> None:
    """Puts another table into the scripts of a store."""
    for part in vars(store.jobs).values():
        for script in [part, *vars(part).values()] if hasattr(part, "__dict__") else []:
            if isinstance(script, PinnedScript):
                other = script.script.replace(life.lua(), life.lua(moves))
                other = other.replace(life.lua_into(S.RETURNED), life.lua_into(S.RETURNED, moves))
                changed = store.jobs._client.redis.register_script(other)
                script.script, script.sha = changed.script, changed.sha
                store.jobs._client.redis.script_load(script.script)


SETTINGS = settings(
    max_examples=15, stateful_step_count=30, deadline=None, database=None, print_blob=False,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture
def machine(redis_url: str) -> Callable[[Mapping[State, Any]], type[Jobs]]:
    return lambda moves: type("Model", (Jobs,), {"url": redis_url, "moves": moves})


def test_no_order_of_things_loses_or_doubles(machine: Callable[..., type[Jobs]]) -> None:
    run_state_machine_as_test(machine(MOVES), settings=SETTINGS)


def table(
    state: State, *, more: tuple[State, ...] = (), less: tuple[State, ...] = ()
) -> dict[State, tuple[State, ...]]:
    """The table with one row changed."""
    return {**MOVES, state: tuple(to for to in MOVES[state] if to not in less) + more}


#: What is wrong with a table -> the table, and the story that is known to find it: looked for from there on.
BROKEN: Mapping[str, tuple[Mapping[State, tuple[State, ...]], int]] = {
    "returned is no end": (table(S.RETURNED, more=(S.LOST, S.STARTED, S.DELIVERED)), 4),
    "a return is refused": (table(S.EXPECTED, less=(S.RETURNED,)), 0),
    "a late return is refused": (table(S.EXPIRED, less=(S.RETURNED,)), 7),
    "what works is called off": (table(S.STARTED, more=(S.CANCELLED,)), 12),
    "what was called off goes on": (table(S.CANCELLED, more=(S.DELIVERED, S.STARTED)), 0),
    "what waits is never sent": (table(S.OFFLINE, less=(S.EXPECTED,)), 1),
    "what waits is sent twice": (table(S.EXPECTED, more=(S.EXPECTED,)), 0),
    "what is away never expires": (table(S.OFFLINE, less=(S.EXPIRED,)), 2),
}


def some(random: Random) -> set[str]:
    return {name for name in MINIONS if random.random() < 0.5} or {random.choice(MINIONS)}


#: What happens, by chance: hypothesis leaves most rules out of most of its examples, and a broken row needs many of them in a row.
HAPPENS: tuple[Callable[[Jobs, Random], None], ...] = (
    lambda model, random: model.publish(to=some(random), waits=random.random() < 0.5, again=random.random() < 0.2),
    lambda model, random: model.cancel(which=random.randrange(4), whom=random.choice([None, some(random)])),
    lambda model, random: model.look_after(),
    lambda model, random: model.time_goes_on(random.choice([1, 1000, 2 * MINUTE, 30 * MINUTE])),
    lambda model, random: model.leave(random.choice(MINIONS)),
    lambda model, random: model.come_back(random.choice(MINIONS), twice=random.random() < 0.5),
    lambda model, random: model.hear(random.choice(MINIONS)),
    lambda model, random: model.sign(
        random.choice(OURS), random.choice(["delivered", "started"]), random.randint(-10, 10)
    ),
    lambda model, random: model.finish(random.choice(MINIONS)),
    lambda model, random: model.send(random.choice(MINIONS), heard=random.random() < 0.7),
)


def story(kind: type[Jobs], number: int, steps: int = 60) -> None:
    """One life of everything, the same each time that it is told. Raises AssertionError where a promise is broken."""
    random, model = Random(number), kind()
    for _ in range(steps):
        random.choice(HAPPENS)(model, random)
        model.nothing_runs_twice()
        model.what_was_acknowledged_stays()
        model.lives_counts_and_indexes_agree()
    model.teardown()


def tell(kind: type[Jobs], first: int, count: int) -> None:
    for number in range(first, first + count):
        story(kind, number)


def test_stories_keep_every_promise(machine: Callable[..., type[Jobs]]) -> None:
    tell(machine(MOVES), 0, 2)


@pytest.mark.parametrize("wrong", BROKEN)
def test_the_model_finds_a_table_that_is_wrong(machine: Callable[..., type[Jobs]], wrong: str) -> None:
    moves, first = BROKEN[wrong]
    with pytest.raises(AssertionError):
        tell(machine(moves), first, 12)
