"""The role eventpublisher: forwards events from port 4512 to all subscribers of port 4513 whose prefix matches the
tag.

A subscription to a topic that begins with PROBE is echoed: the echo tells the subscriber that its earlier
subscriptions are active (see ``kit.links.event_bus``). A subscriber that reads too slowly loses the events that exceed
its queue.

Source: docs/execution.md#event-publisher
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links import frames
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.event_bus import PROBE, QUEUED_EVENTS
from saltern.kit.links.rights import rights_of_operator
from saltern.kit.links.sockets import LinkKeys, bind, rebind, without_aborts
from saltern.kit.process.service import Role, RoleProgram, run_role

_TICK = 500

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
    curve_auth = CurveAuth(context, keys, partial(_has_rights, role.options))
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
        poller = zmq.Poller()
        poller.register(pull, zmq.POLLIN)
        poller.register(pub, zmq.POLLIN)
        while role.running():
            ready = dict(poller.poll(_TICK))
            if pub in ready:
                _subscriptions(role, pub)
            if pull in ready:
                _forward(role, pull, pub)
            curve_auth.follow(role.running)
            if gone := curve_auth.lost():
                _end_connections(role, pub, gone)
        # Events that were fired before the stop signal are still forwarded.
        _forward(role, pull, pub)
    finally:
        pull.close()
        pub.close()
        curve_auth.stop()
        context.term()


def _has_rights(options: MasterOptions, client: str) -> bool:
    """Return whether the master's options give the operator's key with this name any right."""
    return bool(rights_of_operator(options.control_acl, options.publisher_acl, client).rules)


def _end_connections(role: Role, pub: zmq.Socket[bytes], gone: frozenset[str]) -> None:
    """Close all subscribers' connections, because the keys ``gone`` were removed; libzmq cannot close a single connection.

    Subscribers with a known key reconnect within a moment.
    """
    role.log.warning("listeners connect anew: %s may not listen any more", ", ".join(sorted(gone)))
    rebind(pub, role.running)


def _subscriptions(role: Role, pub: zmq.Socket[bytes]) -> None:
    while True:
        try:
            frame = pub.recv(zmq.NOBLOCK)
        except zmq.Again:
            return
        topic = frame[1:]
        if topic.startswith(PROBE):
            if frame[:1] == b"\x01":
                _send(role, pub, topic)
        else:
            role.metrics.subscribers.inc(1 if frame[:1] == b"\x01" else -1)


def _forward(role: Role, pull: zmq.Socket[bytes], pub: zmq.Socket[bytes]) -> None:
    for message in frames.arrived(pull, _BURST):
        if len(message) != 1:
            role.metrics.dropped.labels("event_pull_port").inc()
            continue
        frame = message[0].bytes
        _send(role, pub, frame)
        role.metrics.events.labels(_prefix(frame)).inc()


def _send(role: Role, pub: zmq.Socket[bytes], frame: bytes) -> None:
    """Send an event to every subscriber whose queue has room; a subscriber with a full queue loses it."""
    try:
        pub.send(frame, zmq.NOBLOCK)
    except zmq.Again:
        role.metrics.events_dropped.inc()
        pub.setsockopt(zmq.XPUB_NODROP, 0)
        pub.send(frame, zmq.NOBLOCK)
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
