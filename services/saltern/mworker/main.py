"""The role mworker: a worker takes one request at a time from the reqserver, answers it, and reports that it is ready.

More throughput means more workers. While a request is in hand, a second thread sends a pulse each second, so that the reqserver
can tell a busy worker from a dead one, and ends the process if the main loop is stuck (``watchdog``). An idle worker says each
second that it is idle. Source: docs/execution.md#mworkers
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import zmq

from masterstore.errors import StoreError
from masterstore.event_codes import EventCodes
from masterstore.events import EventKeeper
from masterstore.record_mac import Records
from masterstore.store import Store
from saltern.kit.config.access_rows import LiveRows
from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.config.reactor_rows import wanted_tags
from saltern.kit.config.worker_pools import Pools, own_pool, read_pools, unknown_commands
from saltern.kit.keys.events_key import load_event_macs
from saltern.kit.keys.master_keys import KeptMasterKeys, MasterKeys, record_mac
from saltern.kit.links.addresses import Addresses, hosts_of
from saltern.kit.links.deadlines import read_deadlines
from saltern.kit.links.event_bus import EventSender
from saltern.kit.links.sockets import LinkKeys, connect
from saltern.kit.links.worker_link import PULSE_SECONDS, Work, reply_frames
from saltern.kit.process.service import DRAIN_SECONDS, Role, RoleProgram, Start, run_prepared, run_role, unusable
from saltern.kit.process.supervision import EX_RENEW
from saltern.kit.trees import served_files
from saltern.kit.trees.served_files import file_server
from saltern.mworker.commands import CONTROL_COMMANDS, MINION_COMMANDS
from saltern.mworker.deferred_reply import SealedDeferredReply
from saltern.mworker.durability import durability
from saltern.mworker.processes import Processes, TooManyRunners
from saltern.mworker.reqserver_links import Beats, ReqserverLinks
from saltern.mworker.request_handler import UNLISTED, RequestHandler, WrongPool
from saltern.mworker.watchdog import EX_HUNG, Watchdog, Wear, arm, disarm
from saltern.mworker.worker_context import WorkerContext
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from saltern.mworker import worker_processes
else:
    # The supervision of several workers, which a single worker does not need.
    worker_processes = lazy_module("saltern.mworker.worker_processes")

#: Seconds for which the pulse thread of an idle worker sleeps. It then restarts faulthandler's timer and looks for replaced keys.
_REST_SECONDS = 5.0

#: Milliseconds that a child process waits until its reply is sent.
_DEFERRED_LINGER = 10_000


def worker_name() -> bytes:
    """Return a name for this worker that is unique among all workers and their restarts."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}".encode()


class Recycled(Exception):
    """Raised when the worker has finished its work and must start anew in the same process id, to free memory."""


@dataclass(frozen=True)
class Prepared:
    """The objects of the role mworker that are made before its workers are forked: pools, keys, store. None has a
    connection that a fork would share.
    """

    pools: Pools
    #: Pool of these workers; empty: each joins the pool that lacks most workers.
    pool: bytes
    link_keys: LinkKeys
    master_keys: KeptMasterKeys
    store: Store
    keeper: EventKeeper


def _prepare(role: Role) -> Callable[[], None]:
    pools = read_pools(role.options)
    pool = own_pool(role.options, pools).encode()
    for line in unknown_commands(pools, frozenset({*MINION_COMMANDS, *CONTROL_COMMANDS, *UNLISTED})):
        role.log.warning("worker_pools: %s", line)
    link_keys = LinkKeys.load(role.keys)
    master_keys = KeptMasterKeys(role.keys, role.options)
    records = Records(record_mac(master_keys.current.secret), accept_unsigned=role.options.accept_unsigned_records)
    event_codes = EventCodes(load_event_macs(role.keys, role.log), accept_unsigned=role.options.accept_unsigned_records)
    with unusable(StoreError):
        store = Store.open(
            role.options.redis_url,
            client_name="mworker",
            durability=durability(role.options),
            records=records,
            event_codes=event_codes,
        )
    keeper = EventKeeper(store.events, wanted_tags(role.options), role.options.events_kept_count)
    return partial(_loop, role, Prepared(pools, pool, link_keys, master_keys, store, keeper))


def _loop(role: Role, ready: Prepared) -> None:
    link_keys, store = ready.link_keys, ready.store
    watchdog = Watchdog(read_deadlines(role.options), role.options.request_deadline)
    wear = Wear(role.options.worker_max_requests, role.options.worker_max_rss)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    sender = EventSender(context, role.options, link_keys, ready.keeper)
    processes = Processes()
    master_keys = ready.master_keys
    master_keys.follow()
    worker_context = _worker_context(role, master_keys.current, store, sender, processes)
    handler = RequestHandler(worker_context, ready.pools, watchdog)
    name = worker_name()
    addresses = Addresses(hosts_of(role.options.reqserver_host))
    differ = ready.pools.several
    links = ReqserverLinks(
        context, role.options, link_keys, addresses, name, ready.pool, role.metrics, differ, role.stop
    )
    role.stop.hurry = links.hurry
    role.watch_redis(store.unready)
    role.watch_faults(store.faults)
    role.health.check("reqservers", links.trouble)
    role.health.check("trees", partial(served_files.trouble, role.options))
    if why := served_files.trouble(role.options):
        role.log.error("trees: %s", why)
    # Without Redis no request can be answered. The reqserver queues requests until a worker is ready, or they are overdue.
    _wait_for_store(role, store, links)
    if role.options.accept_unsigned_records:
        _sign_accepted_keys(role, store)
    worn = ""
    try:
        with _pulse(context, role, link_keys, addresses, name, watchdog, links):
            links.begin()
            defer = partial(_defer, links, role, processes)
            while role.running():
                if master_keys.follow():
                    worker_context.keys = master_keys.current
                work = links.receive()
                if work is not None:
                    _work(links, work, handler, defer)
                    links.follow()
                else:
                    sender.follow()
                    worker_context.release_copies(time.monotonic())
                worker_context.audit.seal_when_due()
                processes.reap()
                # A restart replaces this process, so it waits until no child process is left.
                if processes.idle and (worn := wear.out(watchdog.count, time.monotonic())):
                    break
        links.bye()
        processes.drain(DRAIN_SECONDS)
        worker_context.audit.seal()
    finally:
        # A second signal must not find closed sockets.
        role.stop.hurry = _nothing
        links.close()
        addresses.close()
        sender.close()
        context.term()
    if worn:
        role.log.info("the worker restarts after %s", worn)
        raise Recycled


def _nothing() -> None:
    """A worker that ends waits for no request."""


def _work(
    links: ReqserverLinks, work: Work, handler: RequestHandler, defer: Callable[[Work, SealedDeferredReply], None]
) -> None:
    answer = handler.answer(work.side, work.client.decode(), work.payload, work.pool.decode())
    if isinstance(answer, SealedDeferredReply):
        defer(work, answer)
    elif isinstance(answer, WrongPool):
        links.wrong_pool(work, answer.pool)
    else:
        links.answer(work, answer, handler.sender)


def _defer(links: ReqserverLinks, role: Role, processes: Processes, request: Work, reply: SealedDeferredReply) -> None:
    """Tell the reqserver that the reply comes later, and start the child process that computes it.

    No child is started if another one computes this reply already. If there are too many children, the refusal is sent.
    """
    # Sent before the child starts: the child's reply takes another connection and could arrive first.
    links.defer(request)
    work = reply.work
    if work is None:
        return

    def lost(how: str) -> None:
        reply.lost(how)
        links.answer_later(request, reply.refused)

    try:
        send = partial(_send_deferred, role.options, links.link_keys, request, work)
        processes.start_in_turn(send, lost, reply.requester)
    except TooManyRunners as error:
        role.log.error("a minion's request is refused: %s", error)
        lost(f"was not started: {error}")


def _send_deferred(options: MasterOptions, keys: LinkKeys, request: Work, work: Callable[[], bytes]) -> None:
    """Compute a deferred reply and send it to the reqserver that has the request. Runs in a child process, which opens its own
    connection.
    """
    answer = work()
    if keys.directory is not None:
        # The work may have taken long, and the keys may have been replaced.
        with contextlib.suppress(ConfigError):
            keys = LinkKeys.load(keys.directory)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    link = context.socket(zmq.DEALER)
    link.setsockopt(zmq.LINGER, _DEFERRED_LINGER)
    connect(link, "workers", options, keys, request.host)
    link.send_multipart(reply_frames(request, answer))
    link.close()
    context.term()


def _worker_context(
    role: Role, master_keys: MasterKeys, store: Store, sender: EventSender, processes: Processes
) -> WorkerContext:
    options = role.options
    return WorkerContext(
        options=options,
        keys=master_keys,
        key_dir=role.keys,
        store=store,
        fire=sender.fire,
        fire_all=sender.fire_all,
        prepare=sender.prepare,
        files=file_server(options),
        metrics=role.metrics,
        log=role.log,
        start_runner=processes.start,
        tracing=role.tracing,
        access=LiveRows(options, role.config_dir),
    )


def _sign_accepted_keys(role: Role, store: Store) -> None:
    """Add authentication codes to the accepted minion keys that an older release stored without one, and log their number."""
    try:
        if count := store.minion_keys.sign_all():
            role.log.warning("signed %d accepted keys that had no code (accept_unsigned_records)", count)
    except StoreError as error:
        role.log.error("accepted keys were not signed: %s; the next worker that starts signs them", error)


def _wait_for_store(role: Role, store: Store, links: ReqserverLinks) -> None:
    """Wait until Redis answers. Meanwhile tell the reqservers why no worker is ready; they pass the reason on to operators."""
    logged = False
    while role.running() and (why := store.trouble()):
        if not logged:
            role.log.error("%s; waiting for it", why)
            logged = True
        links.not_ready(why)
        role.stop.wait(PULSE_SECONDS / 2)


@contextlib.contextmanager
def _pulse(
    context: zmq.Context[zmq.Socket[bytes]],
    role: Role,
    keys: LinkKeys,
    addresses: Addresses,
    name: bytes,
    watchdog: Watchdog,
    links: ReqserverLinks,
) -> Iterator[None]:
    """Run the pulse thread: while a request is in hand, it reports each second that this worker lives, and ends the process
    when the request takes longer than its command may take.
    """

    def run() -> None:
        _beat(Beats(context, role.options, keys, addresses, name), role, watchdog, lambda: links.introduced_at)

    thread = threading.Thread(target=run, name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watchdog.close()
        thread.join()


def _beat(beats: Beats, role: Role, watchdog: Watchdog, introduced_at: Callable[[], float]) -> None:
    """Send the pulses of a worker until it ends. ``introduced_at`` returns when its main loop last said that it is idle."""
    last = time.monotonic()
    arm()
    while True:
        if watchdog.wait_for_request(_REST_SECONDS):
            # Both are signs of life, and one each second is enough.
            if watchdog.wait_for_end(max(last, introduced_at()) + PULSE_SECONDS - time.monotonic()):
                break
            beats.follow()
            if stuck := watchdog.overdue(time.monotonic()):
                _end_hung(beats, role.log, stuck, watchdog)
            beats.pulse()
            last = time.monotonic()
        else:
            beats.follow()
        arm()
    disarm()
    beats.close()


def _end_hung(beats: Beats, log: logging.Logger, stuck: str, watchdog: Watchdog) -> None:
    """Report the hang to the reqservers, log the stack of the main loop, and end the process."""
    where = watchdog.where()
    beats.hung()
    log.critical("this worker hangs and ends: %s; it is at\n%s", stuck, where, extra={"cmd": watchdog.cmd})
    os._exit(EX_HUNG)


def _longest(options: MasterOptions) -> float:
    return Watchdog(read_deadlines(options), options.request_deadline).longest()


def _run(program: RoleProgram, start: Start) -> int:
    """Run one worker in this process, or a parent that forks ``worker_processes`` workers. Return the exit code."""
    if start.options.worker_processes > 1:
        return worker_processes.run(program, start, (Recycled,))
    try:
        return run_prepared(program, start)
    except Recycled:
        if start.role is None:
            raise
        # The parent that forked this process forks another one.
        return EX_RENEW


PROGRAM = RoleProgram(
    "mworker",
    _prepare,
    {"--pool": ("worker_pool", "pool of worker_pools that this worker is in")},
    _longest,
    _run,
    caches=True,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern mworker`` and return its exit code."""
    try:
        return run_role(PROGRAM, argv)
    except Recycled:
        # exec keeps the process id, so the supervisor of this process notices nothing.
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
