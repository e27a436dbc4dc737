"""The role reqserver: passes requests of minions (4506) and operators (4507) to workers (4516), and returns the replies.

It has no key that decrypts a request. It sees frames, sizes, the unencrypted header of a request (``clear_header``) and which
worker has which request (``dispatch``). One thread serves the minions' port (``minion_port``) and two ROUTER sockets.
Source: docs/execution.md#master-processes
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgpack
import zmq

from saltern.kit.config.worker_pools import read_pools
from saltern.kit.links import control, frames
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.deadlines import read_deadlines
from saltern.kit.links.sockets import LinkKeys, bind, without_aborts
from saltern.kit.links.worker_link import (
    AWAY,
    BYE,
    CALL,
    DEFERRED,
    HUNG,
    NOT_READY,
    POOL,
    PULSE,
    READY,
    WHO,
    WRONG_POOL,
    is_number,
    read_ready,
    read_reply,
    work_frames,
)
from saltern.kit.process.rate_limit import RareLog
from saltern.kit.process.service import DRAIN_SECONDS, Role, RoleProgram, run_role
from saltern.reqserver import clear_header
from saltern.reqserver.clear_header import ClearHeader
from saltern.reqserver.dispatch import Answer, Assign, Call, Dispatcher, GiveUp, Instruction, Refuse
from saltern.reqserver.lost_workers import LostWorkers
from saltern.reqserver.minion_port import Arrived, MinionPort
from saltern.reqserver.queue import Request, Side
from saltwire.busy import busy_answer
from saltwire.pack import packb

#: Answer to a request that no worker needs to see. Source: docs/protocol.md#reply-order
_BAD_LOAD = packb("bad load")

#: Milliseconds to wait for a message before the timers are checked.
_TICK = 250

#: The same while no request waits or is worked on: each message is read at once, and only the timers of silent workers are due.
_IDLE_TICK = 1000

#: The same while workers of other reqservers may have to be called.
_CALL_TICK = 5

#: Bytes of the random number before the first ticket.
_TICKET_BYTES = 5

#: Least seconds between two checks of the timers.
_TICK_SECONDS = 0.05

#: Messages read from one port before the other ports are read, so that many requests on 4506 do not delay workers' replies.
_BURST = 100

#: Largest request of an operator, bytes.
_MAX_CONTROL_BYTES = 16 * 1024 * 1024


#: Seconds between two updates of the metrics.
_MEASURE_SECONDS = 0.2

#: Seconds between two warnings about refused requests or missing workers.
_WARNING_SECONDS = 10.0

#: Seconds between two warnings about the rate of one address.
_LIMITS_SECONDS = 600.0

#: Seconds for which a worker's report is valid that it cannot start; workers repeat it every few seconds.
_FAULT_SECONDS = 6.0

#: Seconds between two reports which minions are connected; at most a third of presence_window.
_REPORT_SECONDS = 60.0

#: Seconds between two reports of the lengths of queues.
_FIGURES_SECONDS = 5.0

#: Most minions in one report.
_REPORTED = 5000

#: Route of the reqserver's own requests: nobody waits for the answer.
_NO_ROUTE: tuple[bytes, ...] = (b"reqserver",)

#: Label in the metrics for requests whose command is not known yet.
UNOPENED = "unopened"

#: TCP keepalive: a machine that vanished is noticed after about two minutes. Source: docs/protocol.md#request-framing
_KEEPALIVE = {zmq.TCP_KEEPALIVE: 1, zmq.TCP_KEEPALIVE_IDLE: 60, zmq.TCP_KEEPALIVE_INTVL: 15, zmq.TCP_KEEPALIVE_CNT: 3}


class Server:
    """The three sockets of the reqserver, and the Dispatcher that decides what is sent over them."""

    def __init__(self, role: Role, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        options = role.options
        self._role = role
        #: Several of one machine differ by the address of their links.
        self._name = socket.gethostname() + (f" {options.internal_interface}" if options.ret_port_shared else "")
        self._curve_auth = CurveAuth(context, LinkKeys.load(role.keys))
        self._dispatcher = Dispatcher(
            silence=options.worker_silence,
            deadline=options.request_deadline,
            deadlines=_queue_limits(read_deadlines(options), options.request_deadline),
            pools=read_pools(options),
            max_count=options.max_waiting_requests,
            max_bytes=options.max_waiting_bytes,
            at_once=options.minion_requests_at_once,
            requests_per_second=options.minion_requests_per_second,
            bytes_per_second=options.minion_bytes_per_second,
            tickets_after=int.from_bytes(os.urandom(_TICKET_BYTES), "big"),
        )
        self._next_tick = self._next_measure = self._next_warning = self._next_report = self._next_figures = 0.0
        #: (time, reason) of the last report of a worker that it cannot start.
        self._worker_fault = (-_FAULT_SECONDS, "")
        self._wait_metrics = {
            pool: role.metrics.request_wait_seconds.labels(pool) for pool in self._dispatcher.pools.names
        }
        self._minions = MinionPort(
            options.interface,
            options.ret_port,
            max_bytes=options.max_request_bytes,
            max_held=options.max_waiting_bytes,
            connections_per_second=options.address_connections_per_second,
            requests_per_second=options.address_requests_per_second,
            shared=options.ret_port_shared,
        )
        self._limits_logged = RareLog(_LIMITS_SECONDS)
        self._control = _router(context, _MAX_CONTROL_BYTES)
        self._workers = _router(context, -1)
        # A worker that reconnects replaces its old connection. Operators' connections have no fixed identity, so that none may
        # take the place of another and get its answers.
        self._workers.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._curve_auth.serve(self._control, "control")
        self._curve_auth.serve(self._workers, "workers")
        self._lost_workers = LostWorkers(self._workers)
        bind(self._control, options.internal_interface, options.control_port, "control_port")
        bind(self._workers, options.internal_interface, options.workers_port, "workers_port")
        self._poller = zmq.Poller()
        self._readers = {
            self._workers: self._from_worker,
            self._control: self._from_control,
        }
        for one in self._readers:
            self._poller.register(one, zmq.POLLIN)
        self._poller.register(self._minions.fileno(), zmq.POLLIN)
        self._poller.register(self._lost_workers.monitor, zmq.POLLIN)
        # A signal ends the wait for a message.
        self._poller.register(role.stop.fileno(), zmq.POLLIN)
        role.health.check("workers", self._check_workers)

    def poll(self) -> None:
        """Handle all messages that have arrived at the reqserver, then the timers. Waits up to a second for a message."""
        self._curve_auth.follow()
        ready = dict(self._poller.poll(self._patience()))
        for one, read in self._readers.items():
            if one in ready:
                for message in frames.arrived(one, _BURST):
                    self._carry_out(read(message, time.monotonic()))
        now = time.monotonic()
        if self._minions.fileno() in ready:
            for request in self._minions.arrived(now):
                self._carry_out(self._from_minion(request, now))
        self._carry_out(self._dispatcher.call(now))
        if self._lost_workers.monitor in ready:
            self._lost_workers.notice(now)
        if now >= self._next_tick:
            self._next_tick = now + _TICK_SECONDS
            self._carry_out(self._dispatcher.tick(now))
            self._look_for_workers(now)
            self._minions.tick(now)
            self._report_connections(now)
            self._report_figures(now)
        if now >= self._next_measure:
            self._next_measure = now + _MEASURE_SECONDS
            self._measure(now)

    def _patience(self) -> int:
        """Return for how many milliseconds to wait for a message."""
        if self._dispatcher.calls_soon():
            return _CALL_TICK
        soon = (
            self._dispatcher.waiting.count or self._dispatcher.busy or self._minions.waits or self._lost_workers.awaited
        )
        return _TICK if soon else _IDLE_TICK

    def _look_for_workers(self, now: float) -> None:
        """Give up workers whose connections have ended."""
        if not self._lost_workers.awaited:
            return
        for name in (gone := self._lost_workers.gone(self._dispatcher.workers.names(), now)):
            self._role.log.warning("the connection of worker %s has ended", name.decode(errors="replace"))
        if gone:
            self._carry_out(self._dispatcher.disconnected(gone, now))

    def drain(self) -> None:
        """Stop reading requests, and wait at most DRAIN_SECONDS until the workers have finished those that they have."""
        self._poller.unregister(self._minions.fileno())
        self._poller.unregister(self._control)
        self._poller.unregister(self._role.stop.fileno())
        self._poller.unregister(self._lost_workers.monitor)
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._dispatcher.busy and time.monotonic() < deadline:
            if self._poller.poll(_TICK):
                for message in frames.arrived(self._workers, 1):
                    self._carry_out(self._from_worker(message, time.monotonic()))
        left = self._dispatcher.busy
        if left:
            self._role.log.warning("%d requests were not finished within %g s", left, DRAIN_SECONDS)

    def close(self) -> None:
        """Close the reqserver's sockets; replies get one second to leave."""
        self._minions.close(linger=1.0)
        self._lost_workers.close()
        for one in (self._control, self._workers):
            one.close(linger=1000)
        self._curve_auth.stop()

    def _from_minion(self, request: Arrived, now: float) -> list[Instruction]:
        payload, route = request.payload, (request.route,)
        if payload is None:
            return self._drop("ret_port", "not a request")
        if not clear_header.is_plausible(payload):
            # A worker would give the same answer; a minion would wait for one.
            self._answer(Side.MINION, route, _BAD_LOAD)
            return self._drop("ret_port", "a large request that is not encrypted")
        header = clear_header.of_minion(payload)
        return self._dispatcher.request(Side.MINION, route, "", payload, now, header=header, address=request.address)

    def _from_control(self, message: Sequence[zmq.Frame], now: float) -> list[Instruction]:
        if len(message) != 4 or message[1].bytes:
            return self._drop("control_port", "not a request")
        route = (message[0].bytes, b"", message[2].bytes)
        try:
            client = self._curve_auth.name_of(message[3])
        except PermissionError as error:
            # The key was revoked after this connection was made.
            self._answer(Side.CONTROL, route, control.refused("AuthorizationError", str(error)))
            return []
        payload = message[3].bytes
        return self._dispatcher.request(
            Side.CONTROL, route, client, payload, now, header=clear_header.of_operator(payload)
        )

    def _from_worker(self, message: Sequence[zmq.Frame], now: float) -> list[Instruction]:
        name, *said = [frame.bytes for frame in message]
        if (reply := read_reply(said)) is not None:
            return self._dispatcher.reply(name, reply.ticket, reply.payload, now, minion=reply.minion, last=reply.last)
        kind, *rest = said
        if kind == DEFERRED and rest and is_number(rest[0]):
            return self._dispatcher.defer(name, int(rest[0]), now)
        if kind == WRONG_POOL and len(rest) == 2 and is_number(rest[0]):
            return self._dispatcher.wrong_pool(name, int(rest[0]), rest[1].decode(errors="replace"), now)
        if kind == READY:
            ready = read_ready(rest)
            instructions = self._dispatcher.ready(
                name, now, ready.pool, offer=ready.offer, reqservers=ready.reqservers, short=ready.short
            )
            if ready.offer and not ready.pool and (joined := self._dispatcher.workers.get(name)) is not None:
                # All reqservers must know the worker by the same pool.
                frames.send(self._workers, [name, POOL, joined.pool.encode()])
            return instructions
        if kind == AWAY and len(rest) == 2 and is_number(rest[1]):
            return self._dispatcher.away(name, now, rest[0].decode(errors="replace"), max(1, int(rest[1])))
        if kind == PULSE and rest:
            return self._dispatcher.pulse(rest[0], now)
        if kind == HUNG and rest:
            if self._dispatcher.workers.get(rest[0]) is not None:
                self._role.log.error("worker %s hangs and ends: its log says where", rest[0].decode(errors="replace"))
            frames.send(self._workers, [name, HUNG])
            return self._dispatcher.hung(rest[0], now)
        if kind == NOT_READY and rest:
            self._worker_fault = (now, rest[0].decode(errors="replace"))
            return []
        if kind == BYE:
            return self._dispatcher.bye(name, now)
        return self._drop("workers_port", "not a message of a worker")

    def _drop(self, port: str, why: str) -> list[Instruction]:
        self._role.metrics.dropped.labels(port).inc()
        self._role.log.debug("dropped a message on %s: %s", port, why)
        return []

    def _carry_out(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Assign(worker, request, opening_pool):
                    self._send_work(worker, request, opening_pool)
                case Answer(request, payload, minion):
                    if minion:
                        self._minions.bind(request.route[0], minion)
                    self._answer(request.side, request.route, payload)
                case Call(worker, wanted):
                    frames.send(self._workers, [worker, CALL, b"1" if wanted else b"0"])
                case Refuse(request, why, retry_after):
                    self._refuse(request, why, retry_after)
                case GiveUp(request, why) if request.route is _NO_ROUTE:
                    self._role.log.debug("the workers were not told which minions are connected: %s", why)
                case GiveUp(request, why):
                    self._role.log.error("a request from %s was given up: %s", request.client or "a minion", why)
                    # A minion without an answer repeats its request; an operator gets an error.
                    if request.side is Side.CONTROL:
                        self._answer(
                            request.side,
                            request.route,
                            control.refused(
                                "NoWorker", f"the master cannot answer now: {self._startup_fault() or why}"
                            ),
                        )

    def _send_work(self, worker: bytes, request: Request, opening_pool: str) -> None:
        assigned = self._dispatcher.workers.get(worker)
        assert assigned is not None
        message = work_frames(
            request.ticket,
            request.side_for_worker,
            self._client_of(request),
            request.payload,
            opening_pool,
            assigned.offer,
            short=assigned.short,
        )
        frames.send(self._workers, [worker, *message])
        self._wait_metrics[assigned.pool].observe(assigned.assigned_at - request.arrived)

    def _client_of(self, request: Request) -> bytes:
        """Return the name of the request's client, which the worker gets. For a minion's request over a connection
        whose minion is not known yet, return WHO, which asks the worker for the id of the minion that verifiably sent
        the request.
        """
        if request.side is Side.MINION and not self._minions.minion_of(request.route[0]):
            return WHO
        return request.client.encode()

    def _report_connections(self, now: float) -> None:
        """Send the workers the ids of minions whose last connection has ended, and at intervals the ids of all minions
        with an open connection, because these need not send anything.
        """
        left = self._minions.left(now)
        connected: list[str] = []
        if now >= self._next_report:
            self._next_report = now + min(_REPORT_SECONDS, self._role.options.presence_window / 3)
            connected = self._minions.connected()
        for start in range(0, max(len(left), len(connected)), _REPORTED):
            part = slice(start, start + _REPORTED)
            fields = {
                "cmd": "connections",
                "left": dict(list(left.items())[part]),
                "connected": connected[part],
                "at": time.time(),
            }
            payload: bytes = msgpack.packb(fields)
            header = ClearHeader(cmd="connections")
            self._carry_out(self._dispatcher.request(Side.CONTROL, _NO_ROUTE, "reqserver", payload, now, header=header))

    def _report_figures(self, now: float) -> None:
        """Send the workers the lengths of the queues and the numbers of workers at intervals, for overviews of the master."""
        if now < self._next_figures or not self._dispatcher.workers:
            return
        self._next_figures = now + _FIGURES_SECONDS
        dispatcher, workers = self._dispatcher, self._dispatcher.workers
        pools = {
            pool: {"waiting": dispatcher.waiting.depth(pool), "workers": workers.size(pool), "busy": workers.busy(pool)}
            for pool in dispatcher.pools.names
        }
        figures = {"at": int(time.time() * 1000), "pools": pools, "connections": len(self._minions.connected())}
        payload: bytes = msgpack.packb({"cmd": "figures", "name": self._name, "figures": figures})
        header = ClearHeader(cmd="figures")
        self._carry_out(self._dispatcher.request(Side.CONTROL, _NO_ROUTE, "reqserver", payload, now, header=header))

    def _refuse(self, request: Request, why: str, retry_after: float) -> None:
        if self._warning_due(time.monotonic()):
            self._role.log.warning("requests are refused: %s (salt_requests_refused)", why)
        if request.side is Side.CONTROL:
            text = f"the master is busy: {why}; try again in {retry_after:g} s"
            self._answer(request.side, request.route, control.refused("Busy", text))
        elif request.patient:
            self._answer(request.side, request.route, busy_answer(retry_after))

    def _warning_due(self, now: float) -> bool:
        """Return whether enough time has passed to log a repeated warning again; True starts a new pause."""
        if now < self._next_warning:
            return False
        self._next_warning = now + _WARNING_SECONDS
        return True

    def _answer(self, side: Side, route: tuple[bytes, ...], payload: bytes) -> None:
        if side is Side.MINION:
            self._minions.send(route[0], payload)
        elif route is not _NO_ROUTE:
            frames.send(self._control, [*route, payload])

    def _check_workers(self) -> str | None:
        # A pool without workers does not make the role unhealthy, because other pools serve it.
        return None if self._dispatcher.workers else self._startup_fault() or "no worker is connected to workers_port"

    def _startup_fault(self) -> str | None:
        """Return why no worker is ready, as workers report it; None if one is ready or none has reported a reason."""
        reported_at, why = self._worker_fault
        fresh = time.monotonic() - reported_at < _FAULT_SECONDS
        return f"no worker can begin: {why}" if fresh and not self._dispatcher.workers else None

    def _measure(self, now: float) -> None:
        metrics, dispatcher = self._role.metrics, self._dispatcher
        workers = dispatcher.workers
        without = [pool for pool in dispatcher.pools.names if not workers.size(pool)]
        if workers and without and self._warning_due(now):
            self._role.log.warning("pools without a worker: %s; others stand in for them", ", ".join(without))
        for pool in dispatcher.pools.names:
            metrics.requests_queued.labels(pool).set(dispatcher.waiting.depth(pool))
            metrics.workers.labels(pool).set(workers.size(pool))
            metrics.workers_busy.labels(pool).set(workers.busy(pool))
            metrics.workers_away.labels(pool).set(workers.away(pool))
        if dispatcher.pools.several:
            metrics.requests_queued.labels(UNOPENED).set(dispatcher.waiting.depth(None))
            metrics.requests_handed_back.inc(dispatcher.handed_back)
            dispatcher.handed_back = 0
        if dispatcher.unread:
            metrics.requests_unread.inc(dispatcher.unread)
            dispatcher.unread = 0
        if self._minions.closed:
            metrics.dropped.labels("ret_port").inc(self._minions.closed)
            self._minions.closed = 0
        for (limit, address), count in self._minions.limited.items():
            metrics.addresses_limited.labels(limit).inc(count)
            if self._limits_logged.due((limit, address), now):
                self._role.log.warning(
                    "%s has more %s a second than address_%s_per_second allows: %s",
                    address,
                    limit,
                    limit,
                    "new ones are closed" if limit == "connections" else "they wait",
                )
        self._minions.limited.clear()
        for reason, count in dispatcher.refused.items():
            metrics.requests_refused.labels(reason).inc(count)
        dispatcher.refused.clear()
        if dispatcher.requeued:
            metrics.requests_requeued.inc(dispatcher.requeued)
            self._role.log.warning("%d requests were handed to another worker", dispatcher.requeued)
            dispatcher.requeued = 0


def _queue_limits(deadlines: Mapping[str, int], most: int) -> dict[str, float]:
    """Return {command: seconds that its requests may wait}: as long as a worker may spend on the command, but at most
    ``most``.
    """
    return {cmd: float(min(seconds, most)) for cmd, seconds in deadlines.items()}


def _router(context: zmq.Context[zmq.Socket[bytes]], max_bytes: int) -> zmq.Socket[bytes]:
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.LINGER, 1000)
    without_aborts(router)
    router.setsockopt(zmq.MAXMSGSIZE, max_bytes)
    router.setsockopt(zmq.SNDHWM, 0)
    for name, value in _KEEPALIVE.items():
        router.setsockopt(name, value)
    return router


def _prepare(role: Role) -> Callable[[], None]:
    return partial(_loop, role)


def _loop(role: Role) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server = Server(role, context)
    role.log.info("listening for minions on %s (%s)", role.options.ret_port, socket.gethostname())
    try:
        while role.running():
            server.poll()
        server.drain()
    finally:
        server.close()
        context.term()


PROGRAM = RoleProgram("reqserver", _prepare)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern reqserver`` and return its exit code."""
    return run_role(PROGRAM, argv)
