"""The reqserver: requests come in on 4506 (minions) and 4507 (operators), go to an idle worker on 4516, and answers go back.

It understands no request: it sees frames, sizes and who holds what (``dispatch``). Three ROUTER sockets, one loop.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

import zmq

from services.kit import control
from services.kit.links import Doorkeeper, LinkKeys, bind
from services.kit.service import DRAIN_SECONDS, Role, run_role
from services.kit.workerlink import ANSWER, BYE, LATER, PULSE, READY, WORK
from services.reqserver.dispatch import Answer, Dispatcher, GiveUp, Hand, Instruction, Side

#: Milliseconds between looks at the clock when nothing arrives.
_TICK = 250

#: Messages read from one port before the others get their turn, so that a flood on 4506 never starves workers' answers.
_BURST = 100

#: Largest control request: a state tree is not sent this way, arguments are.
_MAX_CONTROL_BYTES = 16 * 1024 * 1024


#: A peer whose machine vanished is forgotten after about two minutes (protocol section 1.1).
_KEEPALIVE = {zmq.TCP_KEEPALIVE: 1, zmq.TCP_KEEPALIVE_IDLE: 60, zmq.TCP_KEEPALIVE_INTVL: 15, zmq.TCP_KEEPALIVE_CNT: 3}


class Server:
    """The sockets around a Dispatcher."""

    def __init__(self, role: Role, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        options = role.options
        self._role = role
        self._doorkeeper = Doorkeeper(context, LinkKeys.load(role.keys))
        self._dispatcher = Dispatcher(silence=options.worker_silence, deadline=options.request_deadline)
        self._minions = _router(context, options.max_request_bytes)
        # Protocol section 1.1: an identity that reconnects replaces its old connection, idle peers are noticed.
        self._minions.setsockopt(zmq.HEARTBEAT_IVL, 10_000)
        self._minions.setsockopt(zmq.HEARTBEAT_TIMEOUT, 30_000)
        self._minions.setsockopt(zmq.BACKLOG, 1000)
        self._control = _router(context, _MAX_CONTROL_BYTES)
        self._workers = _router(context, -1)
        self._doorkeeper.serve(self._control, "control")
        self._doorkeeper.serve(self._workers, "workers")
        bind(self._minions, options.interface, options.ret_port, "ret_port")
        bind(self._control, options.internal_interface, options.control_port, "control_port")
        bind(self._workers, options.internal_interface, options.workers_port, "workers_port")
        self._poller = zmq.Poller()
        self._readers = {
            self._workers: self._from_worker,
            self._control: self._from_control,
            self._minions: self._from_minion,
        }
        for one in self._readers:
            self._poller.register(one, zmq.POLLIN)
        role.health.check("workers", self._check_workers)

    def turn(self) -> None:
        """Moves what has arrived, then looks at the clock."""
        ready = dict(self._poller.poll(_TICK))
        for one, read in self._readers.items():
            if one in ready:
                for _ in range(_BURST):
                    try:
                        frames = one.recv_multipart(zmq.NOBLOCK, copy=False)
                    except zmq.Again:
                        break
                    self._carry_out(read(frames, time.monotonic()))
        self._carry_out(self._dispatcher.tick(time.monotonic()))
        self._measure()

    def drain(self) -> None:
        """Takes no new requests; waits for workers to finish what they hold, at most DRAIN_SECONDS."""
        for one in (self._minions, self._control):
            self._poller.unregister(one)
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._dispatcher.busy and time.monotonic() < deadline:
            if dict(self._poller.poll(_TICK)):
                self._carry_out(self._from_worker(self._workers.recv_multipart(copy=False), time.monotonic()))
        left = self._dispatcher.busy
        if left:
            self._role.log.warning("%d requests were not finished within %g s", left, DRAIN_SECONDS)

    def close(self) -> None:
        """Ends the sockets; answers on their way out get a second."""
        for one in (self._minions, self._control, self._workers):
            one.close(linger=1000)
        self._doorkeeper.stop()

    def _from_minion(self, frames: Sequence[zmq.Frame], now: float) -> list[Instruction]:
        # Exactly one identity hop, an empty delimiter and a payload (protocol section 1.1).
        if len(frames) != 3 or frames[1].bytes:
            return self._drop("ret_port", frames)
        return self._dispatcher.request(Side.MINION, (frames[0].bytes, b""), "", frames[2].bytes, now)

    def _from_control(self, frames: Sequence[zmq.Frame], now: float) -> list[Instruction]:
        if len(frames) != 4 or frames[1].bytes:
            return self._drop("control_port", frames)
        route = (frames[0].bytes, b"", frames[2].bytes)
        client = self._doorkeeper.name_of(frames[3])
        return self._dispatcher.request(Side.CONTROL, route, client, frames[3].bytes, now)

    def _from_worker(self, frames: Sequence[zmq.Frame], now: float) -> list[Instruction]:
        name, kind, *rest = [frame.bytes for frame in frames]
        if kind == ANSWER and len(rest) == 2 and rest[0].isdigit():
            return self._dispatcher.reply(name, int(rest[0]), rest[1], now)
        if kind == LATER and rest and rest[0].isdigit():
            return self._dispatcher.later(name, int(rest[0]), now)
        if kind == READY:
            return self._dispatcher.ready(name, now)
        if kind == PULSE and rest:
            return self._dispatcher.pulse(rest[0], now)
        if kind == BYE:
            return self._dispatcher.bye(name, now)
        return self._drop("workers_port", frames)

    def _drop(self, port: str, frames: Sequence[zmq.Frame]) -> list[Instruction]:
        self._role.metrics.dropped.labels(port).inc()
        self._role.log.debug("dropped a message of %d frames on %s: not a request", len(frames), port)
        return []

    def _carry_out(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Hand(worker, request):
                    frames = [
                        worker,
                        WORK,
                        b"%d" % request.ticket,
                        request.side.value,
                        request.client.encode(),
                        request.payload,
                    ]
                    self._workers.send_multipart(frames)
                case Answer(request, payload):
                    self._answer(request.side, request.route, payload)
                case GiveUp(request, why):
                    self._role.log.error("a request from %s was given up: %s", request.client or "a minion", why)
                    # A minion that gets no answer asks again by itself; an operator is told at once.
                    if request.side is Side.CONTROL:
                        self._answer(
                            request.side,
                            request.route,
                            control.refused("NoWorker", f"the master cannot answer now: {why}"),
                        )

    def _answer(self, side: Side, route: tuple[bytes, ...], payload: bytes) -> None:
        port = self._minions if side is Side.MINION else self._control
        port.send_multipart([*route, payload])

    def _check_workers(self) -> str | None:
        return None if self._dispatcher.workers else "no worker is connected to workers_port"

    def _measure(self) -> None:
        metrics, dispatcher = self._role.metrics, self._dispatcher
        metrics.requests_queued.set(len(dispatcher.queue))
        metrics.workers.set(len(dispatcher.workers))
        metrics.workers_busy.set(dispatcher.busy)
        if dispatcher.requeued:
            metrics.requests_requeued.inc(dispatcher.requeued)
            self._role.log.warning("%d requests were handed to another worker", dispatcher.requeued)
            dispatcher.requeued = 0


def _router(context: zmq.Context[zmq.Socket[bytes]], max_bytes: int) -> zmq.Socket[bytes]:
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.ROUTER_HANDOVER, 1)
    router.setsockopt(zmq.LINGER, 1000)
    router.setsockopt(zmq.MAXMSGSIZE, max_bytes)
    router.setsockopt(zmq.SNDHWM, 0)
    for name, value in _KEEPALIVE.items():
        router.setsockopt(name, value)
    return router


def _loop(role: Role) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server = Server(role, context)
    role.log.info("listening for minions on %s (%s)", role.options.ret_port, socket.gethostname())
    try:
        while role.running():
            server.turn()
        server.drain()
    finally:
        server.close()
        context.term()


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``saltern reqserver``."""
    return run_role("reqserver", _loop, argv)
