"""What the dispatcher promises whatever happens, in whatever order: each request has one end, nobody idles while somebody waits,
nobody starves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from saltern.kit.config.worker_pools import ONE_POOL, Pools
from saltern.reqserver.clear_header import ClearHeader
from saltern.reqserver.dispatch import WORKERLESS, Answer, Assign, Dispatcher, GiveUp, Instruction, Refuse
from saltern.reqserver.queue import Request, Side

THREE = Pools({"fast": 2, "slow": 1, "rest": 1}, {"_return": "fast", "_pillar": "slow", "_auth": "fast"}, "rest")

_COMMANDS = ("_auth", "_return", "_pillar", "_serve_file")
_SENDERS = (b"web1", b"web2", b"flood")
_WORKERS = st.sampled_from([b"w1", b"w2", b"w3", b"w4"])

_HAPPENING = st.one_of(
    st.tuples(st.just("request"), st.tuples(st.sampled_from(_SENDERS), st.sampled_from(_COMMANDS), st.booleans())),
    st.tuples(st.sampled_from(["reply", "reply", "ready", "pulse", "bye", "hung", "later", "late", "wrong"]), _WORKERS),
    st.tuples(st.just("tick"), st.floats(0.0, 5.0)),
)


@dataclass
class World:
    """Senders, workers and a dispatcher between them; keeps account of every request."""

    dispatcher: Dispatcher
    now: float = 0.0
    sent: list[bytes] = field(default_factory=list)
    #: Payload -> how often it has ended.
    ended: Counter[bytes] = field(default_factory=Counter)
    #: A sign-in that a newer one of its sender took the place of.
    replaced: set[bytes] = field(default_factory=set)
    deferred: list[Request] = field(default_factory=list)

    def step(self, what: str, detail: object) -> None:
        self.now += 0.01
        match what, detail:
            case "request", (bytes(sender), str(cmd), bool(operator)):
                self.request(sender, cmd, operator)
            case "tick", float(seconds):
                self.now += seconds
                self.carry_out(self.dispatcher.tick(self.now))
            case "late", _:
                if self.deferred:
                    self.carry_out(self.dispatcher.reply(b"child", self.deferred.pop().ticket, b"", self.now))
            case "wrong", bytes(name):
                self.carry_out(self.dispatcher.reply(name, 10**6, b"", self.now))
            case "reply" | "later", bytes(name):
                self.done(name, what)
            case _, bytes(name):
                self.carry_out(getattr(self.dispatcher, what)(name, self.now))

    def request(self, sender: bytes, cmd: str, operator: bool) -> None:
        payload = b"%d %s" % (len(self.sent), cmd.encode())
        self.sent.append(payload)
        seen = cmd if operator or cmd == "_auth" else ""
        side = Side.CONTROL if operator else Side.MINION
        before = {one.payload for one in self.dispatcher.waiting}
        told = self.dispatcher.request(side, (sender, b""), "", payload, self.now, header=ClearHeader(seen, sender))
        self.replaced |= before - {one.payload for one in self.dispatcher.waiting}
        self.carry_out(told)

    def done(self, name: bytes, how: str) -> None:
        """The worker does what it holds, or says that another pool is to do it."""
        worker = self.dispatcher.workers.get(name)
        if worker is None or worker.request is None:
            return
        request = worker.request
        pool = self.dispatcher.pools.of(command(request))
        if request.pool is None and pool != worker.pool:
            self.carry_out(self.dispatcher.wrong_pool(name, request.ticket, pool, self.now))
        elif how == "later":
            self.carry_out(self.dispatcher.defer(name, request.ticket, self.now))
            self.deferred.append(request)
        else:
            self.carry_out(self.dispatcher.reply(name, request.ticket, b"", self.now))

    def carry_out(self, instructions: list[Instruction]) -> None:
        for one in instructions:
            match one:
                case Assign(name, request, opening_pool):
                    worker = self.dispatcher.workers._by_name[name]
                    assert worker.request is request
                    assert bool(opening_pool) == (request.pool is None)
                    # Only who may work on it; others where the pool has no worker.
                    served = request.pool in (None, worker.pool) or not self.dispatcher.workers.size(request.pool)
                    assert served, "a worker of another pool has it"
                case Answer(request, _) | GiveUp(request, _) | Refuse(request, _, _):
                    self.ended[request.payload] += 1

    def check(self) -> None:
        workers, waiting = self.dispatcher.workers, list(self.dispatcher.waiting)
        held = [worker.request for worker in workers._by_name.values() if worker.request]
        places = Counter(
            one.payload for one in [*held, *waiting, *(one for _, one in self.dispatcher.deferred.values())]
        )
        assert places + self.ended + Counter(self.replaced) == Counter(self.sent), "each request is in one place"
        assert self.dispatcher.waiting.count == len(waiting)
        assert self.dispatcher.waiting.bytes == sum(len(one.payload) for one in waiting)
        assert self.dispatcher.busy == len(held)
        for pool in workers.order:
            assert 0 <= workers.busy(pool) <= workers.size(pool)
            if workers.idle(pool) is not None:
                able = [
                    one for one in waiting if one.pool in (None, pool) and workers.may_start(pool, one.side, one.sender)
                ]
                assert not able, "somebody is idle while a request waits that it may work on"


def command(request: Request) -> str:
    return request.payload.split()[1].decode()


@settings(max_examples=150)
@given(st.sampled_from([ONE_POOL, THREE]), st.lists(_HAPPENING, max_size=80), st.sampled_from([0, 1]))
def test_every_request_has_one_end_whatever_happens(
    pools: Pools, happenings: list[tuple[str, object]], at_once: int
) -> None:
    world = World(Dispatcher(deadline=20.0, pools=pools, at_once=at_once, max_count=30))
    for what, detail in happenings:
        world.step(what, detail)
        world.check()
    # Silence and time end whatever is left, and one good worker does what waits.
    world.now += 30
    world.carry_out(world.dispatcher.tick(world.now))
    world.now += 30
    world.carry_out(world.dispatcher.tick(world.now))
    for request in world.deferred:
        world.carry_out(world.dispatcher.reply(b"child", request.ticket, b"", world.now))
    assert world.ended + Counter(world.replaced) == Counter(world.sent)
    assert not world.dispatcher.workers._in_work, "nobody is held to what it no longer has"


@settings(max_examples=60)
@given(
    st.sampled_from([ONE_POOL, THREE]),
    st.lists(st.tuples(st.sampled_from(_SENDERS), st.sampled_from(_COMMANDS)), min_size=1, max_size=60),
    st.integers(1, 4),
)
def test_nobody_starves_as_long_as_workers_answer(pools: Pools, requests: list[tuple[bytes, str]], count: int) -> None:
    """Even with fewer workers than pools, everything is answered, by requests that others send meanwhile, too."""
    world = World(Dispatcher(pools=pools))
    for sender, cmd in requests:
        world.step("request", (sender, cmd, False))
    workers = [b"w%d" % number for number in range(1, count + 1)]
    for name in workers:
        world.step("ready", name)
    for _ in range(24 + 12 * len(requests)):
        world.step("request", (b"flood", "_serve_file", False))
        for name in workers:
            world.step("reply", name)
            world.step("pulse", name)
        if world.now < WORKERLESS + 1:
            world.step("tick", 0.5)
        world.check()
    first = world.sent[: len(requests)]
    assert [one for one in first if one not in world.ended and one not in world.replaced] == []


@given(st.integers(1, 200), st.integers(1, 5))
def test_a_flood_delays_another_minion_by_two_requests_of_each_worker(flood: int, count: int) -> None:
    world = World(Dispatcher())
    workers = [b"w%d" % number for number in range(count)]
    for name in workers:
        world.step("ready", name)
    for _ in range(flood):
        world.step("request", (b"flood", "_return", False))
    world.step("request", (b"web1", "_return", False))
    wanted = world.sent[-1]
    for name in [*workers, *workers]:
        if wanted not in world.ended:
            world.step("reply", name)
    held = {worker.request.payload for worker in world.dispatcher.workers._by_name.values() if worker.request}
    assert wanted in held or wanted in world.ended
