"""Minions that are nothing but their end of the wire: thousands of them in one process, so that the master is what is measured.

python -m bench.crowd --ret PORT --publish PORT --count 500

Each has sockets of its own and signs in by itself; they share a few key pairs, a master does the same work for each. It prints a
line of JSON for the first sign-in of all at once and one for a second, when they know the master (a reconnect storm), then
answers what is published with ``True`` until its input ends.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import zmq

from saltwire.crypticle import Crypticle, SerialGate
from saltwire.envelope import ClientSession
from saltwire.handshake import Credentials, SignIn
from saltwire.keys import PrivateKey, PublicKey
from saltwire.publication import open_job

_KEYS = 16

#: Seconds after which a stock minion sends its sign-in again: later answers count as late.
_AUTH_TIMEOUT = 5.0

#: Seconds that all of a storm may take.
_STORM_SECONDS = 300.0


@dataclass
class Simulated:
    """One minion: its request socket, and after a sign-in its session."""

    id: str
    key: PrivateKey
    requests: zmq.Socket[bytes]
    credentials: Credentials | None = None
    session: ClientSession | None = None

    def signing_in(self) -> SignIn:
        """The machine of a sign-in, with the master's key once it is known."""
        known = PublicKey.from_pem(self.credentials.master_pub) if self.credentials else None
        return SignIn(self.id, self.key, known)


class Crowd:
    """All of them, on one poller."""

    def __init__(self, name: str, count: int, ret_port: int, publish_port: int) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 4 * count + 100)
        self._endpoint = f"tcp://127.0.0.1:{ret_port}"
        self._publish = f"tcp://127.0.0.1:{publish_port}"
        keys = [PrivateKey.generate(2048) for _ in range(_KEYS)]
        self._minions = [
            Simulated(f"{name}{number:05d}", keys[number % _KEYS], self._request()) for number in range(count)
        ]
        self._poller = zmq.Poller()
        self._of: dict[zmq.Socket[bytes], Simulated] = {}
        for minion in self._minions:
            self._follow(minion)
        #: (payload, job): everybody is sent the same bytes, which are opened once.
        self._opened: tuple[bytes, dict[str, Any] | None] = (b"", None)
        self._gate = SerialGate()

    def _request(self) -> zmq.Socket[bytes]:
        requests = self._context.socket(zmq.DEALER)
        requests.setsockopt(zmq.LINGER, 0)
        requests.connect(self._endpoint)
        return requests

    def _follow(self, minion: Simulated) -> None:
        self._of[minion.requests] = minion
        self._poller.register(minion.requests, zmq.POLLIN)

    def reconnect(self) -> None:
        """New connections for all, as after a restart of the master."""
        for minion in self._minions:
            self._poller.unregister(minion.requests)
            del self._of[minion.requests]
            minion.requests.close()
            minion.requests = self._request()
            self._follow(minion)

    def storm(self) -> dict[str, Any]:
        """All sign in at once: seconds until the last has its answer, how many came late, how many never or with a refusal."""
        machines = {minion.id: minion.signing_in() for minion in self._minions}
        requests = [(minion, machines[minion.id].request()) for minion in self._minions]
        started = time.monotonic()
        for minion, payload in requests:
            minion.requests.send_multipart([b"", payload])
        answers: dict[str, bytes] = {}
        took: list[float] = []
        while len(answers) < len(self._minions) and time.monotonic() - started < _STORM_SECONDS:
            for one, _ in self._poller.poll(1000):
                answers[self._of[one].id] = one.recv_multipart()[-1]
                took.append(time.monotonic() - started)
        seconds = time.monotonic() - started
        # What an answer says is looked at when the clock has stopped: opening it costs more than sending it.
        accepted = 0
        for minion in self._minions:
            if minion.id in answers and (credentials := machines[minion.id].feed(answers[minion.id]).credentials):
                accepted += 1
                minion.credentials = credentials
                minion.session = ClientSession(minion.id, Crypticle(credentials.session or credentials.aes), minion.key)
        late = sum(one > _AUTH_TIMEOUT for one in took)
        return {"seconds": seconds, "late": late, "refused": len(self._minions) - accepted}

    def listen(self) -> None:
        """Subscribes each, then answers until the input ends."""
        subscriptions = {}
        for _ in self._minions:
            sub = self._context.socket(zmq.SUB)
            sub.setsockopt(zmq.LINGER, 0)
            sub.setsockopt(zmq.SUBSCRIBE, b"")
            sub.connect(self._publish)
            self._poller.register(sub, zmq.POLLIN)
            subscriptions[sub] = self._minions[len(subscriptions)]
        self._poller.register(sys.stdin.fileno(), zmq.POLLIN)
        while True:
            for one, _ in self._poller.poll():
                if one == sys.stdin.fileno():
                    return
                if one in subscriptions:
                    self._answer(subscriptions[one], one.recv_multipart()[-1])
                else:
                    one.recv_multipart()

    def _answer(self, minion: Simulated, payload: bytes) -> None:
        if payload != self._opened[0]:
            assert minion.credentials is not None
            self._opened = (payload, open_job(payload, Crypticle(minion.credentials.aes), gate=self._gate))
        job = self._opened[1]
        if job is None or minion.session is None:
            return
        named = job["tgt"] if isinstance(job["tgt"], list) else None
        if named is not None and minion.id not in named:
            return
        load = {"cmd": "_return", "jid": job["jid"], "fun": job["fun"], "fun_args": job["arg"], "id": minion.id}
        load |= {"return": job["fun"] != "saltutil.find_job" or {}, "retcode": 0, "success": True}
        minion.requests.send_multipart([b"", minion.session.seal(load, time.time())[0]])


def main() -> int:
    """Exit code 0 when the input ends."""
    parser = argparse.ArgumentParser(prog="bench.crowd", description=__doc__)
    parser.add_argument("--name", default="crowd", help="what their ids begin with")
    for name in ("ret", "publish", "count"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = parser.parse_args()
    crowd = Crowd(arguments.name, arguments.count, arguments.ret, arguments.publish)
    for _ in range(2):
        print(json.dumps(crowd.storm()), flush=True)
        crowd.reconnect()
    crowd.listen()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
