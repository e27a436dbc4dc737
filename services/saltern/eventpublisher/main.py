"""The role eventpublisher: forwards events from port 4512 to all subscribers of port 4513 whose prefix matches the
tag.

A subscription to a topic that begins with PROBE is echoed: the echo tells the subscriber that its earlier
subscriptions are active (see ``kit.links.event_bus``). A subscriber that reads too slowly loses the events that exceed
its queue. Of several event publishers each gets every event and keeps the last ones (``history``); a subscription to a topic that
begins with QUESTIONS asks for those that a listener missed.

Source: docs/execution.md#event-publisher
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import zmq

from saltern.eventpublisher.history import History
from saltern.kit.config.access_rows import LiveRows
from saltern.kit.links import frames
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.event_bus import PROBE, QUEUED_EVENTS
from saltern.kit.links.event_order import ORIGIN_BYTES, QUESTIONS, REPLIES, read_question
from saltern.kit.links.rights import rights_of_operator
from saltern.kit.links.sockets import LinkKeys, bind, rebind, without_aborts
from saltern.kit.process.service import Role, RoleProgram, run_role

#: Milliseconds to wait for a message before the key files are looked at.
_TICK = 1000

#: Events forwarded before subscriptions are handled again.
_BURST = 500

#: Second parts of tags ``salt/...`` that have their own metrics label.
_PREFIXES = frozenset(
    {b"job", b"auth", b"key", b"minion", b"run", b"wheel", b"presence", b"beacon", b"fileserver", b"reactor"}
)


def _prepare(role: Role) -> Callable[[], None]:
    return partial(_loop, role, LinkKeys.load(role.keys))


def _loop(role: Role, keys: LinkKeys) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    curve_auth = CurveAuth(context, keys, partial(_has_rights, LiveRows(role.options, role.config_dir)))
    pull, pub = context.socket(zmq.PULL), context.socket(zmq.XPUB)
    for one, size in ((pull, QUEUED_EVENTS), (pub, QUEUED_EVENTS)):
        one.setsockopt(zmq.RCVHWM, size)
        one.setsockopt(zmq.SNDHWM, size)
        one.setsockopt(zmq.LINGER, 500)
        one.setsockopt(zmq.MAXMSGSIZE, 4 * role.options.max_event_size)
    # Report every subscription and its end, also repeated ones: each probe must be noticed.
    pub.setsockopt(zmq.XPUB_VERBOSER, 1)
    # Report a subscriber's full queue, so that lost events are counted.
    pub.setsockopt(zmq.XPUB_NODROP, 1)
    without_aborts(pub)
    curve_auth.serve(pull, "event_pull")
    curve_auth.serve(pub, "event_pub")
    try:
        bind(pull, role.options.internal_interface, role.options.event_pull_port, "event_pull_port")
        bind(pub, role.options.internal_interface, role.options.event_pub_port, "event_pub_port")
        history = History()
        poller = zmq.Poller()
        poller.register(pull, zmq.POLLIN)
        poller.register(pub, zmq.POLLIN)
        poller.register(role.stop.fileno(), zmq.POLLIN)
        while role.running():
            ready = dict(poller.poll(_TICK))
            if pub in ready:
                _subscriptions(role, pub, history)
            if pull in ready:
                _forward(role, pull, pub, history)
            curve_auth.follow(role.running)
            if gone := curve_auth.lost():
                _end_connections(role, pub, gone)
        # Events that were fired before the stop signal are still forwarded.
        _forward(role, pull, pub, history)
    finally:
        pull.close()
        pub.close()
        curve_auth.stop()
        context.term()


def _has_rights(access: LiveRows, client: str) -> bool:
    """Return whether the master's options give the operator's key with this name any right."""
    rows = access.current()
    return bool(rights_of_operator(rows.control_acl, rows.publisher_acl, client).rules)


def _end_connections(role: Role, pub: zmq.Socket[bytes], gone: frozenset[str]) -> None:
    """Close all subscribers' connections, because the keys ``gone`` were removed; libzmq cannot close a single connection.

    Subscribers with a known key reconnect within a moment.
    """
    role.log.warning("listeners connect anew: %s may not listen any more", ", ".join(sorted(gone)))
    rebind(pub, role.running)


def _subscriptions(role: Role, pub: zmq.Socket[bytes], history: History) -> None:
    while True:
        try:
            frame = pub.recv(zmq.NOBLOCK)
        except zmq.Again:
            return
        topic = frame[1:]
        if topic.startswith(PROBE):
            if frame[:1] == b"\x01":
                _send(role, pub, [topic])
        elif topic.startswith(QUESTIONS):
            if frame[:1] == b"\x01":
                _replay(role, pub, topic, history)
        elif not topic.startswith(REPLIES):
            role.metrics.subscribers.inc(1 if frame[:1] == b"\x01" else -1)


def _forward(role: Role, pull: zmq.Socket[bytes], pub: zmq.Socket[bytes], history: History) -> None:
    for message in frames.arrived(pull, _BURST):
        if len(message) > 2 or (len(message) == 2 and len(message[1]) != ORIGIN_BYTES):
            role.metrics.dropped.labels("event_pull_port").inc()
            continue
        frame = message[0].bytes
        whole = [frame]
        if len(message) > 1:
            # Of a sender that knows several event publishers.
            whole.append(message[1].bytes)
            if not history.add(frame, whole[1], time.monotonic()):
                continue
        _send(role, pub, whole)
        role.metrics.events.labels(_prefix(frame)).inc()


def _replay(role: Role, pub: zmq.Socket[bytes], topic: bytes, history: History) -> None:
    """Send a listener the events that it missed while it was connected to another event publisher, or to none."""
    question = read_question(topic)
    if question is None:
        role.metrics.dropped.labels("event_pub_port").inc()
        return
    count = -1
    for message in history.replay(question, time.monotonic()):
        _send(role, pub, message)
        count += 1
    role.metrics.events_replayed.inc(count)


def _send(role: Role, pub: zmq.Socket[bytes], message: Sequence[bytes]) -> None:
    """Send an event to every subscriber whose queue has room; a subscriber with a full queue loses it."""
    if not frames.send_now(pub, message):
        role.metrics.events_dropped.inc()
        pub.setsockopt(zmq.XPUB_NODROP, 0)
        frames.send_now(pub, message)
        pub.setsockopt(zmq.XPUB_NODROP, 1)


def _prefix(frame: bytes) -> str:
    """Return the metrics label of an event: the second part of a tag ``salt/...``, or ``other``, so that there are few
    labels.
    """
    parts = frame.partition(b"\n\n")[0].split(b"/", 2)
    return parts[1].decode() if len(parts) > 1 and parts[0] == b"salt" and parts[1] in _PREFIXES else "other"


PROGRAM = RoleProgram("eventpublisher", _prepare)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern eventpublisher`` and return its exit code."""
    return run_role(PROGRAM, argv)
