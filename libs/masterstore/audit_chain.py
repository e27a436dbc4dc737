"""Entries and seals of the audit record, and the check of both. Pure.

An entry is JSON with the worker that wrote it (``by``), the worker's own count (``no``) and the time (``at``); a code
(HMAC, key derived from the master's secret) covers it. A seal covers the entries since the seal before: a digest of their
stream ids and codes, the hash of the seal before, and the last count of each worker. So a writer of Redis can neither
make, change, move nor remove a sealed entry. An entry that is not sealed yet has its place in its worker's count. The
time of an entry must fit its stream id and the seals around it, so that a true entry of the past cannot be inserted
again.

Source: docs/security.md#audit
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

from masterstore import keys
from masterstore.errors import StoreCorrupt
from masterstore.record_mac import AUDIT_END, AUDIT_ENTRY, AUDIT_SEAL, Records

#: Largest text of an entry in bytes; in a larger one long values are cut to _LONG characters of their Python form.
MAX_BYTES = 4096
_LONG = 300

#: A kept encoder: json.dumps would make one for each entry.
_ENCODE = json.JSONEncoder(default=repr).encode

#: The stream id before all others.
BEGINNING = "0-0"

#: Milliseconds by which the clocks of workers and of Redis may differ.
_CLOCKS_MS = 60_000

#: A worker that wrote no entry for RENEWED_MS takes a new name, with a count from 1. A seal names the workers of the last
#: _NAMED_MS, so that it names every worker that may still write, and the list stays small.
RENEWED_MS, _NAMED_MS = 3_600_000, 7_200_000

#: Beginning of the error of an action that was not done, because the record takes no entry about it. The first word is the
#: code of an error of Redis.
REFUSED = (
    f"AUDIT the audit record {keys.AUDIT} takes no entry, so this was not done. Run `saltern store check`, or set `audit:"
    " false`. Redis says"
)

#: ``Seal.named_since`` of a seal that an earlier version wrote: it names no workers.
_NOT_NAMED = -1


class AuditRecord(NamedTuple):
    """An entry or a seal as Redis stores it: id in its stream, JSON text, and authentication code."""

    stream_id: str
    text: bytes
    mac: bytes


class WorkerCount(NamedTuple):
    """A worker's name, its count at its last sealed entry, and the time of that entry in milliseconds since 1970."""

    by: str
    no: int
    at: int


class Place(NamedTuple):
    """The place of an audit entry: its worker, the worker's count, its time in milliseconds since 1970, and the number of
    unconfirmed entries directly before. A malformed entry has the default values.
    """

    by: str = ""
    no: int = 0
    at: int = 0
    unsure: int = 0


class SealName(NamedTuple):
    """The number (0: no seal yet) and the SHA-256 hash that identify one seal of the audit record."""

    number: int = 0
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Seal:
    """The content of one seal, a digest with an authentication code over the entries of the audit record since the
    previous seal. A Seal with the default values stands for "no seal yet".
    """

    number: int = 0
    #: Hash of the seal before; "" for the first one.
    prev: str = ""
    #: Time, milliseconds since 1970.
    at: int = 0
    #: Stream id of the last entry that is sealed, number and bytes of the entries that this seal covers, and their digest.
    last: str = BEGINNING
    count: int = 0
    size: int = 0
    digest: str = ""
    #: Number and bytes of all entries that were ever sealed.
    total: int = 0
    total_size: int = 0
    #: Number of the oldest seal that is kept: older ones, and their entries, were removed to keep the record small.
    first: int = 1
    #: The worker that sealed, its count at its last entry, and the time of its first entry since its seal before.
    by: str = ""
    no: int = 0
    since: int = 0
    #: Every worker with an entry in the two hours before this seal, sorted by name.
    counts: tuple[WorkerCount, ...] = ()
    #: Time of the seal from which on all seals name the workers, milliseconds since 1970; 0: from the first seal on.
    named_since: int = 0

    @property
    def names_all(self) -> bool:
        """Whether ``counts`` names every worker that may still write an entry under its name."""
        return self.named_since == 0 or (self.named_since != _NOT_NAMED and self.at - self.named_since > _NAMED_MS)

    def text(self) -> bytes:
        """Return the seal of the audit record as JSON, as Redis stores it."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()


class Verified(NamedTuple):
    """Result of a check of the audit record: number of entries and of those not sealed yet, first and last seal, hash of
    the last seal, faults.
    """

    entries: int
    unsealed: int
    first: int
    last: SealName
    faults: tuple[str, ...]


def entry_text(fields_of_entry: Mapping[str, object], by: str, no: int, at_ms: int, unsure: int = 0) -> bytes:
    """Return an audit entry as JSON. Long values are cut if the entry is too large.

    ``by`` and ``no``: the worker and its count. ``at_ms``: milliseconds since 1970. ``unsure``: number of entries of this
    worker directly before that the worker could not write.
    """
    place = f'"by": "{by}", "no": {no}, "at": {at_ms}' + (f', "unsure": {unsure}}}' if unsure else "}")
    try:
        told = _ENCODE(fields_of_entry)
    except (TypeError, ValueError, RecursionError):
        # Keys that JSON does not have, or a value that contains itself.
        told = json.dumps({name: _short(value) for name, value in fields_of_entry.items()})
    if len(told) + len(place) >= MAX_BYTES:
        told = json.dumps({name: _short(value) for name, value in fields_of_entry.items()})
    return f"{told[:-1]}, {place}".encode()


def _short(value: object) -> object:
    if isinstance(value, int | float) or value is None:
        return value
    try:
        shown = value if isinstance(value, str) else repr(value)
    except RecursionError:
        shown = f"a {type(value).__name__} that nests too deeply"
    return shown if len(shown) <= _LONG else f"{shown[:_LONG]}..."


#: Fields of a seal, with their types, that every version writes.
_PLAIN: Mapping[str, type] = {
    each.name: type(getattr(Seal(), each.name)) for each in fields(Seal) if each.name not in ("counts", "named_since")
}


def hash_of(text: bytes, mac: bytes) -> str:
    """Return the SHA-256 of a seal's JSON and its authentication code, as hexadecimal digits."""
    return hashlib.sha256(text + b"\0" + mac).hexdigest()


def digest_of(codes: bytes) -> str:
    """Return the SHA-256 of entries; ``codes`` is a line ``<stream id> <authentication code>`` for each, oldest first."""
    return hashlib.sha256(codes).hexdigest()


def code_line(entry: AuditRecord) -> bytes:
    """Return the line ``<stream id> <authentication code>`` of an audit entry, from which its seal's digest is computed."""
    return b"%s %s\n" % (entry.stream_id.encode(), entry.mac)


def read_seal(text: bytes) -> Seal | None:
    """Return the Seal that a JSON text from Redis holds; None if the text is malformed."""
    try:
        found = json.loads(text)
        plain = {name: kind(found[name]) for name, kind in _PLAIN.items()}
        counts = tuple(WorkerCount(str(by), int(no), int(at)) for by, no, at in found.get("counts", ()))
        named_since = int(found.get("named_since", _NOT_NAMED))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Seal(**plain, counts=counts, named_since=named_since)


def read_place(text: bytes) -> Place:
    """Return the Place of an audit entry."""
    try:
        found = json.loads(text)
        return Place(str(found["by"]), int(found["no"]), int(found["at"]), int(found.get("unsure", 0)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Place()


def named_workers(before: Seal, places: Iterable[Place], now_ms: int) -> tuple[tuple[WorkerCount, ...], int]:
    """Return the fields ``counts`` and ``named_since`` of the seal after ``before`` that covers the entries ``places``.

    ``now_ms``: time of the new seal, milliseconds since 1970.
    """
    last = {each.by: each for each in before.counts}
    for place in places:
        known = last.get(place.by)
        if known is None or place.no > known.no:
            last[place.by] = WorkerCount(place.by, place.no, place.at)
    kept = tuple(last[by] for by in sorted(last) if last[by].at > now_ms - _NAMED_MS)
    return kept, now_ms if before.number and before.named_since == _NOT_NAMED else before.named_since


def first_kept(oldest: Sequence[Seal], total: int, size: int, *, kept: int, most_bytes: int) -> Seal | None:
    """Return the newest of the ``oldest`` seals of the audit record that may be removed with the entries that it
    covers; None if none may.

    ``total`` and ``size``: number and bytes of all entries that were ever sealed. ``kept``: number of entries that
    stay at least. ``most_bytes``: bytes of entries that stay at most; 0: unlimited.
    """
    dropped = None
    for seal in oldest:
        many = total - seal.total >= kept
        large = most_bytes and size - (seal.total_size - seal.size) > most_bytes
        if not (many or large):
            break
        dropped = seal
    return dropped


def number_of(stream_id: str) -> tuple[int, int]:
    """Return a stream id as two numbers, for comparisons; (0, 0) if it is malformed."""
    ms, _, sequence = stream_id.partition("-")
    return (int(ms), int(sequence)) if ms.isdecimal() and sequence.isdecimal() else (0, 0)


def fault_of(records: Records, kind: str, text: bytes, mac: bytes) -> str:
    """Return as text why the authentication code of an audit entry or seal is wrong; "" if it is right."""
    try:
        records.check(kind, text, mac, keys.AUDIT)
    except StoreCorrupt as error:
        return error.why.partition(". ")[0]
    return ""


class _Counts:
    """The largest count of each worker (an entry's field ``no``) in the audit entries that were checked so far."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        #: No entry of a worker without a count here can exist but its first one.
        self.whole = False

    def fault(self, place: Place) -> str:
        """Check an audit entry's count against its worker's last one; return the fault as text, "" if there is none."""
        before = self.last.get(place.by)
        self.last[place.by] = max(place.no, before or 0)
        if before is None and (not self.whole or place.no == 1):
            return ""
        if before is not None and place.no <= before:
            return f"entry {place.no} of worker {place.by} stands behind its entry {before}: repeated or moved"
        missing = place.no - (before or 0) - 1
        if not missing:
            return ""
        unsure = f" (the worker had no answer about {place.unsure} of them)" if place.unsure else ""
        return f"{missing} entries of worker {place.by} before its {place.no}. are missing{unsure}"

    def fault_of_names(self, seal: Seal) -> str:
        """Check the counts that a seal names; return the fault as text, "" if there is none.

        Take over the counts of workers whose entries are no longer in the record. The first kept seal does that.
        """
        for by, no, _ in seal.counts:
            found = self.last.setdefault(by, no if not self.whole else 0)
            if found != no:
                return f"seal {seal.number} names {no} entries of worker {by}, the record has {found}"
        self.whole = self.whole or seal.names_all
        return ""


def verify(
    seals: Iterable[AuditRecord],
    entries: Iterable[AuditRecord],
    end: tuple[bytes, bytes],
    records: Records,
    *,
    known: SealName = SealName(),  # noqa: B008 - it never changes
) -> Verified:
    """Check that no audit entry was changed, inserted, moved or removed; return a Verified, whose ``faults`` are empty
    if all is well.

    ``end``: JSON text and authentication code of the recorded end, which is the last seal. ``known``: the seal that an
    earlier check printed; without it a Redis that was set back to an older state is not noticed.
    """
    faults: list[str] = []
    counts, waiting = _Counts(), _Peeked(entries)
    first: Seal | None = None
    before, name, found_known = Seal(), SealName(), not known.number
    number_of_entries = 0
    for record in seals:
        seal = read_seal(record.text)
        if (fault := fault_of(records, AUDIT_SEAL, record.text, record.mac)) or seal is None:
            faults.append(f"seal {record.stream_id}: changed or inserted: {fault or 'it is no seal'}")
            continue
        if first is None:
            first = seal
            counts.whole = seal.number == 1
        elif seal.number != before.number + 1:
            faults.append(f"seal {seal.number} follows seal {before.number}: removed, or in another order")
        elif seal.prev != name.hash:
            faults.append(f"seal {seal.number} does not follow the seal {before.number} that is here")
        covered = list(waiting.until(seal.last))
        number_of_entries += len(covered)
        for entry in covered:
            faults += _faults_of(entry, records, counts, before.at, seal.at)
        faults += _faults_of_cover(seal, covered, counts, first)
        before, name = seal, SealName(seal.number, hash_of(record.text, record.mac))
        if name.number == known.number:
            found_known = True
            if name.hash != known.hash:
                faults.append(f"seal {name.number} is not the known one")
    if first is not None and first.number != before.first:
        faults.append(f"the oldest seal is {first.number}, it must be {before.first}: seals were removed or inserted")
    faults += _faults_of_end(end, before, name, records)
    counts.whole = counts.whole or first is None
    unsealed = list(waiting.rest())
    for entry in unsealed:
        faults += _faults_of(entry, records, counts, before.at, None)
    if not found_known and not (first is not None and first.number > known.number):
        faults.append(f"the known seal {known.number} is not here: the record was set back")
    start = 0 if first is None else first.number
    return Verified(number_of_entries + len(unsealed), len(unsealed), start, name, tuple(faults))


def _faults_of(
    entry: AuditRecord, records: Records, counts: _Counts, sealed_before: int, sealed_at: int | None
) -> list[str]:
    """Return the faults of one audit entry. ``sealed_before`` and ``sealed_at``: times of the seals before and after it,
    milliseconds since 1970; 0 and None if there is none.
    """
    if fault := fault_of(records, AUDIT_ENTRY, entry.text, entry.mac):
        return [f"{entry.stream_id}: changed or inserted: {fault}"]
    place = read_place(entry.text)
    found = [counts.fault(place), _fault_of_time(entry, place, sealed_before, sealed_at)]
    return [f"{entry.stream_id}: {fault}" for fault in found if fault]


def _fault_of_time(entry: AuditRecord, place: Place, sealed_before: int, sealed_at: int | None) -> str:
    if abs(number_of(entry.stream_id)[0] - place.at) > _CLOCKS_MS:
        return f"it says that it was written at {place.at}: inserted later, or a clock is wrong by more than a minute"
    if place.at < sealed_before - _CLOCKS_MS or (sealed_at is not None and place.at > sealed_at + _CLOCKS_MS):
        return f"its time {place.at} does not lie between the seals around it ({sealed_before}, {sealed_at}): moved"
    return ""


def _faults_of_cover(seal: Seal, covered: Sequence[AuditRecord], counts: _Counts, first: Seal) -> list[str]:
    """Return the faults of a seal against the entries that it covers. ``counts`` contains these entries already."""
    faults = []
    if len(covered) != seal.count or digest_of(b"".join(map(code_line, covered))) != seal.digest:
        faults.append(
            f"seal {seal.number} covers {seal.count} entries up to {seal.last}, here are {len(covered)}: entries were"
            " removed, changed, inserted or moved"
        )
    if counts.last.get(seal.by, 0) < seal.no and (
        counts.whole or seal.by in counts.last or seal.since > first.at + _CLOCKS_MS
    ):
        faults.append(f"seal {seal.number}: entries of worker {seal.by} up to its {seal.no}. are missing")
    if fault := counts.fault_of_names(seal):
        faults.append(fault)
    return faults


def _faults_of_end(end: tuple[bytes, bytes], last: Seal, name: SealName, records: Records) -> list[str]:
    text, mac = end
    if not text and not mac:
        return [f"{keys.AUDIT_END}: removed; the last seal is {name.number}"] if name.number else []
    if fault := fault_of(records, AUDIT_END, text, mac):
        return [f"{keys.AUDIT_END}: changed: {fault}"]
    found = read_seal(text)
    if found is None or found != last:
        number = "malformed" if found is None else str(found.number)
        return [
            f"the last seal is {name.number}, the recorded end is {number}: seals at the end were removed or inserted"
        ]
    return []


class _Peeked:
    """Yields audit entries in the order of their stream ids and in parts: for each seal the entries that it covers. It
    reads one entry ahead.
    """

    def __init__(self, entries: Iterable[AuditRecord]) -> None:
        self._entries = iter(entries)
        self._next: AuditRecord | None = next(self._entries, None)

    def until(self, stream_id: str) -> Iterator[AuditRecord]:
        """Yield the audit entries up to this stream id that were not yielded yet."""
        last = number_of(stream_id)
        while self._next is not None and number_of(self._next.stream_id) <= last:
            yield self._next
            self._next = next(self._entries, None)

    def rest(self) -> Iterator[AuditRecord]:
        """Yield all audit entries that were not yielded yet."""
        while self._next is not None:
            yield self._next
            self._next = next(self._entries, None)
