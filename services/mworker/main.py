"""A worker: takes a request from the reqserver, answers it, is ready for the next.

One loop, one request at a time; more throughput is more workers. A second thread sends a pulse while a request is worked
on, so that a dead worker and a busy one can be told apart.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import zmq

from masterstore.store import Store
from services.kit.bus import EventSender
from services.kit.links import LinkKeys, connect
from services.kit.masterkeys import MasterKeys
from services.kit.service import DRAIN_SECONDS, Role, run_role
from services.kit.workerlink import ANSWER, BYE, PULSE, PULSE_SECONDS, READY, WORK
from services.mworker.desk import Desk
from services.mworker.door import Door
from services.mworker.processes import Processes
from statecore.files import LocalFiles


def worker_name() -> bytes:
    """Unique among all workers and restarts of this one."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}".encode()


def _loop(role: Role) -> None:
    link_keys = LinkKeys.load(role.keys)
    store = Store.open(role.options.redis_url, client_name="mworker")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    sender = EventSender(context, role.options, link_keys)
    processes = Processes()
    desk = _desk(role, store, sender, processes)
    door = Door(desk)
    name = worker_name()
    link = context.socket(zmq.DEALER)
    link.setsockopt(zmq.ROUTING_ID, name)
    link.setsockopt(zmq.LINGER, 1000)
    connect(link, "workers", role.options, link_keys)
    role.watch_redis(store.trouble)
    # Without Redis no request can be answered; the reqserver keeps them for workers that can, or until they are overdue.
    _wait_for_store(role, store)
    try:
        with _pulse(context, role, link_keys, name):
            link.send(READY)
            while role.running():
                if link.poll(int(PULSE_SECONDS * 1000)):
                    _work(link, door)
                else:
                    link.send(READY)
                processes.reap()
        link.send(BYE)
        processes.drain(DRAIN_SECONDS)
    finally:
        link.close()
        sender.close()
        context.term()


def _work(link: zmq.Socket[bytes], door: Door) -> None:
    kind, *rest = link.recv_multipart()
    if kind == WORK and len(rest) == 4:
        ticket, side, client, payload = rest
        link.send_multipart([ANSWER, ticket, door.answer(side, client.decode(), payload)])


def _desk(role: Role, store: Store, sender: EventSender, processes: Processes) -> Desk:
    options = role.options
    return Desk(
        options=options,
        keys=MasterKeys.load_for(role.keys, options),
        key_dir=role.keys,
        store=store,
        fire=sender.fire,
        files=LocalFiles(options.file_roots, options.hash_type),
        metrics=role.metrics,
        log=role.log,
        start_runner=processes.start,
    )


def _wait_for_store(role: Role, store: Store) -> None:
    told = False
    while role.running() and (why := store.trouble()):
        if not told:
            role.log.error("%s; waiting for it", why)
            told = True
        time.sleep(PULSE_SECONDS / 2)


@contextlib.contextmanager
def _pulse(context: zmq.Context[zmq.Socket[bytes]], role: Role, keys: LinkKeys, name: bytes) -> Iterator[None]:
    """Says once a second that this worker lives, whatever its loop is busy with."""
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(context, role, keys, name, ended.wait), name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _beat(
    context: zmq.Context[zmq.Socket[bytes]], role: Role, keys: LinkKeys, name: bytes, wait: Callable[[float], bool]
) -> None:
    beat = context.socket(zmq.DEALER)
    beat.setsockopt(zmq.LINGER, 0)
    connect(beat, "workers", role.options, keys)
    while not wait(PULSE_SECONDS):
        with contextlib.suppress(zmq.Again):
            # An absent reqserver needs no pulse.
            beat.send_multipart([PULSE, name], zmq.NOBLOCK)
    beat.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of ``saltern mworker``."""
    return run_role("mworker", _loop, argv)
