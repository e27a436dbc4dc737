"""Audit record: an append-only stream of who did what on the master, as one hash chain of all workers.

Each entry is JSON with its number, and with the SHA-256 of the entry before. A code (HMAC, key derived from the master's
secret) covers the entry, so a writer of Redis can neither make nor change one. The last number and hash, with a code of
their own, are in a second key, so a cut end is found.

One chain instead of one for each worker: only then the order of two workers' entries is proven, and no whole worker can
be removed. A worker appends with a script that compares the end of the chain with the one that the worker linked to
(compare and append); a worker that lost the race links again. Redis itself cannot link: it must not have the key. No
role links later, because entries would be without proof until then.

Source: docs/security.md#audit
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from masterstore import keys
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt, StoreError
from masterstore.record_mac import AUDIT_END, AUDIT_ENTRY, Records

#: Largest entry in bytes; in a larger one long values are cut to _LONG characters of their Python form.
MAX_BYTES = 16384
_LONG = 500

#: Attempts to append an entry. Each failed one means that another worker appended one.
_ATTEMPTS = 50

#: Entries that are read at once.
_PAGE = 1000

#: KEYS: end of the chain, stream. ARGV: number and hash of the end that the entry is linked to; the entry, its code; its
#: number and hash, and their code; most entries to keep. Returns 1, or the present end as {number, hash, code}.
_APPEND = """
local last = redis.call('HMGET', KEYS[1], 'n', 'hash', 'mac')
if (last[1] or '0') ~= ARGV[1] or (last[2] or '') ~= ARGV[2] then
  return {last[1] or '0', last[2] or '', last[3] or ''}
end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[8], '*', 'entry', ARGV[3], 'mac', ARGV[4])
redis.call('HSET', KEYS[1], 'n', ARGV[5], 'hash', ARGV[6], 'mac', ARGV[7])
return 1
"""


class ChainEnd(NamedTuple):
    """The last entry of the audit record's hash chain: its number (0: no entry yet) and its SHA-256 hash."""

    number: int = 0
    hash: str = ""


#: End of a chain without entries.
NO_ENTRY = ChainEnd()


class AuditEntry(NamedTuple):
    """An audit entry as Redis stores it: id in the stream, JSON text, and authentication code."""

    stream_id: str
    text: bytes
    mac: bytes


class Verified(NamedTuple):
    """Result of a check of the audit record: numbers of the first and last entry (0: none), hash of the last
    one, number of entries, faults.
    """

    first: int
    last: int
    hash: str
    entries: int
    faults: tuple[str, ...]


def linked(records: Records, end: ChainEnd, fields: Mapping[str, object], at_ms: int) -> tuple[bytes, bytes, ChainEnd]:
    """Return (JSON text, authentication code, new end) of the audit entry that follows the entry ``end``.

    ``fields``: the entry's content; long values are cut if the entry is too large. ``at_ms``: its time,
    milliseconds since 1970.
    """
    number = end.number + 1
    whole = {"n": number, "prev": end.hash, "at": at_ms}
    entry = json.dumps({**fields, **whole}, default=repr).encode()
    if len(entry) > MAX_BYTES:
        cut = {
            name: value if len(repr(value)) <= _LONG else f"{repr(value)[:_LONG]}..." for name, value in fields.items()
        }
        entry = json.dumps({**cut, **whole}, default=repr).encode()
    mac = records.code(AUDIT_ENTRY, entry)
    return entry, mac, ChainEnd(number, hash_of(entry, mac))


def hash_of(entry: bytes, mac: bytes) -> str:
    """Return the SHA-256 of an audit entry's JSON and its authentication code, as hexadecimal digits."""
    return hashlib.sha256(entry + b"\0" + mac).hexdigest()


def end_record(end: ChainEnd) -> str:
    """Return the text over which the authentication code of the chain's end is made: number and hash of the last
    entry.
    """
    return f"{end.number} {end.hash}"


def verify(
    entries: Iterable[AuditEntry],
    end: ChainEnd,
    end_mac: bytes,
    records: Records,
    *,
    known: ChainEnd = NO_ENTRY,
    kept: int,
) -> Verified:
    """Check that no audit entry was changed, inserted, moved or removed; return a Verified, whose ``faults`` are
    empty if all is well.

    ``end`` and ``end_mac``: the recorded end of the chain and its code. ``known``: the end that an earlier
    check or export printed; without it a Redis that was set back to an older state is not noticed. ``kept``:
    number of entries that must be there at least (``audit_kept``). No I/O.
    """
    faults: list[str] = []
    first, last = 0, ChainEnd()
    count, found_known = 0, not known.number
    for entry in entries:
        count += 1
        number, prev = _head(entry.text)
        if fault := _fault(records, AUDIT_ENTRY, entry.text, entry.mac):
            faults.append(f"{entry.stream_id}: changed or inserted: {fault}")
            continue
        if not first:
            first = number
        elif number != last.number + 1:
            faults.append(
                f"{entry.stream_id}: entry {number} follows entry {last.number}: removed, or in another order"
            )
        elif prev != last.hash:
            faults.append(f"{entry.stream_id}: entry {number} does not follow the entry {last.number} that is here")
        last = ChainEnd(number, hash_of(entry.text, entry.mac))
        if number == known.number:
            found_known = True
            if last.hash != known.hash:
                faults.append(f"{entry.stream_id}: entry {number} is not the one of the known end")
    if first > 1 and count < kept:
        faults.append(f"the entries before {first} were removed: {count} are left, audit_kept is {kept}")
    if (end.number or end_mac) and (fault := _fault(records, AUDIT_END, end_record(end).encode(), end_mac)):
        faults.append(f"{keys.AUDIT_END}: the recorded end was changed: {fault}")
    if end != last:
        faults.append(
            f"the last entry is {last.number}, the recorded end is {end.number}: entries at the end were removed"
        )
    if not found_known and not (last.number > known.number and first > known.number):
        faults.append(f"entry {known.number} of the known end is not here: the chain was set back")
    return Verified(first, last.number, last.hash, count, tuple(faults))


def _fault(records: Records, kind: str, record: bytes, mac: bytes) -> str:
    try:
        records.check(kind, record, mac, keys.AUDIT)
    except StoreCorrupt as error:
        return error.why.partition(". ")[0]
    return ""


def _head(entry: bytes) -> tuple[int, str]:
    """Return (number, hash of the entry before) of an entry; (0, "") if the entry has none."""
    try:
        found = json.loads(entry)
        return int(found["n"]), str(found["prev"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0, ""


class Audit:
    """Operations on the audit record. All raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client, records: Records) -> None:
        self._client = client
        self._records = records
        self._append = client.redis.register_script(_APPEND)
        #: End of the chain as this worker saw it last.
        self._end = ChainEnd()

    def append(self, fields: Mapping[str, object], at_ms: int, *, kept: int) -> None:
        """Append an entry with these fields (JSON values) to the audit record; at least the newest ``kept`` entries
        are kept.

        Raises StoreError, and appends nothing, if other workers appended first at every attempt. Raises
        StoreCorrupt, after the entry was appended, if the chain became shorter than this worker saw it, or if the
        recorded end has a wrong code.
        """
        wrong: StoreCorrupt | None = None
        for _ in range(_ATTEMPTS):
            before = self._end
            entry, mac, end = linked(self._records, before, fields, at_ms)
            end_mac = self._records.code(AUDIT_END, end_record(end))
            arguments = [before.number, before.hash, entry, mac, end.number, end.hash, end_mac, kept]
            with self._client.calling():
                answer = self._append(keys=[keys.AUDIT_END, keys.AUDIT], args=arguments)
            if answer == 1:
                self._end = end
                if wrong is not None:
                    raise wrong
                return
            self._end, end_mac = _end_of(answer)
            wrong = wrong or self._trouble(before, self._end, end_mac)
        raise StoreError(f"an entry of the audit record was lost: {_ATTEMPTS} times another worker was faster")

    def _trouble(self, seen: ChainEnd, end: ChainEnd, mac: bytes) -> StoreCorrupt | None:
        advice = "Run `saltern audit verify`"
        if end.number < seen.number:
            return StoreCorrupt(keys.AUDIT_END, f"it ended with entry {seen.number}, now with {end.number}. {advice}")
        if end.number and (fault := _fault(self._records, AUDIT_END, end_record(end).encode(), mac)):
            return StoreCorrupt(keys.AUDIT_END, f"{fault}. {advice}")
        return None

    def end(self) -> tuple[ChainEnd, bytes]:
        """Return (number and hash of the last entry as Redis records them, authentication code of that record)."""
        return _end_of(self._client.call("hmget", keys.AUDIT_END, "n", "hash", "mac"))

    def entries(self, after: str = "") -> Iterator[AuditEntry]:
        """Yield all audit entries, oldest first; with ``after`` only those after this stream id."""
        start = f"({after}" if after else "-"
        while page := self._client.call("xrange", keys.AUDIT, min=start, count=_PAGE):
            for stream_id, fields in page:
                yield AuditEntry(text(stream_id), _bytes(fields, "entry"), _bytes(fields, "mac"))
            start = f"({text(page[-1][0])}"

    def verify(self, *, kept: int, known: ChainEnd = NO_ENTRY) -> Verified:
        """Check the audit record as the function ``verify`` does, and return a Verified.

        Workers may append meanwhile: the recorded end is read first, and entries after it are not checked.
        """
        end, mac = self.end()
        return verify(self._until(end.number), end, mac, self._records, known=known, kept=kept)

    def _until(self, number: int) -> Iterator[AuditEntry]:
        for entry in self.entries():
            if 0 < number < _head(entry.text)[0] and not _fault(self._records, AUDIT_ENTRY, entry.text, entry.mac):
                return
            yield entry


def _end_of(row: Any) -> tuple[ChainEnd, bytes]:
    number, digest, mac = ((value if isinstance(value, bytes) else str(value or "").encode()) for value in row)
    return ChainEnd(int(number) if number.isdigit() else 0, digest.decode("ascii", "replace")), mac


def _bytes(fields: Mapping[Any, Any], name: str) -> bytes:
    found = fields.get(name.encode(), fields.get(name, b""))
    return found if isinstance(found, bytes) else str(found).encode()
