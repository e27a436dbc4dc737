"""Simulates thousands of minions in one process, reduced to their network protocol, so that only the master's work is measured.

python -m bench.crowd --ret PORT --publish PORT --count 500

Each minion has its own connections and signs in by itself. The minions share a few key pairs, which makes no difference to the
master. There are two storms: the first sign-in of all at once, and one when they know the master (a reconnect storm). A storm
begins at a line of input and prints two lines of JSON: one with its times, one with the number of refused minions. From the
next line of input until the input ends, each job is answered with ``True``, and ``state.apply`` with a result of 20 kB.
--spread: minions of the second storm begin at times that lie evenly in so many seconds, as reconnects of minions do.

Real minions have CPUs of their own; these share the master's. So the time of a storm leaves out the work of minions:

in it       a new connection of each to 4506 (TCP, ZeroMQ's greetings), its request, its answer, all on one poller
before it   key pairs, nonces, tokens encrypted to the master's key (stock minions', as ``--tokens`` says), requests packed
after it    each answer is checked as a minion does: the master's signature, nonce, token, both keys. Bad ones count as refused
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import heapq
import itertools
import json
import random
import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from bench.zmtp import SUBSCRIBE_ALL, Connection
from saltwire.busy import Busy
from saltwire.crypticle import Crypticle, SerialGate
from saltwire.envelope import ClientSession, check_busy
from saltwire.handshake import Credentials, SignIn
from saltwire.keys import PrivateKey, PublicKey
from saltwire.publication import Publication, open_job

_KEYS = 16

#: Most payloads of jobs that are remembered, because one minion reads several before the next one reads the first of them.
_PAYLOADS = 1000

#: Seconds after which a stock minion sends its sign-in again: later answers count as late.
_AUTH_TIMEOUT = 5.0

#: Seconds after which a minion asks again on a new connection: a busy master drops a request that waited for 30.
_AGAIN = 35.0

#: Seconds before a stock minion opens a connection again: the default options of that name, and a random part.
_RECON_DEFAULT, _RECON_MAX = 1.0, 10.0

#: Seconds that all of a storm may take.
_STORM_SECONDS = 300.0

#: Result of a state run of 150 states, about 20 kB.
LONG_RETURN = {
    f"file_|-file-{number}_|-/bench/f{number}_|-managed": {
        "result": True,
        "comment": "in the correct state",
        "changes": {},
        "duration": 1.5,
    }
    for number in range(150)
}


@dataclass
class Simulated:
    """A simulated minion: its connections, and after the sign-in its session."""

    id: str
    key: PrivateKey
    requests: Connection = field(default_factory=lambda: Connection(b"DEALER"))
    jobs: Connection = field(default_factory=lambda: Connection(b"SUB"))
    credentials: Credentials | None = None
    session: ClientSession | None = None
    #: Returns that the master has not acknowledged: functions that seal one. The first is the one that was sent, if any was.
    returns: collections.deque[Callable[[], bytes]] = field(default_factory=collections.deque)
    #: When the first return was sent; 0.0: it was not sent on this connection.
    sent_at: float = 0.0
    #: No return is sent before: the master was busy.
    not_before: float = 0.0


@dataclass
class SigningIn:
    """The sign-in of one simulated minion in a storm: its request, whether it was sent, and the answer."""

    minion: Simulated
    machine: SignIn
    sent: bool = False
    answer: bytes = b""
    #: Seconds after the storm's beginning at which its connection is opened.
    began: float = 0.0


class Crowd:
    """All simulated minions, served by one poller."""

    def __init__(self, name: str, count: int, ret_port: int, publish_port: int, *, tokens: bool) -> None:
        self._ret_port, self._publish_port = ret_port, publish_port
        self._tokens = tokens
        keys = [PrivateKey.generate(2048) for _ in range(min(_KEYS, count))]
        self._minions = [Simulated(f"{name}{number:05d}", keys[number % len(keys)]) for number in range(count)]
        #: Payload -> job: everybody is sent the same bytes, which are opened once. The oldest payload is the first.
        self._opened: dict[bytes, Publication | None] = {}
        self._gate = SerialGate()

    def sign_ins(self) -> list[SigningIn]:
        """Return a SigningIn for each minion for the next storm; known keys of the master are used, as after a reconnect."""
        known = {one.credentials.master_pub for one in self._minions if one.credentials}
        read = {pem: PublicKey.from_pem(pem) for pem in known}

        def sign_in(one: Simulated) -> SignIn:
            master = read[one.credentials.master_pub] if one.credentials else None
            return SignIn(one.id, one.key, master, token=self._tokens)

        return [SigningIn(one, sign_in(one)) for one in self._minions]

    def storm(self, sign_ins: list[SigningIn], spread: float = 0.0) -> dict[str, Any]:
        """Sign in all minions and measure it: all at once, or beginning at times that lie evenly in ``spread`` seconds.

        Return {"seconds": until the last reply, "late": number of replies that took longer than _AUTH_TIMEOUT, "slowest":
        seconds of the slowest, "crowd": CPU seconds of this process}.
        """
        for one in sign_ins:
            one.minion.requests.close()
        worked, started = time.process_time(), time.monotonic()
        poller = select.epoll()
        of = {}
        due = collections.deque((spread * number / max(1, len(sign_ins)), one) for number, one in enumerate(sign_ins))
        took: list[float] = []
        asked = collections.deque[tuple[float, int]]()
        while len(took) < len(sign_ins) and (now := time.monotonic() - started) < _STORM_SECONDS:
            while due and due[0][0] <= now:
                began, one = due.popleft()
                of[place := one.minion.requests.connect(self._ret_port)] = one
                one.began = began
                poller.register(place, select.EPOLLIN)
                asked.append((now + _AGAIN, place))
            while asked and asked[0][0] <= now:
                place = asked.popleft()[1]
                if not (one := of[place]).answer:
                    # The new connection may get the number of the old one, which connect closes first.
                    poller.unregister(place)
                    del of[place]
                    one.sent = False
                    of[place := one.minion.requests.connect(self._ret_port)] = one
                    poller.register(place, select.EPOLLIN)
                    asked.append((now + _AGAIN, place))
            for place, _ in poller.poll(max(0.0, min(1.0, due[0][0] - now)) if due else 1):
                one = of[place]
                answers = one.minion.requests.receive()
                if one.minion.requests.ready and not one.sent:
                    one.sent = True
                    one.minion.requests.send(b"", one.machine.request())
                if answers:
                    one.answer = answers[0][-1]
                    took.append(time.monotonic() - started - one.began)
        seconds = time.monotonic() - started
        late = sum(one > _AUTH_TIMEOUT for one in took) + len(sign_ins) - len(took)
        slowest = max(took, default=seconds)
        return {"seconds": seconds, "late": late, "slowest": slowest, "crowd": time.process_time() - worked}

    def looked_at(self, sign_ins: list[SigningIn]) -> int:
        """Check the replies as a minion does, open sessions, and return the number of accepted minions."""
        accepted = 0
        for one in sign_ins:
            if credentials := one.machine.feed(one.answer).credentials:
                accepted += 1
                minion = one.minion
                minion.credentials = credentials
                minion.session = ClientSession(minion.id, Crypticle(credentials.session or credentials.aes), minion.key)
        return accepted

    def listen(self) -> None:
        """Subscribe each minion, print a line, then return ``True`` to each job until the input ends.

        A connection that ends is opened again after 1 to 11 seconds, as stock minions' (``recon_default``, ``recon_max``); the
        session is kept. Returns are sent one after the other. One that is not acknowledged within _AGAIN seconds, or whose
        connection ended, is sent again, as minions' are; one that a busy master refused, after the time that it named.

        Each line of input is answered, as soon as each connection was opened once more and all are open, with a line {"slowest":
        seconds that the slowest greeting took, "late": number of those that took longer than _AUTH_TIMEOUT}.
        """
        Listening(self._minions, self._ret_port, self._publish_port, self._answer).run(sys.stdin, sys.stdout)

    def _answer(self, minion: Simulated, payload: bytes) -> Callable[[], bytes] | None:
        """Return a function that seals the return of a job; None if the job is not for this minion."""
        if payload not in self._opened:
            assert minion.credentials is not None
            if len(self._opened) >= _PAYLOADS:
                del self._opened[next(iter(self._opened))]
            self._opened[payload] = open_job(payload, Crypticle(minion.credentials.aes), gate=self._gate)
        job, session = self._opened[payload], minion.session
        if job is None or session is None or not is_meant(job["tgt"], minion.id):
            return None
        load: dict[str, object] = {
            "cmd": "_return",
            "jid": job["jid"],
            "fun": job["fun"],
            "fun_args": job["arg"],
            "id": minion.id,
        }
        load |= {"return": _result(str(job["fun"])), "retcode": 0, "success": True}
        return lambda: session.seal(load, time.time())[0]


class Listening:
    """The connections of minions that are signed in: they are kept open, jobs are answered."""

    def __init__(
        self,
        minions: list[Simulated],
        ret_port: int,
        publish_port: int,
        answer: Callable[[Simulated, bytes], Callable[[], bytes] | None],
    ) -> None:
        self._ret_port, self._publish_port = ret_port, publish_port
        self._answer = answer
        self._poller = select.epoll()
        #: File descriptor -> the minion, its connection, and the time when it was opened; 0.0: its greeting has come.
        self._open: dict[int, tuple[Simulated, Connection, float]] = {}
        #: (time of the next attempt, a number that makes it unique, minion, connection); the earliest is the first.
        self._due: list[tuple[float, int, Simulated, Connection]] = []
        self._numbers = itertools.count()
        #: (time at which it is sent again, its minion, the minion's sent_at) of each return; the earliest is the first.
        self._unacknowledged = collections.deque[tuple[float, Simulated, float]]()
        #: (its not_before, a number that makes it unique, minion) of each refused return; the earliest is the first.
        self._refused: list[tuple[float, int, Simulated]] = []
        self._minions = minions
        #: Seconds from an attempt to the greeting, of each connection since the last line of input.
        self._took: list[float] = []
        for one in minions:
            one.requests.close()
            for connection in (one.jobs, one.requests):
                heapq.heappush(self._due, (0.0, next(self._numbers), one, connection))

    def run(self, lines: TextIO, printed: TextIO) -> None:
        """Serve the connections until the input ends: see Crowd.listen. ``lines`` is the input, ``printed`` the output."""
        typed, connections = lines.fileno(), 2 * len(self._minions)
        self._poller.register(typed, select.EPOLLIN)
        asked = True
        line: dict[str, float] = {"listening": len(self._minions)}
        while True:
            for place, events in self._poller.poll(self._wait()):
                if place != typed:
                    self._serve(place, events)
                elif lines.readline():
                    asked = True
                else:
                    return
            while self._due and self._due[0][0] <= time.monotonic():
                self._attempt(*heapq.heappop(self._due)[2:])
            while self._unacknowledged and self._unacknowledged[0][0] <= time.monotonic():
                self._send_again(*self._unacknowledged.popleft()[1:])
            while self._refused and self._refused[0][0] <= time.monotonic():
                self._send(heapq.heappop(self._refused)[-1])
            if asked and len(self._took) >= connections and self._all_greeted():
                line |= {"slowest": max(self._took), "late": sum(one > _AUTH_TIMEOUT for one in self._took)}
                print(json.dumps(line), file=printed, flush=True)
                asked, line = False, {}
                self._took.clear()

    def _all_greeted(self) -> bool:
        return not self._due and not any(since for _, _, since in self._open.values())

    def _wait(self) -> float:
        times = [queue[0][0] for queue in (self._due, self._unacknowledged, self._refused) if queue]
        return min(1.0, max(0.0, min(times) - time.monotonic())) if times else 1.0

    def _attempt(self, minion: Simulated, connection: Connection) -> None:
        began = time.monotonic()
        try:
            place = connection.connect(self._publish_port if connection is minion.jobs else self._ret_port)
        except OSError:
            self._lost(minion, connection)
            return
        self._open[place] = minion, connection, began
        self._poller.register(place, select.EPOLLIN)

    def _lost(self, minion: Simulated, connection: Connection) -> None:
        if connection is minion.requests:
            minion.sent_at = 0.0
        due = time.monotonic() + random.uniform(_RECON_DEFAULT, _RECON_DEFAULT + _RECON_MAX)
        heapq.heappush(self._due, (due, next(self._numbers), minion, connection))

    def _serve(self, place: int, events: int) -> None:
        minion, connection, since = self._open[place]
        try:
            connection.flush()
            messages = connection.receive() if events & ~select.EPOLLOUT else []
            if since and connection.ready:
                self._took.append(time.monotonic() - since)
                self._open[place] = minion, connection, 0.0
                if connection is minion.jobs:
                    connection.post(SUBSCRIBE_ALL)
            if connection.unsent or events & select.EPOLLOUT:
                self._poller.modify(place, select.EPOLLIN | (select.EPOLLOUT if connection.unsent else 0))
        except OSError:
            self._end(place, minion, connection)
            return
        if connection is minion.jobs:
            minion.returns.extend(
                sealed for frames in messages if (sealed := self._answer(minion, frames[-1])) is not None
            )
        elif minion.sent_at and messages:
            # One return is under way at a time, so an answer is that of the first.
            self._answered(minion, messages[-1][-1])
        self._send(minion)

    def _answered(self, minion: Simulated, reply: bytes) -> None:
        minion.sent_at = 0.0
        try:
            check_busy(reply)
            minion.returns.popleft()
        except Busy as busy:
            minion.not_before = time.monotonic() + busy.retry_after
            heapq.heappush(self._refused, (minion.not_before, next(self._numbers), minion))

    def _end(self, place: int, minion: Simulated, connection: Connection) -> None:
        self._poller.unregister(place)
        del self._open[place]
        connection.close()
        self._lost(minion, connection)

    def _send(self, minion: Simulated) -> None:
        requests = minion.requests
        if not minion.returns or minion.sent_at or not requests.ready or minion.not_before > time.monotonic():
            return
        minion.sent_at = time.monotonic()
        self._unacknowledged.append((minion.sent_at + _AGAIN, minion, minion.sent_at))
        with contextlib.suppress(OSError):  # its own event, which comes next, opens the connection again
            requests.post(b"", minion.returns[0]())
            if requests.unsent:
                self._poller.modify(requests.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _send_again(self, minion: Simulated, sent_at: float) -> None:
        """Open another connection for a return that was sent at a time and is not acknowledged: an answer may still come on it."""
        if minion.sent_at == sent_at:
            self._end(minion.requests.fileno(), minion, minion.requests)


def _result(fun: str) -> object:
    if fun == "state.apply":
        return LONG_RETURN
    return {} if fun == "saltutil.find_job" else True


def is_meant(target: object, minion: str) -> bool:
    """Return whether a job's target, a glob or a list of ids, names a minion."""
    return minion in target if isinstance(target, list) else fnmatch.fnmatchcase(minion, str(target))


def main() -> int:
    """Run the storms; return 0 when the input ends."""
    parser = argparse.ArgumentParser(
        prog="bench.crowd", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--name", default="crowd", help="what their ids begin with")
    for name in ("ret", "publish", "count"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--tokens", action="store_true", help="as stock minions: have the master decrypt a token")
    parser.add_argument("--spread", type=float, default=0.0, help="seconds in which the second storm's minions begin")
    arguments = parser.parse_args()
    crowd = Crowd(arguments.name, arguments.count, arguments.ret, arguments.publish, tokens=arguments.tokens)
    for spread in (0.0, arguments.spread):
        sign_ins = crowd.sign_ins()
        print(json.dumps({"ready": len(sign_ins)}), flush=True)
        if not sys.stdin.readline():
            return 0
        print(json.dumps(crowd.storm(sign_ins, spread)), flush=True)
        print(json.dumps({"refused": len(sign_ins) - crowd.looked_at(sign_ins)}), flush=True)
    if sys.stdin.readline():
        crowd.listen()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
