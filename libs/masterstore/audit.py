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
from collections.abc import Iterator, Mapping
from typing import Any

from masterstore import keys
from masterstore.audit_chain import (
    AuditRecord,
    Seal,
    SealName,
    Verified,
    digest_of,
    entry_text,
    fault_of,
    first_kept,
    hash_of,
    number_of,
    read_seal,
    verify,
)
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt
from masterstore.record_mac import AUDIT_END, AUDIT_ENTRY, AUDIT_SEAL, Records

#: Entries or seals that are read at once.
_PAGE = 1000

#: Entries that one seal covers at most, and seals that may be removed with one new seal.
_COVERED, _DROPPED = 2000, 50

#: Attempts to seal. Each failed one means that another worker sealed.
_ATTEMPTS = 5

#: Checks of a record that seems to be changed.
_TRIES = 3

#: KEYS: end, entries. ARGV: the end that the worker knows; stream id of its last entry; most entries.
#: Returns {end, its code} if the end is another one, otherwise {lines of id and code; last id; number; bytes}.
_GATHER = """
local stored = redis.call('HMGET', KEYS[1], 'seal', 'mac')
if (stored[1] or '') ~= ARGV[1] then return {stored[1] or '', stored[2] or ''} end
local lines, last, size = {}, ARGV[2], 0
local entries = redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])
for at, entry in ipairs(entries) do
  local mac = ''
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'mac' then mac = entry[2][i + 1] end
    if entry[2][i] == 'entry' then size = size + #entry[2][i + 1] end
  end
  lines[at], last = entry[1] .. ' ' .. mac .. '\\n', entry[1]
end
return {table.concat(lines), last, #entries, size}
"""

#: KEYS: end, entries, seals. ARGV: the end that the seal follows; seal, its code, its code as the end; id of the oldest seal
#: and entry that stay ("": all). Returns whether the seal was written.
_SEAL = """
if (redis.call('HGET', KEYS[1], 'seal') or '') ~= ARGV[1] then return 0 end
redis.call('XADD', KEYS[3], '*', 'seal', ARGV[2], 'mac', ARGV[3])
redis.call('HSET', KEYS[1], 'seal', ARGV[2], 'mac', ARGV[4])
if ARGV[5] ~= '' then
  redis.call('XTRIM', KEYS[3], 'MINID', ARGV[5])
  redis.call('XTRIM', KEYS[2], 'MINID', ARGV[6])
end
return 1
"""


class _Writer:
    """The state of one process as a writer of audit entries: its name, its count of entries, and those not sealed yet."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.name = f"{socket.gethostname()[:40]}-{pid}-{os.urandom(4).hex()}"
        #: The last count that was given, the last one that Redis confirmed, and the number of unconfirmed ones after it.
        self.given = self.sure = self.unsure = 0
        #: The count that the last own seal contains, and the time of the first entry after it.
        self.sealed = self.since = 0


class Audit:
    """Writes entries and seals (digests of entries, with authentication codes) to the audit record in Redis, reads and
    checks them. All operations raise StoreUnavailable without Redis.
    """

    def __init__(self, client: Client, records: Records) -> None:
        self._client = client
        self._records = records
        self._gather = client.redis.register_script(_GATHER)
        self._seal = client.redis.register_script(_SEAL)
        self._me = _Writer(os.getpid())
        #: End of the chain as this process saw it last: text, content, name.
        self._end, self._last, self._name = b"", Seal(), SealName()

    # --- entries

    def entry(self, fields: Mapping[str, object], at_ms: int) -> tuple[bytes, bytes]:
        """Return (JSON text, authentication code) of the next entry of this process, for a script that appends it.

        Call ``confirm`` when it is known whether Redis has the entry. ``fields``: JSON values. ``at_ms``: milliseconds
        since 1970.
        """
        me = self._writer()
        made = entry_text(fields, me.name, me.given + 1, at_ms, me.unsure)
        me.since = me.since or at_ms
        return made, self._records.code(AUDIT_ENTRY, made)

    def confirm(self, written: bool | None) -> None:
        """Record whether Redis stored the entry that ``entry`` returned last: True, False, or None if that is not known."""
        me = self._me
        if written:
            me.given += 1
            me.sure, me.unsure = me.given, 0
        elif written is None:
            me.given += 1
            me.unsure += 1

    def append(self, fields: Mapping[str, object], at_ms: int) -> None:
        """Append an entry with these fields (JSON values) to the audit record. Raises StoreError; then the entry may be
        missing.
        """
        made, mac = self.entry(fields, at_ms)
        written = None
        try:
            self._client.call("execute_command", "XADD", keys.AUDIT, "*", "entry", made, "mac", mac)
            written = True
        finally:
            self.confirm(written)

    def _writer(self) -> _Writer:
        """Return the _Writer of this process. After a fork the child gets a new one with a name of its own."""
        if self._me.pid != os.getpid():
            self._me = _Writer(os.getpid())
        return self._me

    @property
    def unsealed(self) -> bool:
        """Return whether this process wrote entries since it last appended a seal (digest with an authentication code)
        over the entries.
        """
        me = self._me
        return me.sure > me.sealed and me.pid == os.getpid()

    # --- seals

    def seal(self, now_ms: int, *, kept: int, most_bytes: int = 0) -> int:
        """Append a seal (digest with an authentication code) over the entries that no seal covers yet, and remove the
        oldest; return the number of entries that it covers.

        Nothing is written if there is nothing to seal. ``kept``: number of the newest entries that stay.
        ``most_bytes``: bytes of entries that stay at most; 0: unlimited. Raises StoreCorrupt, after the entries were
        sealed, if the chain became shorter than this process saw it, or if the recorded end was changed.
        """
        sealed, wrong = 0, None
        for _ in range(_ATTEMPTS):
            with self._client.calling():
                arguments = [self._end, self._last.last, _COVERED]
                found = self._gather(keys=[keys.AUDIT_END, keys.AUDIT], args=arguments)
            if len(found) == 2:
                wrong = self._follow(_bytes(found[0]), _bytes(found[1])) or wrong
                continue
            lines, last, count, size = _bytes(found[0]), text(found[1]), int(found[2]), int(found[3])
            if not count and not self.unsealed:
                break
            if self._write(lines, last, count, size, now_ms, kept, most_bytes):
                sealed += count
                if count < _COVERED:
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

    def _write(self, lines: bytes, last: str, count: int, size: int, now_ms: int, kept: int, most_bytes: int) -> bool:
        """Append a seal (digest with an authentication code) over ``count`` entries to the chain of seals. Return
        False if another process sealed at the same time.

        ``lines``: a line with stream id and authentication code for each entry; ``last``: stream id of the last entry;
        ``size``: bytes of the entries.
        """
        me, before = self._writer(), self._last
        total, size_of_all = before.total + count, before.total_size + size
        # A seal that leaves entries over says nothing of the newest ones.
        whole = count < _COVERED
        dropped = self._dropped(total, size_of_all, kept, most_bytes)
        seal = Seal(
            number=before.number + 1,
            prev=self._name.hash,
            at=now_ms,
            last=last,
            count=count,
            size=size,
            digest=digest_of(lines),
            total=total,
            total_size=size_of_all,
            first=dropped[1].number + 1 if dropped else before.first,
            by=me.name,
            no=me.sure if whole else me.sealed,
            since=me.since,
        )
        made = seal.text()
        mac = self._records.code(AUDIT_SEAL, made)
        trims = (_after(dropped[0]), _after(dropped[1].last)) if dropped else ("", "")
        arguments = [self._end, made, mac, self._records.code(AUDIT_END, made), *trims]
        with self._client.calling():
            written = self._seal(keys=[keys.AUDIT_END, keys.AUDIT, keys.AUDIT_SEALS], args=arguments)
        if written:
            self._end, self._last, self._name = made, seal, SealName(seal.number, hash_of(made, mac))
            if whole:
                me.sealed, me.since = me.sure, 0
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


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value or "").encode()
