"""Where a worker of several reqservers is idle, and what it and they say to each other, in any order of messages."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from saltern.kit.config.master import MasterOptions
from saltern.kit.config.worker_pools import ONE_POOL, Pools
from saltern.kit.links.sockets import LinkKeys
from saltern.kit.links.worker_link import (
    AWAY,
    CALL,
    POOL,
    READY,
    WRONG_POOL,
    read_ready,
    read_reply,
    work_frames,
)
from saltern.kit.process.metrics import new_metrics
from saltern.mworker import reqserver_links
from saltern.mworker.home import IDLE, PATIENCE, STAY, Home
from saltern.mworker.reqserver_links import ReqserverLinks
from saltern.reqserver.clear_header import ClearHeader
from saltern.reqserver.dispatch import Answer, Assign, Call, Dispatcher, Instruction
from saltern.reqserver.queue import Side


def at(host: str, *up: str) -> Home:
    made = Home(choose=min)
    for one in up:
        made.connected(one, up=True)
    made.arrive(host, 0.0)
    return made


def test_it_stays_while_nobody_calls() -> None:
    one = at("a", "a", "b")
    assert (one.next(100.0), one.look_at(100.0)) == ("", float("inf"))


def test_an_idle_worker_follows_a_call() -> None:
    one = at("a", "a", "b")
    one.called("b", wanted=True)
    assert one.look_at(0.001) == IDLE
    assert one.next(0.001) == ""
    assert one.next(IDLE) == "b"


def test_a_call_that_ended_is_not_followed() -> None:
    one = at("a", "a", "b")
    one.called("b", wanted=True)
    one.called("b", wanted=False)
    assert one.next(1.0) == ""


def test_a_busy_worker_follows_a_call_after_its_stay() -> None:
    one = at("a", "a", "b")
    one.begin()
    one.called("b", wanted=True)
    assert one.done(STAY / 2) == ""
    one.begin()
    assert one.done(STAY) == "b"


def test_callers_are_served_in_their_order() -> None:
    one = at("a", "a", "b", "c")
    one.called("c", wanted=True)
    one.called("b", wanted=True)
    one.called("c", wanted=True)
    assert one.next(1.0) == "c"
    one.arrive("c", 1.0)
    assert one.next(2.0) == "b"


def test_a_lost_home_is_left_at_once() -> None:
    one = at("a", "a", "b")
    one.connected("a", up=False)
    assert (one.look_at(0.0), one.next(0.0)) == (0.0, "b")


def test_the_first_home_has_time_to_connect() -> None:
    one = at("a")
    one.connected("b", up=True)
    assert one.next(PATIENCE / 2) == ""
    assert one.look_at(0.0) == PATIENCE
    assert one.next(PATIENCE * 1.1) == "b"


def test_a_caller_that_is_lost_does_not_count() -> None:
    one = at("a", "a", "b")
    one.called("b", wanted=True)
    one.connected("b", up=False)
    one.connected("b", up=True)
    assert one.next(1.0) == ""


# ------------------------------------------------------------------------------------------------------------- both ends


class Wire:
    """A socket of a worker: frames to and from one reqserver."""

    def __init__(self) -> None:
        self.sent: deque[list[bytes]] = deque()
        self.arriving: deque[list[bytes]] = deque()
        self._half: list[bytes] = []

    def send(self, frame: bytes, flags: int) -> None:
        self._half.append(frame)
        if not flags & int(zmq.SNDMORE):
            self.sent.append(self._half)
            self._half = []

    def poll(self, _: int) -> int:
        return bool(self.arriving)


@dataclass
class Connection:
    """Of a worker; stands always."""

    up: bool = True
    times: int = 1

    def follow(self) -> bool:
        return False

    def close(self) -> None:
        """Nothing is open."""


class Worker(ReqserverLinks):
    """A worker whose messages the test carries."""

    def _opened(self, host: str) -> Any:
        return reqserver_links._Link(host, cast(Any, Wire()), cast(Any, Connection()))

    def _use_addresses(self) -> None:
        super()._use_addresses()
        for host in self._hosts:
            self._home.connected(host, up=True)

    def _listen(self, link: Any) -> None:
        """``_readable`` looks itself."""

    def _readable(self, seconds: float) -> list[Any]:
        return [link for link in self._links.values() if cast(Any, link.socket).arriving]

    def wire(self, host: str) -> Wire:
        return cast(Any, self._links[host].socket)


POOLS = Pools({"fast": 1, "rest": 1}, {"_return": "fast"}, "rest")


@dataclass
class World:
    """Two reqservers and some workers. Messages of one connection keep their order; nothing else does."""

    pools: Pools
    seed: int
    now: float = 100.0
    reqservers: dict[str, Dispatcher] = field(default_factory=dict)
    workers: dict[bytes, Worker] = field(default_factory=dict)
    executed: Counter[bytes] = field(default_factory=Counter)
    answered: Counter[bytes] = field(default_factory=Counter)
    asked: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.reqservers = {host: Dispatcher(pools=self.pools, silence=1e9) for host in ("a", "b")}
        addresses = SimpleNamespace(current=("a", "b"))
        for number in range(3):
            name = b"w%d" % number
            worker = Worker(
                cast(Any, None),
                MasterOptions(),
                cast(LinkKeys, None),
                cast(Any, addresses),
                name,
                b"",
                new_metrics("mworker"),
                self.pools.several,
            )
            # The clock stands still while a worker waits.
            worker._patience = 0.0
            worker.begin()
            self.workers[name] = worker

    def step(self) -> None:
        self.now += self.random.choice((0.0001, 0.001, 0.01))
        self.random.choice((self.ask, self.hear, self.hear, self.hear, self.work, self.work, self.call))()

    def ask(self) -> None:
        payload = b"r%d" % len(self.asked)
        self.asked.append(payload)
        host = self.random.choice(("a", "a", "b"))
        cmd = self.random.choice(("", "_return"))
        self.do(
            host,
            self.reqservers[host].request(
                Side.MINION, (payload, b""), "", payload, self.now, header=ClearHeader(cmd, payload)
            ),
        )

    def call(self) -> None:
        for host, reqserver in self.reqservers.items():
            self.do(host, [*reqserver.call(self.now), *reqserver.tick(self.now)])

    def hear(self) -> None:
        """A reqserver reads one message of one worker."""
        name = self.random.choice(list(self.workers))
        host = self.random.choice(("a", "b"))
        sent = self.workers[name].wire(host).sent
        if sent:
            self.do(host, self.told(host, name, sent.popleft()))

    def told(self, host: str, name: bytes, message: list[bytes]) -> Sequence[Instruction]:
        reqserver = self.reqservers[host]
        if (reply := read_reply(message)) is not None:
            return reqserver.reply(name, reply.ticket, reply.payload, self.now, last=reply.last)
        match message:
            case [kind, ticket, pool] if kind == WRONG_POOL:
                return reqserver.wrong_pool(name, int(ticket), pool.decode(), self.now)
            case [kind, *fields] if kind == READY:
                ready = read_ready(fields)
                found = reqserver.ready(name, self.now, ready.pool, offer=ready.offer, reqservers=ready.reqservers)
                if not ready.pool:
                    joined = reqserver.workers.get(name)
                    assert joined is not None
                    self.workers[name].wire(host).arriving.append([POOL, joined.pool.encode()])
                return found
            case [kind, pool, count] if kind == AWAY:
                return reqserver.away(name, self.now, pool.decode(), int(count))
        raise AssertionError(message)

    def do(self, host: str, instructions: Sequence[Instruction]) -> None:
        for one in instructions:
            match one:
                case Assign(name, request, pool):
                    worker = self.reqservers[host].workers.get(name)
                    assert worker is not None
                    short = self.random.random() < 0.5
                    frames = work_frames(
                        request.ticket, b"minion", b"", request.payload, pool, worker.offer, short=short
                    )
                    self.workers[name].wire(host).arriving.append(frames)
                case Call(name, wanted):
                    self.workers[name].wire(host).arriving.append([CALL, b"1" if wanted else b"0"])
                case Answer(request, payload):
                    assert payload == request.payload
                    self.answered[payload] += 1
                case _:
                    raise AssertionError(one)

    def work(self) -> None:
        """A worker reads what has arrived, and does its request."""
        worker = self.random.choice(list(self.workers.values()))
        request = worker.receive()
        if request is None:
            return
        wanted = "fast" if int(request.payload[1:]) % 3 == 0 else "rest"
        if request.pool and request.pool != wanted:
            worker.wrong_pool(request, wanted)
            return
        self.executed[request.payload] += 1
        worker.answer(request, request.payload, "")


@pytest.mark.parametrize("pools", [ONE_POOL, POOLS], ids=["one pool", "two pools"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_each_request_is_done_once_whatever_crosses_on_the_way(pools: Pools, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        state: dict[str, World] = {}
        clock = SimpleNamespace(monotonic=lambda: state["world"].now if state else 100.0)
        patch.setattr(reqserver_links, "time", clock)
        patch.setattr(reqserver_links, "FOLLOW_SECONDS", 0.0)
        patch.setattr(reqserver_links, "_QUIET", 0.0)
        patch.setattr(reqserver_links.frames, "receive", lambda wire: wire.arriving.popleft())
        patch.setattr(reqserver_links.frames, "_send", Wire.send)
        state["world"] = world = World(pools, seed)
        for _ in range(400):
            world.step()
        asked = len(world.asked)
        world.ask = lambda: None  # type: ignore[method-assign]
        for _ in range(8000):
            if len(world.answered) == asked:
                break
            world.step()
        assert world.answered == Counter(world.asked)
        assert world.executed == world.answered
        # Each worker is known by one pool.
        for name in world.workers:
            assert len({found.pool for one in world.reqservers.values() if (found := one.workers.get(name))}) == 1
