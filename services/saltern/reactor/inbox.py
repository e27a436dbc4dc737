"""The events that this reactor has read from Redis and whose reactions are not finished yet.

The reactors of a master form a consumer group on the stream ``salt:events``: each event goes to one of them. The reactor
acknowledges an event after all its reactions are done. If a reactor dies, the others take its events over. Only failed
reactions are tried again. After ``reactor_tries`` attempts the event goes to the list of dead events, with the reason. If the
master cannot be reached, the event waits and no attempt is counted.
"""

from __future__ import annotations

import hashlib
import os
import queue
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from masterstore.errors import StoreError
from masterstore.events import KeptEvent
from masterstore.store import Store
from saltern.kit.links.event_bus import unpack
from saltern.kit.process.service import Role
from saltern.reactor.reactions import Reaction
from saltern.reactor.table import ReactorTable

#: Name of the reactors' group on the stream of events.
GROUP = "reactor"

#: Milliseconds to wait for an event, so that the role notices signals.
_BLOCK = 1000

#: Most events read at once.
_BATCH = 100

#: Seconds between two signs of life, and seconds of silence after which other reactors take over a reactor's events.
_ALIVE_EVERY = 1.0
_SILENCE = 5.0

#: Seconds between two updates of the metrics, which take four commands of Redis.
_MEASURE_EVERY = 5.0

#: Seconds before the second attempt, the third, and all others.
PAUSES = (1.0, 5.0, 30.0)

#: Seconds after which an order is ignored: its sender has reported a timeout by then.
_ORDER_SECONDS = 15.0

#: Seconds between two registrations of the wanted tags.
_ANNOUNCE_EVERY = 3600.0


@dataclass(eq=False)
class EventTask:
    """An event that a reactor has read, with its reactions: to send, done and failed, and the number of attempts."""

    event: KeptEvent
    tag: str
    data: Mapping[str, object]
    #: Number of attempts, including the current one.
    tries: int = 1
    #: (name within the event, reaction) of the reactions to send to the master.
    to_ask: list[tuple[str, Reaction]] = field(default_factory=list)
    #: Names of the reactions that are done.
    done: set[str] = field(default_factory=set)
    #: Why other reactions failed.
    failures: list[str] = field(default_factory=list)
    #: Why the master could not be reached; empty if it could.
    waits_for: str = ""

    def request_id(self, name: str) -> str:
        """Return the request id of one reaction to the event.

        Each attempt uses the same id, so that the master does not repeat a reaction whose answer was lost.
        """
        return hashlib.sha256(f"{self.event.identity} {name}".encode()).hexdigest()[:32]


class Inbox:
    """Reads events for the reactor, starts their reactions, and acknowledges finished events."""

    def __init__(
        self,
        role: Role,
        store: Store,
        table: ReactorTable,
        fire: Callable[[str, Mapping[str, object]], object],
    ) -> None:
        """Join the reactors' consumer group of events in Redis. ``fire`` sends the answers to orders that change the
        table of reactions.
        """
        self._role = role
        self._store = store
        self._table = table
        self._fire = fire
        self._name = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._finished: queue.SimpleQueue[EventTask] = queue.SimpleQueue()
        self._tasks: dict[str, EventTask] = {}
        #: Map of stream id to the time of the next attempt, monotonic seconds.
        self._due: dict[str, float] = {}
        self._to_acknowledge: list[str] = []
        self._version = -1
        self._joined = False
        self._redis_away = False
        self._alive_at = self._next_measure = 0.0
        self._announced_at = -_ANNOUNCE_EVERY
        self._missed = 0
        self._last_wait_reason = ""

    def finished(self, task: EventTask) -> None:
        """Report that this attempt at the reactions to an event has ended, successfully or not.

        ``poll`` then acknowledges the event or tries again. May be called from any thread.
        """
        self._finished.put(task)

    def poll(self, react: Callable[[EventTask], None]) -> None:
        """Acknowledge finished events, read new ones, and start the reactions that are due. Waits up to a second.

        ``react`` starts the reactions to an event and later reports their end to ``finished``; it must not raise.
        """
        try:
            self._join()
            self._settle_finished()
            self._report_alive()
            self._read_events()
            self._start_due(react)
        except StoreError as error:
            # A malformed key does not end the role: it goes on as soon as the key is repaired.
            if not self._redis_away:
                self._redis_away = True
                self._role.log.error("%s; events wait until that is over", error)
            self._role.stop.wait(_BLOCK / 1000)

    def close(self) -> None:
        """Acknowledge finished events and leave the reactors' consumer group in Redis; other reactors take over the
        remaining events.
        """
        try:
            self._settle_finished()
            self._store.event_groups.leave(GROUP, self._name)
        except StoreError as error:
            self._role.log.error("%s; events in hand come again", error)

    @property
    def open_tasks(self) -> int:
        """Return the number of events whose reactions are in progress or wait for another attempt."""
        return len(self._tasks)

    def _join(self) -> None:
        if self._redis_away:
            # Events whose delivery was lost with the connection are assigned to this reactor; no other one gets them.
            for event in self._store.event_groups.mine(GROUP, self._name):
                self._accept(event, 1)
            self._redis_away = False
            self._role.log.warning("redis is back: events go on")
        if self._joined:
            return
        since = int((time.time() - self._role.options.replay_window) * 1000)
        if self._store.event_groups.create(GROUP, since):
            self._role.log.info(
                "reacting to events of the last %d s, and from now on", self._role.options.replay_window
            )
        self._sync_table(first=True)
        self._joined = True

    # --------------------------------------------------------------------------------------------------------------- the table

    def _sync_table(self, *, first: bool = False) -> None:
        """Load the table of reactions that the reactors share in Redis, and register the event tags that it needs.

        This reactor's own table is published instead if the table in Redis is missing, is older than this reactor's,
        or was not written by a reactor; at this reactor's start (``first``) also if it belongs to another
        configuration.
        """
        version, text = self._store.event_groups.state(GROUP)
        if not text or version < self._version or (not self._table.take(text) and first):
            # If another reactor was faster, it has the same configuration or a newer one.
            self._store.event_groups.save_state(GROUP, self._table.text(), version)
            version, _ = self._store.event_groups.state(GROUP)
        self._version = version
        self._announce_wanted_tags()

    def _announce_wanted_tags(self) -> None:
        self._store.events.want(GROUP, self._table.wanted())
        self._announced_at = time.monotonic()

    def _apply_order(self, task: EventTask) -> bool:
        """Apply an event that changes the table of reactions; return False for any other event."""
        before = self._table.text()
        answer = self._table.apply_order(task.tag, task.data)
        if answer is None:
            return False
        if time.time() - int(task.event.id.partition("-")[0]) / 1000 > _ORDER_SECONDS:
            self._table.take(before)
            return True
        if self._table.text() != before:
            if not self._store.event_groups.save_state(GROUP, self._table.text(), self._version):
                # Another reactor changed the table meanwhile: load that table and repeat the order on it.
                self._sync_table()
                return self._apply_order(task)
            self._version += 1
            self._announce_wanted_tags()
        self._fire(*answer)
        return True

    # --------------------------------------------------------------------------------------------------------------- the events

    def _report_alive(self) -> None:
        now = time.monotonic()
        if now - self._alive_at < _ALIVE_EVERY:
            return
        if now - self._announced_at > _ANNOUNCE_EVERY:
            self._announce_wanted_tags()
        for event, handed_out in self._store.event_groups.claim(GROUP, self._name, int(_SILENCE * 1000), _BATCH):
            self._accept(event, handed_out + 1)
        self._alive_at = now
        if now >= self._next_measure:
            self._next_measure = now + _MEASURE_EVERY
            self._measure()

    def _measure(self) -> None:
        backlog, metrics = self._store.event_groups.backlog(GROUP), self._role.metrics
        metrics.reactor_backlog.set(backlog.waiting + backlog.in_hand)
        metrics.reactor_dead.set(backlog.dead)
        metrics.events_missed.set(backlog.missed)
        if backlog.missed > self._missed:
            self._role.log.error(
                "%d events were dropped from the stream before a reactor had them: more reactors, or events_kept_count",
                backlog.missed - self._missed,
            )
        self._missed = backlog.missed

    def _read_events(self) -> None:
        room = self._role.options.reactor_worker_hwm - len(self._tasks)
        block = min([_BLOCK, *(int((due - time.monotonic()) * 1000) for due in self._due.values())])
        if room <= 0:
            self._role.stop.wait(max(block, 1) / 1000)
            return
        batch = self._store.event_groups.read(GROUP, self._name, max(0, block), min(room, _BATCH))
        if batch is None:
            # The group does not exist: Redis was emptied.
            self._joined = False
            return
        for event in batch.events:
            self._accept(event, 1)
        if batch.version != self._version:
            self._sync_table()

    def _accept(self, event: KeptEvent, tries: int) -> None:
        """Add an event that Redis assigned to this reactor. ``tries``: number of earlier attempts."""
        if event.id in self._tasks:
            return
        found = unpack(event.frame) if event.to in ("", GROUP) else None
        if found is None:
            # The event is for another group, or malformed.
            self._to_acknowledge.append(event.id)
            return
        self._tasks[event.id] = EventTask(event, *found, tries=tries)
        self._due[event.id] = 0.0

    def _start_due(self, react: Callable[[EventTask], None]) -> None:
        now = time.monotonic()
        for name in [name for name, due in self._due.items() if due <= now]:
            task = self._tasks[name]
            # If this raises, the event stays due.
            self._begin(task, react)
            del self._due[name]

    def _begin(self, task: EventTask, react: Callable[[EventTask], None]) -> None:
        if task.tries > max(self._role.options.reactor_tries, 1):
            self._bury(task, f"{task.tries - 1} reactors ended while they worked on it")
        elif self._apply_order(task):
            self._forget(task)
        else:
            task.failures, task.to_ask, task.waits_for = [], [], ""
            react(task)

    def _settle_finished(self) -> None:
        while True:
            try:
                task = self._finished.get_nowait()
            except queue.Empty:
                break
            try:
                self._settle(task)
            except StoreError:
                self._finished.put(task)
                raise
        ended, self._to_acknowledge = self._to_acknowledge, []
        try:
            self._store.event_groups.done(GROUP, ended)
        except StoreError:
            self._to_acknowledge = ended + self._to_acknowledge
            raise

    def _settle(self, task: EventTask) -> None:
        if not task.failures and not task.waits_for:
            self._last_wait_reason = ""
            self._forget(task)
            return
        if not task.failures:
            if task.waits_for != self._last_wait_reason:
                self._role.log.error("reactions to %s wait: %s", task.tag, task.waits_for)
                self._last_wait_reason = task.waits_for
            pause = PAUSES[1]
        elif task.tries >= self._role.options.reactor_tries:
            self._bury(task, "; ".join(task.failures))
            return
        else:
            pause = PAUSES[min(task.tries, len(PAUSES)) - 1]
            task.tries += 1
        self._due[task.event.id] = time.monotonic() + pause

    def _bury(self, task: EventTask, why: str) -> None:
        self._store.event_groups.bury(GROUP, task.event, why, task.tries)
        self._tasks.pop(task.event.id, None)
        self._role.log.error(
            "an event %s is given up after %d tries: %s; look at it with `salt-run reactor.dead`",
            task.tag,
            task.tries,
            why,
        )

    def _forget(self, task: EventTask) -> None:
        self._tasks.pop(task.event.id, None)
        self._to_acknowledge.append(task.event.id)
