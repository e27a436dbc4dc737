"""The role publisher: reads new jobs from the stream of publications in Redis, signs and encrypts each once, and sends
it on port 4505.

The id of a stream entry determines the serial, so order and serials are the same for all publishers and after restarts.
Redis stores how far this publisher has come; after a restart it continues there.

When minions subscribe (after a lost connection, or from another publisher), the publications of the last seconds are
sent once more. Minions drop repeated ones by serial and JID. A stock minion that was restarted has forgotten which jobs
it ran, perhaps even the job that restarted it. Therefore a job is not sent again to stock minions that signed in after
it was published.

Source: docs/execution.md#publisher, docs/protocol.md#publications
"""

from __future__ import annotations

import contextlib
import math
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial

import zmq

from masterstore.errors import StoreCorrupt, StoreError, StoreUnavailable
from masterstore.record_mac import Records
from masterstore.store import Store
from saltern.kit.keys.master_keys import KeptMasterKeys, record_mac
from saltern.kit.links.sockets import bind, without_aborts
from saltern.kit.process.service import Role, RoleProgram, run_role, unusable
from saltwire.crypticle import Crypticle
from saltwire.keys import derive_key_string
from saltwire.publication import job_fault, seal_job_by_each, serial_of_stream_id, topic

#: Milliseconds to wait for a new entry of the stream.
_BLOCK = 1000

#: Seconds for which publications are kept to be sent again: the longest pause of a stock minion before it reconnects.
_COMEBACK_SECONDS = 12.0

#: Milliseconds within which a job that must not run late (``salt --no-replay``) is still sent.
_NO_REPLAY_MS = 10_000

#: Most publications that are kept to be sent again.
_COMEBACK_JOBS = 1000

#: Target types that the master resolves to exact ids, so that a filtered publication can go to the topics of these minions.
_NAMED_TARGETS = frozenset({"glob", "pcre", "list"})

#: Name of the cursor that all publishers write: a new container has a new host name and continues from this cursor.
_ANY = "*"

#: Seconds between two signs of life.
_ALIVE_SECONDS = 60.0

#: Seconds without a sign of life after which a publisher's cursor is deleted; replicas get new names at each start.
_CURSOR_KEPT_SECONDS = 3600

#: Milliseconds by which the clocks of workers, Redis and publishers may differ.
_CLOCKS_MS = 600_000

#: Fields of the stored load that are not sent to minions.
_PRIVATE = frozenset({"key", "kwargs", "cmd", "expected", "request_id", "client", "recorded_ms"})


@dataclass(frozen=True, slots=True)
class _Sent:
    """A publication that was sent in the last seconds, kept with its messages to be sent again to minions that subscribe."""

    #: Time of sending (monotonic seconds), and until when it may be sent (milliseconds since 1970).
    at: float
    until: float
    stream_id: str
    #: The load in the stream, and the part of it that is sent to minions.
    load: Mapping[str, object]
    job: Mapping[str, object]
    messages: Sequence[list[bytes]]

    @property
    def jid(self) -> str:
        return str(self.load.get("jid"))

    @property
    def asked_ms(self) -> int:
        """Return the time at which the job was recorded, in milliseconds since 1970 by Redis' clock."""
        return int(self.stream_id.partition("-")[0])


class Publisher:
    """The publisher's socket on port 4505, its position in the stream of publications, and the current publication key."""

    def __init__(self, role: Role, context: zmq.Context[zmq.Socket[bytes]], store: Store, keys: KeptMasterKeys) -> None:
        options = role.options
        self._role = role
        self._store = store
        self._keys = keys
        self._epoch = -1
        self._aes: Crypticle | None = None
        self._name = socket.gethostname()
        self._sent: deque[_Sent] = deque(maxlen=_COMEBACK_JOBS)
        self._pub = context.socket(zmq.XPUB)
        for name, value in _OPTIONS.items():
            self._pub.setsockopt(name, value)
        without_aborts(self._pub)
        bind(self._pub, options.interface, options.publish_port, "publish_port")
        self._cursor: str | None = None
        self._next_alive = 0.0
        self._redis_away = False
        #: Whether a minion subscribed and the last publications were not sent again yet.
        self._replay_due = False
        #: Why nothing can be published although Redis answers; None if all is well.
        self._store_fault: str | None = None
        role.watch_redis(store.unready)
        role.health.check("publications", lambda: self._store_fault)

    def poll(self) -> None:
        """Send new publications, then handle subscriptions. Waits up to a second for a publication, or for Redis.

        The master's keys are read again if they were replaced.
        """
        self._keys.follow()
        try:
            if self._cursor is None:
                self._cursor = self._first_cursor()
                # Saved at once: publications from now on are not lost, even if this publisher ends before it sends any.
                self._save_cursor()
            entries = self._store.publications.follow(self._cursor, _BLOCK)
            if entries:
                aes = self._current_aes()
                for stream_id, load in entries:
                    self._publish_entry(stream_id, load, aes)
                    self._cursor = stream_id
                self._save_cursor()
            self._report_alive()
        except StoreError as error:
            self._wait_for_store(error)
        else:
            self._store_fault = None
            if self._redis_away:
                self._redis_away = False
                self._role.log.warning("redis is back")
        self._handle_subscriptions()

    def close(self) -> None:
        """Close the socket on port 4505; queued messages get one second to leave."""
        self._pub.close(linger=1000)

    def _first_cursor(self) -> str:
        """Return the stream id after which this publisher starts.

        It is this publisher's saved position, else that of any publisher, but not older than the replay window.
        """
        oldest = f"{int((time.time() - self._role.options.replay_window) * 1000)}-0"
        saved = self._store.publications.cursor(self._name) or self._store.publications.cursor(_ANY)
        last = self._store.publications.last_id()
        if saved is None:
            return last
        return (
            saved
            if serial_of_stream_id(saved) >= serial_of_stream_id(oldest)
            else min(last, oldest, key=serial_of_stream_id)
        )

    def _save_cursor(self) -> None:
        if self._cursor is not None:
            self._store.publications.save_cursors((self._name, _ANY), self._cursor)

    def _report_alive(self) -> None:
        """Record once a minute that this publisher lives, and delete the cursors of publishers that do not.

        A publisher that was away for longer than the replay window would start at the window's beginning anyway.
        """
        if time.monotonic() < self._next_alive:
            return
        self._next_alive = time.monotonic() + _ALIVE_SECONDS
        self._store.publications.give_sign(self._name, int(time.time() * 1000))
        longest = max(_CURSOR_KEPT_SECONDS, self._role.options.replay_window)
        gone = self._store.publications.forget_cursors(int((time.time() - longest) * 1000), _ANY)
        if gone:
            self._role.log.info("deleted the cursors of publishers that no longer exist: %s", ", ".join(gone))

    def _current_aes(self) -> Crypticle:
        epoch = self._store.epochs.current().aes
        if self._aes is None or epoch != self._epoch:
            self._aes = Crypticle(derive_key_string(self._keys.current.secret, purpose="aes", epoch=epoch))
            self._epoch = epoch
        return self._aes

    def _publish_entry(self, stream_id: str, load: Mapping[str, object] | StoreCorrupt, aes: Crypticle) -> None:
        """Send the job in an entry of the stream to minions. A malformed or too old entry is logged as an error and skipped."""
        if isinstance(load, StoreCorrupt):
            self._role.metrics.store_faults.inc()
            self._role.log.error("not published: %s", load)
        elif fault := _fault_of(load) or self._age_fault(stream_id, load):
            self._role.log.error("not published: %s: %s", stream_id, fault)
        else:
            self._publish(stream_id, load, aes)

    def _age_fault(self, stream_id: str, load: Mapping[str, object]) -> str:
        return age_fault(stream_id, load.get("recorded_ms"), time.time() * 1000, self._role.options.replay_window)

    def _publish(self, stream_id: str, load: Mapping[str, object], aes: Crypticle) -> None:
        until = sent_until(stream_id, load)
        if time.time() * 1000 > until:
            self._role.log.warning(
                "%s must not run late, and is not sent", load.get("fun"), extra={"jid": load.get("jid")}
            )
            return
        job = {name: value for name, value in load.items() if name not in _PRIVATE}
        traced = {"salt.jid": str(load.get("jid")), "salt.fun": str(load.get("fun"))}
        with self._role.tracing.of_peer("salt.pub.send", load, "PRODUCER", **traced) as span:
            self._send(stream_id, load, span.marked(job), until, aes)

    def _send(
        self, stream_id: str, load: Mapping[str, object], job: Mapping[str, object], until: float, aes: Crypticle
    ) -> None:
        messages = self._messages(stream_id, load, job, aes)
        # Subscriptions are handled right before sending: minions drop lower serials than they have seen, so a new
        # subscriber must get the earlier jobs first.
        self._handle_subscriptions()
        for message in messages:
            self._pub.send_multipart(message)
        self._sent.append(_Sent(time.monotonic(), until, stream_id, load, job, messages))
        self._role.metrics.jobs_published.inc()
        self._role.log.info("published %s", load.get("fun"), extra={"jid": load.get("jid")})

    def _messages(
        self, stream_id: str, load: Mapping[str, object], job: Mapping[str, object], aes: Crypticle
    ) -> list[list[bytes]]:
        options = self._role.options
        payloads = seal_job_by_each(
            job, aes, self._keys.current.all, options.publish_signing_algorithm, serial_of_stream_id(stream_id)
        )
        return [frame for one in payloads for frame in _frames(one, load, filtering=options.zmq_filtering)]

    def _handle_subscriptions(self) -> None:
        """Count subscriptions; after a new one send the jobs of the last seconds again.

        This happens not only after a start of this publisher: during a rollout minions come from a publisher that is
        about to end.
        """
        while True:
            try:
                frame = self._pub.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            self._replay_due = self._replay_due or frame[:1] == b"\x01"
            self._role.metrics.subscribers.inc(1 if frame[:1] == b"\x01" else -1)
        while self._sent and time.monotonic() - self._sent[0].at > _COMEBACK_SECONDS:
            self._sent.popleft()
        if self._replay_due:
            # Without Redis it is not known what to send again; it is tried again at the next poll.
            with contextlib.suppress(StoreError):
                for message in self._replayed_messages():
                    self._pub.send_multipart(message)
                self._replay_due = False

    def _replayed_messages(self) -> list[list[bytes]]:
        """Return the messages of the last seconds to send again, each a list of frames. Raises StoreError."""
        now_ms = time.time() * 1000
        late = [one for one in self._sent if now_ms <= one.until]
        if not late:
            return []
        not_again = self._store.jobs.not_again(sorted({one.jid for one in late}))
        signed_in = self._store.sign_ins.of_stock()
        return [
            message
            for one in late
            if one.jid not in not_again
            for message in self._without_minions(one, {name for name, at in signed_in.items() if at >= one.asked_ms})
        ]

    def _without_minions(self, one: _Sent, restarted: Set[str]) -> Sequence[list[bytes]]:
        """Return the messages of a publication for all its minions except the ids in ``restarted``."""
        expected = _expected(one.load)
        if restarted.isdisjoint(expected):
            return one.messages
        others = [minion for minion in expected if minion not in restarted]
        if not others:
            return ()
        narrowed = {"tgt": others, "tgt_type": "list"}
        load = {**one.load, **narrowed, "expected": others}
        return self._messages(one.stream_id, load, {**one.job, **narrowed}, self._current_aes())

    def _wait_for_store(self, error: StoreError) -> None:
        # Another health check reports an absent Redis already.
        self._store_fault = None if isinstance(error, StoreUnavailable) else str(error)
        if not self._redis_away:
            self._redis_away = True
            self._role.log.error("%s; publications wait until it is back", error)
        self._role.stop.wait(_BLOCK / 1000)


#: Socket options. VERBOSER reports every subscription and its end, so that each returning minion is noticed.
#: Source: docs/protocol.md#publish-framing
_OPTIONS: Mapping[int, int] = {
    zmq.XPUB_VERBOSER: 1,
    zmq.SNDHWM: 1000,
    zmq.BACKLOG: 1000,
    # Seconds. A minion whose machine vanished is noticed after about two minutes.
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 60,
    zmq.TCP_KEEPALIVE_INTVL: 15,
    zmq.TCP_KEEPALIVE_CNT: 3,
    # Bytes. Subscribers only send subscriptions, which are short.
    zmq.MAXMSGSIZE: 4096,
}


def _fault_of(load: Mapping[str, object]) -> str:
    """Return why an entry of the stream is not a job; empty text if it is one. Other programs may have written the entry."""
    if missing := [name for name in ("jid", "fun", "arg", "tgt") if name not in load]:
        return f"an entry of the stream without {', '.join(missing)}"
    expected = load.get("expected", [])
    if not isinstance(expected, list) or not all(isinstance(minion, str) for minion in expected):
        return f"an entry of the stream whose expected minions are no list of ids ({load['jid']})"
    return job_fault(load)


def age_fault(stream_id: str, recorded_ms: object, now_ms: float, replay_window: float) -> str:
    """Return why an entry of the stream is too old to be sent; empty if it is not, or if a snapshot before 0.1.0 wrote it.

    A signed entry stays valid for ever. Whoever writes to Redis could otherwise write an old entry into the stream again.
    ``recorded_ms``: time at which a worker recorded the job, milliseconds since 1970. ``replay_window``: seconds.
    """
    if not isinstance(recorded_ms, int):
        return ""
    entered_ms = int(stream_id.partition("-")[0])
    if abs(entered_ms - recorded_ms) > _CLOCKS_MS:
        return (
            f"recorded {(entered_ms - recorded_ms) / 1000:.0f} s before it entered the stream: an old entry was written again, "
            "or the clocks of a worker and of Redis differ"
        )
    if now_ms - recorded_ms > replay_window * 1000 + _CLOCKS_MS:
        return f"recorded {(now_ms - recorded_ms) / 1000:.0f} s ago, longer than replay_window ({replay_window:.0f} s) allows"
    return ""


def sent_until(stream_id: str, load: Mapping[str, object]) -> float:
    """Return the time until which a job may be sent, in milliseconds since 1970; infinity without a limit.

    A job that must not run late (``salt --no-replay``) may be sent for 10 s after it was recorded.
    """
    until = load.get("replay_until")
    if isinstance(until, bool) or not isinstance(until, int):
        return math.inf
    return max(until, int(stream_id.partition("-")[0]) + _NO_REPLAY_MS)


def _expected(load: Mapping[str, object]) -> Sequence[str]:
    named = load.get("expected")
    return named if isinstance(named, list) else ()


def _frames(payload: bytes, load: Mapping[str, object], *, filtering: bool) -> list[list[bytes]]:
    """Return the messages of one publication, each a list of frames.

    There is one message for all minions. With filtering there is one for each minion known by name, else a broadcast.
    """
    if not filtering:
        return [[payload]]
    if load.get("tgt_type") in _NAMED_TARGETS:
        return [[topic(minion).encode(), payload] for minion in _expected(load)]
    return [[b"broadcast", payload]]


def _prepare(role: Role) -> Callable[[], None]:
    master_keys = KeptMasterKeys(role.keys)
    records = Records(record_mac(master_keys.current.secret), accept_unsigned=role.options.accept_unsigned_records)
    with unusable(StoreError):
        store = Store.open(role.options.redis_url, client_name="publisher", records=records)
    return partial(_loop, role, store, master_keys)


def _loop(role: Role, store: Store, master_keys: KeptMasterKeys) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    publisher = Publisher(role, context, store, master_keys)
    try:
        while role.running():
            publisher.poll()
    finally:
        publisher.close()
        context.term()


PROGRAM = RoleProgram("publisher", _prepare)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern publisher`` and return its exit code."""
    return run_role(PROGRAM, argv)
