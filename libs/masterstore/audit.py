"""Audit record: an append-only stream of entries (who did what on the master), and a chain of seals over it.

The entry about a publication is written by the same Redis script that records the job. So neither exists without the
other, and no round trip is added. The seals are written later: each worker that wrote entries seals, once a second,
all entries that have no seal yet, those of other workers too. A script in Redis cannot make seals, because Redis must
not have the key.

What entries and seals contain, and what they prove: ``audit_chain``. Source: docs/security.md#audit
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from masterstore import keys
from masterstore.audit_chain import (
    REFUSED,
    RENEWED_MS,
    AuditRecord,
    Seal,
    SealName,
    Verified,
    code_line,
    digest_of,
    entry_text,
    fault_of,
    first_kept,
    hash_of,
    named_workers,
    number_of,
    read_place,
    read_seal,
    verify,
)
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt, StoreError, StoreUnavailable
from masterstore.record_mac import AUDIT_END, AUDIT_ENTRY, AUDIT_SEAL, Records

#: Entries or seals that are read at once.
_PAGE = 1000

#: Entries that one seal covers at most, and seals that may be removed with one new seal.
_COVERED, _DROPPED = 2000, 50

#: Attempts to seal. Each failed one means that another worker sealed.
_ATTEMPTS = 5

#: Checks of a record that seems to be changed.
_TRIES = 3

#: Entries that a process keeps while Redis does not answer. The oldest are dropped; `verify` then finds the gap.
_OWED = 1000

#: Milliseconds between the stream ids of two entries among which a doubtful entry is looked for: the time that an
#: operation on Redis may take, and the difference of two clocks.
_LOOKED_BACK_MS = 300_000

#: KEYS: end, entries. ARGV: the end that the worker knows; stream id of its last entry; most entries.
#: Returns {end, its code} if the end is another one, otherwise {the entries, as XRANGE returns them}.
_GATHER = """
local stored = redis.call('HMGET', KEYS[1], 'seal', 'mac')
if (stored[1] or '') ~= ARGV[1] then return {stored[1] or '', stored[2] or ''} end
return {redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])}
"""

#: Function ``enter``: appends an entry to the audit record, each count of a worker once. Whichever of two requests with the
#: same count arrives second gets 0: the first one may have been delayed on its way. The counts are fields of the end.
ENTER = """
local function enter(record, counts, by, no, entry, mac)
  local last = redis.pcall('HGET', counts, 'no:' .. by)
  if type(last) == 'table' then return last end
  if last and tonumber(last) and tonumber(last) >= tonumber(no) then return 0 end
  local id = redis.pcall('XADD', record, '*', 'entry', entry, 'mac', mac)
  if type(id) == 'string' then redis.call('HSET', counts, 'no:' .. by, no) end
  return id
end
"""

#: KEYS: entries, end. ARGV: the worker, its count, the entry, its code. Returns the entry's stream id; 0 if the count is taken.
_ENTER = f"{ENTER}\nreturn enter(KEYS[1], KEYS[2], unpack(ARGV))"

#: KEYS: end, entries, seals. ARGV: the end that the seal follows; seal, its code, its code as the end; id of the oldest seal
#: and entry that stay ("": all); the workers whose counts stay. Returns whether the seal was written.
_SEAL = """
if (redis.call('HGET', KEYS[1], 'seal') or '') ~= ARGV[1] then return 0 end
redis.call('XADD', KEYS[3], '*', 'seal', ARGV[2], 'mac', ARGV[3])
redis.call('HSET', KEYS[1], 'seal', ARGV[2], 'mac', ARGV[4])
if ARGV[5] ~= '' then
  redis.call('XTRIM', KEYS[3], 'MINID', ARGV[5])
  redis.call('XTRIM', KEYS[2], 'MINID', ARGV[6])
end
local stays = {seal = true, mac = true}
for i = 7, #ARGV do stays['no:' .. ARGV[i]] = true end
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if not stays[name] then redis.call('HDEL', KEYS[1], name) end
end
return 1
"""


class Entry(NamedTuple):
    """An entry for the audit record: its worker, the worker's count, its JSON text and its authentication code."""

    by: str
    no: int
    text: bytes
    mac: bytes


@dataclass(slots=True)
class _Owed:
    """An entry that is to be appended: its fields, the time of the action in milliseconds since 1970, and the codes of the
    texts with which it was sent to Redis.
    """

    fields: Mapping[str, object]
    at: int
    sent: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class _Writer:
    """The state of one process as a writer of audit entries: its name, its count of entries, and those not sealed yet."""

    pid: int
    name: str = ""
    #: The last count that was used.
    used: int = 0
    #: Redis gave no answer about an entry with the next count: it may have that entry.
    doubt: bool = False
    #: Number of entries directly before the next one that were dropped.
    unsure: int = 0
    #: The count that the last own seal contains, the time of the first entry after it, and the time of the last entry.
    sealed: int = 0
    since: int = 0
    last: int = 0
    owed: deque[_Owed] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.name = f"{socket.gethostname()[:40]}-{self.pid}-{os.urandom(4).hex()}"

    @property
    def settled(self) -> bool:
        """Whether every entry of this writer is in the record and sealed."""
        return self.used == self.sealed and not self.doubt and not self.owed and not self.unsure


class Audit:
    """Writes entries and seals (digests of entries, with authentication codes) to the audit record in Redis, reads and
    checks them. All operations raise StoreUnavailable without Redis.
    """

    def __init__(self, client: Client, records: Records) -> None:
        self._client = client
        self._records = records
        self._enter = client.redis.register_script(_ENTER)
        self._gather = client.redis.register_script(_GATHER)
        self._seal = client.redis.register_script(_SEAL)
        self._me = _Writer(os.getpid())
        #: End of the chain as this process saw it last: text, content, name.
        self._end, self._last, self._name = b"", Seal(), SealName()

    # --- entries

    def entry(self, fields: Mapping[str, object], at_ms: int) -> Entry:
        """Return the next Entry of this process, for a script that appends it together with a job (``ENTER``).

        Call ``entered`` with the script's answer. ``fields``: JSON values. ``at_ms``: milliseconds since 1970. Entries that
        are owed are appended first; raises StoreError if that fails.
        """
        self._append_owed(at_ms)
        return self._make(fields, at_ms)

    def entered(self, found: bool | None) -> bool:
        """Record what became of the entry that was made last: True: Redis has it; False: another one has its count; None:
        Redis gave no answer.

        Return whether the entry must be made again, with the next count. Raises StoreError if the count cannot be another
        one's: somebody changed the counts in Redis.
        """
        me = self._me
        if found is None:
            me.doubt = True
            return False
        if not found and not me.doubt:
            raise StoreError(f"{REFUSED}: the count {me.used + 1} of worker {me.name} is taken. Somebody changed it")
        me.used += 1
        me.doubt = False
        if found:
            me.unsure = 0
        return not found

    def append(self, fields: Mapping[str, object], at_ms: int) -> None:
        """Append an entry with these fields (JSON values) to the audit record.

        Raises StoreUnavailable if Redis does not answer: the entry is kept, and appended by the next operation that
        Redis answers. Raises StoreError if Redis refuses the entry: it is not in the record.
        """
        me = self._writer(at_ms)
        if len(me.owed) >= _OWED:
            me.owed.popleft()
            me.used, me.unsure, me.doubt = me.used + 1, me.unsure + 1, False
        entry = _Owed(fields, at_ms)
        me.owed.append(entry)
        try:
            self._append_owed(at_ms)
        except StoreUnavailable:
            raise
        except StoreError:
            if entry in me.owed:
                me.owed.remove(entry)
            raise

    def _make(self, fields: Mapping[str, object], at_ms: int) -> Entry:
        me = self._writer(at_ms)
        text_of_entry = entry_text(fields, me.name, me.used + 1, at_ms, me.unsure)
        me.since, me.last = me.since or at_ms, at_ms
        return Entry(me.name, me.used + 1, text_of_entry, self._records.code(AUDIT_ENTRY, text_of_entry))

    def _append_owed(self, now_ms: int) -> None:
        """Append the entries that are owed. Raises StoreError."""
        me = self._writer(now_ms)
        while me.owed:
            owed = me.owed[0]
            # The time in an entry is that of its writing: `verify` compares it with the stream id.
            late = {"happened": owed.at} if owed.at != now_ms else {}
            made = self._make({**owed.fields, **late}, now_ms)
            owed.sent.append(made.mac)
            found: bool | None = None
            try:
                with self._client.calling():
                    found = self._enter(keys=[keys.AUDIT, keys.AUDIT_END], args=list(made)) != 0
            except StoreUnavailable:
                self.entered(None)
                raise
            except StoreError as error:
                # Redis answered: the entry is not in the record. The caller of ``append`` decides about it.
                raise StoreError(f"{REFUSED}: {error}") from error
            again = self.entered(found)
            # The count is that of this entry, sent before, or of a publication about which Redis gave no answer.
            if not again or self._has(owed):
                me.owed.popleft()

    def _has(self, owed: _Owed) -> bool:
        """Return whether the record in Redis contains the entry, in one of the forms that were sent. Raises StoreError."""
        newest = "+"
        while page := self._client.call("xrevrange", keys.AUDIT, max=newest, count=_PAGE):
            for stream_id, found in page:
                if _bytes(found.get(b"mac")) in owed.sent:
                    return True
                if number_of(text(stream_id))[0] < owed.at - _LOOKED_BACK_MS:
                    return False
            newest = f"({text(page[-1][0])}"
        return False

    def _writer(self, now_ms: int | None = None) -> _Writer:
        """Return the _Writer of this process. A child process after a fork, and a process that wrote nothing for
        RENEWED_MS before ``now_ms``, get a new one with a name of its own.
        """
        me = self._me
        silent = now_ms is not None and me.last and me.settled and now_ms - me.last > RENEWED_MS
        if me.pid != os.getpid() or silent:
            self._me = _Writer(os.getpid())
        return self._me

    @property
    def unsealed(self) -> bool:
        """Return whether this process has entries that no seal (digest with an authentication code) of its own covers, or
        that Redis did not confirm yet.
        """
        me = self._me
        return me.pid == os.getpid() and (me.used > me.sealed or bool(me.owed))

    # --- seals

    def seal(self, now_ms: int, *, kept: int, most_bytes: int = 0) -> int:
        """Append a seal (digest with an authentication code) over the entries that no seal covers yet, and remove the
        oldest; return the number of entries that it covers.

        Nothing is written if there is nothing to seal. ``kept``: number of the newest entries that stay.
        ``most_bytes``: bytes of entries that stay at most; 0: unlimited. Raises StoreCorrupt, after the entries were
        sealed, if the chain became shorter than this process saw it, or if the recorded end was changed.
        """
        sealed, wrong = 0, None
        self._append_owed(now_ms)
        for _ in range(_ATTEMPTS):
            with self._client.calling():
                arguments = [self._end, self._last.last, _COVERED]
                found = self._gather(keys=[keys.AUDIT_END, keys.AUDIT], args=arguments)
            if len(found) == 2:
                wrong = self._follow(_bytes(found[0]), _bytes(found[1])) or wrong
                continue
            covered = [_record("entry", entry) for entry in found[0]]
            if not covered and not self.unsealed:
                break
            if self._write(covered, now_ms, kept, most_bytes):
                sealed += len(covered)
                if len(covered) < _COVERED:
                    break
        if wrong is not None:
            raise wrong
        return sealed

    def _follow(self, end: bytes, mac: bytes) -> StoreCorrupt | None:
        """Load the recorded end (the last seal, text and code), which another process replaced.

        Return None, or a StoreCorrupt error with the reason if the chain became shorter or the code is wrong.
        """
        before, seal = self._last, read_seal(end) or Seal()
        self._end, self._last = end, seal
        self._name = (
            SealName(seal.number, hash_of(end, self._records.code(AUDIT_SEAL, end))) if seal.number else SealName()
        )
        advice = "Run `saltern audit verify`"
        if seal.number < before.number:
            why = f"it ended with seal {before.number}, now with {seal.number}. {advice}"
            return StoreCorrupt(keys.AUDIT_END, why)
        if end and (fault := fault_of(self._records, AUDIT_END, end, mac)):
            return StoreCorrupt(keys.AUDIT_END, f"{fault}. {advice}")
        return None

    def _write(self, covered: list[AuditRecord], now_ms: int, kept: int, most_bytes: int) -> bool:
        """Append a seal (digest with an authentication code) over the entries ``covered`` to the chain of seals. Return
        False if another process sealed at the same time.
        """
        me, before = self._writer(), self._last
        count, size = len(covered), sum(len(entry.text) for entry in covered)
        # An entry without a valid code names no worker: whoever can write to Redis could make up counts by it.
        places = [read_place(each.text) for each in covered if not fault_of(self._records, AUDIT_ENTRY, *each[1:])]
        counts, named_since = named_workers(before, places, now_ms)
        total, size_of_all = before.total + count, before.total_size + size
        # A seal that leaves entries over says nothing of the newest ones.
        whole = count < _COVERED
        dropped = self._dropped(total, size_of_all, kept, most_bytes)
        seal = Seal(
            number=before.number + 1,
            prev=self._name.hash,
            at=now_ms,
            last=covered[-1].stream_id if covered else before.last,
            count=count,
            size=size,
            digest=digest_of(b"".join(map(code_line, covered))),
            total=total,
            total_size=size_of_all,
            first=dropped[1].number + 1 if dropped else before.first,
            by=me.name,
            no=me.used if whole else me.sealed,
            since=me.since,
            counts=counts,
            named_since=named_since,
        )
        made = seal.text()
        mac = self._records.code(AUDIT_SEAL, made)
        trims = (_after(dropped[0]), _after(dropped[1].last)) if dropped else ("", "")
        arguments = [self._end, made, mac, self._records.code(AUDIT_END, made), *trims, *(each.by for each in counts)]
        with self._client.calling():
            written = self._seal(keys=[keys.AUDIT_END, keys.AUDIT, keys.AUDIT_SEALS], args=arguments)
        if written:
            self._end, self._last, self._name = made, seal, SealName(seal.number, hash_of(made, mac))
            if whole:
                me.sealed, me.since = me.used, 0
        return bool(written)

    def _dropped(self, total: int, size: int, kept: int, most_bytes: int) -> tuple[str, Seal] | None:
        """Return (stream id, seal) of the newest seal of the audit record that is removed now together with the
        entries that it covers; None if nothing is removed.
        """
        if total <= kept and (not most_bytes or size <= most_bytes):
            return None
        oldest: list[tuple[str, Seal]] = []
        for record in self._page(keys.AUDIT_SEALS, "seal", "-", _DROPPED):
            seal = read_seal(record.text)
            if seal is None or fault_of(self._records, AUDIT_SEAL, record.text, record.mac):
                # A changed seal decides nothing; `saltern audit verify` reports it.
                break
            oldest.append((record.stream_id, seal))
        last = first_kept([seal for _, seal in oldest], total, size, kept=kept, most_bytes=most_bytes)
        return next((pair for pair in oldest if pair[1] is last), None)

    # --- reading

    def end(self) -> tuple[bytes, bytes]:
        """Return (JSON text, authentication code) of the recorded end of the audit record, which is a copy of the last
        seal; empty bytes if there is none.
        """
        seal, mac = self._client.call("hmget", keys.AUDIT_END, "seal", "mac")
        return _bytes(seal), _bytes(mac)

    def entries(self) -> Iterator[AuditRecord]:
        """Yield all audit entries, oldest first."""
        return self._all(keys.AUDIT, "entry")

    def seals(self) -> Iterator[AuditRecord]:
        """Yield all seals of the audit record, oldest first."""
        return self._all(keys.AUDIT_SEALS, "seal")

    def verify(self, *, known: SealName = SealName()) -> Verified:  # noqa: B008 - it never changes
        """Check the seals and entries of the audit record in Redis; return a Verified, whose ``faults`` are empty if
        nothing was changed.

        ``known``: the seal that an earlier check printed. Workers may write meanwhile: the recorded end is read first,
        and later seals are ignored.
        """
        found = self._verify(known)
        for _ in range(_TRIES - 1):
            if not found.faults:
                break
            # A worker may have removed old entries between two reads: what was changed is found again.
            again = self._verify(known)
            found = again if len(again.faults) < len(found.faults) else found
        return found

    def _verify(self, known: SealName) -> Verified:
        end = self.end()
        return verify(self._until(read_seal(end[0])), self.entries(), end, self._records, known=known)

    def _until(self, last: Seal | None) -> Iterator[AuditRecord]:
        for record in self.seals():
            seal = read_seal(record.text)
            later = last is not None and seal is not None and seal.number > last.number
            if later and not fault_of(self._records, AUDIT_SEAL, record.text, record.mac):
                return
            yield record

    def _all(self, key: str, field: str) -> Iterator[AuditRecord]:
        start = "-"
        while page := self._page(key, field, start, _PAGE):
            yield from page
            start = f"({page[-1].stream_id}"

    def _page(self, key: str, field: str, start: str, count: int) -> list[AuditRecord]:
        page = self._client.call("xrange", key, min=start, count=count)
        return [
            AuditRecord(text(stream_id), _bytes(found.get(field.encode())), _bytes(found.get(b"mac")))
            for stream_id, found in page
        ]


def _after(stream_id: str) -> str:
    ms, sequence = number_of(stream_id)
    return f"{ms}-{sequence + 1}"


def _record(field_of_text: str, entry: Any) -> AuditRecord:
    """Return an entry of a stream, as a script returns it ([id, [field, value, ...]]), as AuditRecord."""
    stream_id, flat = entry
    found = dict(zip(map(_bytes, flat[::2]), map(_bytes, flat[1::2]), strict=True))
    return AuditRecord(text(stream_id), found.get(field_of_text.encode(), b""), found.get(b"mac", b""))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value or "").encode()
