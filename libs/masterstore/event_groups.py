"""Redis consumer groups, whose readers (such as the reactors) share the events of the stream ``salt:events``.

Each event goes to one reader of a group and stays assigned to it until the reader acknowledges it. If a reader dies,
the others take its events over. An event is therefore handled at least once. Events that a group cannot handle go to
its list of dead events; an operator may return them to the group or delete them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from masterstore import keys, values
from masterstore import redis_parts as redis
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt
from masterstore.event_codes import MEANING, Deliveries, EventCodes, Fault, entered
from masterstore.events import KeptEvent, event_of, read_stream

#: About how many dead events a group keeps.
DEAD_KEPT = 1000

#: KEYS: events, shared, count. ARGV: group, stream id before its first event. Returns 1 if the group is new.
_CREATE = """
local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[2], 'MKSTREAM')
if made.err then
  if string.find(made.err, 'BUSYGROUP', 1, true) then return 0 end
  return made
end
local first = redis.call('XRANGE', KEYS[1], '(' .. ARGV[2], '+', 'COUNT', 1)[1]
local last = redis.call('GET', KEYS[3]) or 0
if first then
  for at = 1, #first[2], 2 do if first[2][at] == 'n' then last = (tonumber(first[2][at + 1]) or 1) - 1 end end
end
redis.call('HSET', KEYS[2], 'last', last)
return 1
"""

#: KEYS: events, shared. ARGV: group, consumer, count. Returns version of the shared state, the stream's newest id, entries.
#: Reading and counting are one step: a missing number is an event that was trimmed before the group read it.
_READ = """
local found = redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], '>')
if found and found.err then return found end
local version = redis.call('HGET', KEYS[2], 'version') or 0
if not found then
  local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  return {version, newest and newest[1] or '0-0', {}}
end
local last, missed = tonumber(redis.call('HGET', KEYS[2], 'last')), 0
for _, entry in ipairs(found[1][2]) do
  for at = 1, #entry[2], 2 do
    if entry[2][at] == 'n' then
      local number = tonumber(entry[2][at + 1])
      if last and number and number > last + 1 then missed = missed + number - last - 1 end
      last = number or last
    end
  end
end
if last then redis.call('HSET', KEYS[2], 'last', last) end
if missed > 0 then redis.call('HINCRBY', KEYS[2], 'missed', missed) end
return {version, '', found[1][2]}
"""

#: KEYS: events, shared, alive. ARGV: group, consumer, ms of silence, count. Records a sign of life, and returns the
#: events of silent consumers, each with the number of its earlier deliveries.
_CLAIM = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[3], now, ARGV[2])
local claimed = {}
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - ARGV[3])) do
  local left = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[4], silent)
  for _, row in ipairs(left) do
    local entry = redis.call('XRANGE', KEYS[1], row[1], row[1])[1]
    if entry then
      redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, row[1])
      claimed[#claimed + 1] = {row[4], entry}
    else
      redis.call('XACK', KEYS[1], ARGV[1], row[1])
      redis.call('HINCRBY', KEYS[2], 'missed', 1)
    end
  end
  if #left < tonumber(ARGV[4]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], silent)
    redis.call('ZREM', KEYS[3], silent)
  end
end
return claimed
"""

#: KEYS: events, dead. ARGV: group, stream id, event, number, why, tries, how many are kept, group in the event, seal.
_BURY = """
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[7], '*', 'event', ARGV[3], 'n', ARGV[4], 'why', ARGV[5], 'tries', ARGV[6],
           'to', ARGV[8], 'mac', ARGV[9])
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
"""

#: KEYS: dead, events, count. ARGV: id, group, how many events are kept, event, seal. Returns 0 if there is no such dead event.
_REVIVE = """
if redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
local number = redis.call('INCR', KEYS[3])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', 'n', number, 'event', ARGV[4], 'to', ARGV[2], 'mac', ARGV[5])
return 1
"""

#: KEYS: shared. ARGV: text, version that it was made from, code. Returns 1 if the version is still current, else 0.
_SAVE = """
if tonumber(redis.call('HGET', KEYS[1], 'version') or 0) ~= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[1], 'mac', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'version', 1)
return 1
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of one read by a reader of a consumer group: the events for this reader, and the version number of
    the text that the group's readers share.
    """

    events: list[KeptEvent]
    #: Version of the group's shared state.
    version: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Numbers of a consumer group's events: not yet received by a reader, received but not acknowledged, removed from
    the stream before a reader received them, and given up.
    """

    #: Events that no reader of the group has got.
    waiting: int
    #: Events that are assigned to a reader and not acknowledged.
    in_hand: int
    #: Events that were trimmed from the stream before a reader got them.
    missed: int
    #: Events in the list of dead events.
    dead: int


@dataclass(frozen=True, slots=True)
class DeadEvent:
    """An event that the readers of a consumer group could not handle: its id, packed event, the reason, and the number
    of attempts.

    Its id contains the time when the group gave it up, milliseconds since 1970.
    """

    id: str
    frame: bytes
    why: str
    tries: int


class EventGroups:
    """Redis consumer groups of the stream ``salt:events``. Each event is delivered to one reader of a group.

    Events that no role of this master appended, and those that this process got before, are acknowledged and left out.
    All operations raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client, codes: EventCodes = EventCodes()) -> None:  # noqa: B008 - it never changes
        """Create the operations on consumer groups. ``codes``: makes and checks the authentication codes of events,
        and of the texts that the readers of a group share.
        """
        self._client = client
        self._codes = codes
        #: Group -> the events that this process got.
        self._deliveries: defaultdict[str, Deliveries] = defaultdict(Deliveries)
        script = client.redis.register_script
        self._create, self._read, self._claim = script(_CREATE), script(_READ), script(_CLAIM)
        self._bury, self._revive, self._save = script(_BURY), script(_REVIVE), script(_SAVE)

    def create(self, group: str, since_ms: int) -> bool:
        """Create a consumer group if it does not exist; it starts with the events since ``since_ms`` (milliseconds
        since 1970). Return True if it is new.
        """
        with self._client.calling():
            names = [keys.EVENTS, keys.event_group(group), keys.EVENTS_COUNT]
            return bool(self._create(keys=names, args=[group, f"{max(0, since_ms - 1)}-0"]))

    def read(self, group: str, consumer: str, block_ms: int, count: int) -> Batch | None:
        """Return a Batch of the next events, at most ``count``, and assign them to the reader ``consumer`` of the
        consumer group.

        Without new events, wait up to ``block_ms`` milliseconds; then the Batch is empty. None if the group does not
        exist.
        """
        batch, newest = self._taken(group, consumer, count)
        # Without new events; events that are refused below are new ones, too.
        if batch is not None and not batch.events and block_ms > 0 and read_stream(self._client, newest, block_ms, 1):
            # New events wake all readers of the group; the first of them to read gets the events.
            batch, _ = self._taken(group, consumer, count)
        return batch and Batch(self._genuine(group, batch.events, new=True), batch.version)

    def _taken(self, group: str, consumer: str, count: int) -> tuple[Batch | None, str]:
        with self._client.calling():
            try:
                version, newest, entries = self._read(
                    keys=[keys.EVENTS, keys.event_group(group)], args=[group, consumer, count]
                )
            except redis.ResponseError as error:
                if "NOGROUP" not in str(error):
                    raise
                return None, ""
        return Batch([_event(entry) for entry in entries], values.number(version, keys.event_group(group))), text(
            newest
        )

    def done(self, group: str, ids: list[str]) -> None:
        """Acknowledge events of a consumer group by their ids: the group has handled them, and they are not delivered
        again.
        """
        if ids:
            self._deliveries[group].handled(ids)
            self._client.call("xack", keys.EVENTS, group, *ids)

    def claim(self, group: str, consumer: str, silence_ms: int, count: int) -> list[tuple[KeptEvent, int]]:
        """Record a sign of life of the reader ``consumer`` of a consumer group, and assign to it the events of readers
        that gave no sign of life for ``silence_ms`` milliseconds.

        Return [(event, number of its earlier deliveries)], at most ``count`` for each silent reader. Every reader must
        call it several times within ``silence_ms``. The group must exist.
        """
        names = [keys.EVENTS, keys.event_group(group), keys.event_readers(group)]
        with self._client.calling():
            found = self._claim(keys=names, args=[group, consumer, silence_ms, count])
        events = {text(entry[0]): _event(entry) for _, entry in found}
        genuine = {event.id for event in self._genuine(group, list(events.values()), new=False)}
        return [
            (events[name], values.number(times, keys.event_group(group)))
            for times, entry in found
            if (name := text(entry[0])) in genuine
        ]

    def mine(self, group: str, consumer: str) -> list[KeptEvent]:
        """Return the events that were delivered to this reader of the consumer group and that it has not acknowledged."""
        with self._client.calling() as server:
            try:
                answer: Any = server.xreadgroup(group, consumer, {keys.EVENTS: "0"})
            except redis.ResponseError as error:
                if "NOGROUP" not in str(error):
                    raise
                return []
        found = [event_of(name, fields or {}) for _, entries in answer or () for name, fields in entries]
        return self._genuine(group, found, new=False)

    def leave(self, group: str, consumer: str) -> None:
        """Give up the unacknowledged events of the reader ``consumer``, which ends: the next ``claim`` of another
        reader of the consumer group takes them over.
        """
        self._client.call("zadd", keys.event_readers(group), {consumer: 0})

    def bury(self, group: str, event: KeptEvent, why: str, tries: int) -> None:
        """Move an event that the consumer group could not handle from its unacknowledged events to its list of dead
        events.

        ``why``: the reason, ``tries``: the number of attempts; both are stored with the event.
        """
        arguments: list[str | bytes | int] = [group, event.id, event.frame, event.number, why, tries, DEAD_KEPT]
        arguments += [event.to, event.seal]
        with self._client.calling():
            self._bury(keys=[keys.EVENTS, keys.dead_events(group)], args=arguments)
        self._deliveries[group].handled([event.id])

    def dead(self, group: str, count: int) -> list[DeadEvent]:
        """Return at most ``count`` events from the consumer group's list of dead events (events that it could not
        handle), newest first.
        """
        found = self._client.call("xrevrange", keys.dead_events(group), count=count)
        return [
            DeadEvent(
                text(name),
                row.get(b"event", b""),
                text(row.get(b"why", b"")),
                values.number(row.get(b"tries"), keys.dead_events(group)),
            )
            for name, row in found
        ]

    def revive(self, group: str, dead_id: str, most: int) -> bool:
        """Append an event from a consumer group's list of dead events to the stream again, for this group only, and
        delete it from the list.

        Return False if the list has no event with this id. ``most``: about how many events the stream keeps. Raises
        StoreCorrupt for an event that no role of this master appended.
        """
        found = self._client.call("xrange", keys.dead_events(group), min=dead_id, max=dead_id)
        if not found:
            return False
        event = event_of(*found[0])
        fault = self._codes.fault(event.frame, event.to, event.seal)
        if fault is not None:
            raise StoreCorrupt(f"{keys.dead_events(group)}[{dead_id}]", f"{MEANING[fault]}. `reactor.drop` deletes it")
        arguments: list[str | bytes | int] = [dead_id, group, most, event.frame, self._codes.seal(event.frame, group)]
        with self._client.calling():
            names = [keys.dead_events(group), keys.EVENTS, keys.EVENTS_COUNT]
            return bool(self._revive(keys=names, args=arguments))

    def drop(self, group: str, dead_id: str) -> bool:
        """Delete an event from the consumer group's list of dead events. Return False if there is none with this id."""
        return bool(self._client.call("xdel", keys.dead_events(group), dead_id))

    def backlog(self, group: str) -> Backlog:
        """Return the Backlog of a consumer group, four numbers of events.

        ``waiting``: no reader has received them yet. ``in_hand``: a reader received them and has not acknowledged
        them. ``missed``: Redis removed them from the full stream before a reader received them. ``dead``: the group
        could not handle them and gave them up. Without such a group the first three are 0.
        """
        with self._client.calling() as server:
            ask = server.pipeline(transaction=False)
            ask.get(keys.EVENTS_COUNT)
            ask.hmget(keys.event_group(group), "last", "missed")
            ask.xlen(keys.dead_events(group))
            ask.xpending(keys.EVENTS, group)
            count, shared, dead, pending = ask.execute(raise_on_error=False)
            for answer in (count, shared, dead):
                if isinstance(answer, Exception):
                    raise answer
            last, missed = shared
        if last is None:
            return Backlog(0, 0, 0, int(dead))
        in_hand = int(pending["pending"]) if isinstance(pending, dict) else 0
        shared_key = keys.event_group(group)
        behind = values.number(count, keys.EVENTS_COUNT) - values.number(last, shared_key)
        return Backlog(max(0, behind), in_hand, values.number(missed, shared_key), int(dead))

    def state(self, group: str) -> tuple[int, str]:
        """Return (version, text) that the readers of a consumer group share, such as the reactors' table of reactions;
        (0, "") if there is none.

        The text is also empty if no reader of this master wrote it.
        """
        name = keys.event_group(group)
        found, state, code = self._client.call("hmget", name, "version", "state", "mac")
        version, shown = values.number(found, name), text(state or b"")
        fault = self._codes.state_fault(group, version, shown, code or b"")
        if fault is not None:
            self._refuse(name, fault)
        return version, "" if fault else shown

    def save_state(self, group: str, state: str, version: int) -> bool:
        """Store the text that the readers of a consumer group share, unless it changed since ``version``. Return True
        if it was stored.
        """
        with self._client.calling():
            code = self._codes.state_code(group, version + 1, state)
            return bool(self._save(keys=[keys.event_group(group)], args=[state, version, code]))

    def _genuine(self, group: str, events: Sequence[KeptEvent], *, new: bool) -> list[KeptEvent]:
        """Return those of ``events`` that have a valid seal of a role of this master and that this process has not got
        before. Acknowledge all others, so that they are not delivered again.

        ``new``: the consumer group delivers the events for the first time. False: they were delivered before, to a
        reader that did not acknowledge them.
        """
        genuine, left = [], []
        deliveries = self._deliveries[group]
        for event in events:
            fault = self._codes.fault(event.frame, event.to, event.seal, entered(event.id))
            if fault is None and deliveries.is_repeated(event.id, event.seal, new=new):
                fault = Fault.REPEATED
            if fault is None:
                genuine.append(event)
            else:
                left.append(event.id)
                self._refuse(keys.EVENTS, fault)
        if left:
            self._client.call("xack", keys.EVENTS, group, *left)
        return genuine

    def _refuse(self, key: str, fault: Fault) -> None:
        if self._codes.refused is None:
            self._client.faults.report(key, MEANING[fault])
        else:
            self._codes.refused(key, fault)


def _event(entry: tuple[bytes, list[bytes]]) -> KeptEvent:
    name, flat = entry
    return event_of(name, dict(zip(flat[::2], flat[1::2], strict=True)))
