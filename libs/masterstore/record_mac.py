"""Message authentication codes of records that Redis holds and that the master acts on.

Whoever can write to Redis could otherwise have the publisher sign a job for every minion. A worker adds the code when
it writes a record; whoever acts on the record checks it first. The key is derived from the master's secret, which Redis
never holds.

Source: docs/security.md#redis
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from typing import TypeAlias

from masterstore import keys
from masterstore.errors import StoreCorrupt

#: Return the code (bytes) of a record. The first argument names the kind of the record, so that a record of one kind cannot stand
#: for a record of another kind.
RecordMac: TypeAlias = Callable[[str, bytes], bytes]

#: Kinds of records.
PUBLICATION, LOAD, OWN_LOAD, ACCEPTED_KEY = "publication", "load", "own load", "accepted key"
AUDIT_ENTRY, AUDIT_SEAL, AUDIT_END = "audit entry", "audit seal", "audit end"
EVENT, GROUP_STATE, MINE = "event", "group state", "mine"
TOKEN = "eauth token"

_ADVICE = "Whoever writes to Redis beside the master made it; after an upgrade see the option accept_unsigned_records"


class Records:
    """Makes and checks the authentication codes of records in Redis.

    Without a key, a record gets no code and is not checked: for roles that do not act on these records.
    """

    def __init__(self, mac: RecordMac | None = None, *, accept_unsigned: bool = False) -> None:
        """Create the maker of codes. ``mac(kind, record)``: returns the authentication code of a record; None: there
        is no key. ``accept_unsigned``: accept records without a code; a wrong code is always refused.
        """
        self._mac = mac
        self._accept_unsigned = accept_unsigned

    def code(self, kind: str, record: str | bytes) -> bytes:
        """Return the authentication code of a record in Redis, as hexadecimal digits; b"" without a key.

        ``kind``: the kind of record, such as a publication.
        """
        return b"" if self._mac is None else self._mac(kind, _bytes(record))

    def check(self, kind: str, record: str | bytes, code: bytes | None, where: str) -> None:
        """Raise StoreCorrupt, which names the Redis key ``where``, if the authentication code does not belong to the
        record.

        A missing code raises it too, unless ``accept_unsigned`` is set. Without a key nothing is checked.
        ``kind``: the kind of record, such as a publication.
        """
        if self._mac is None or (not code and self._accept_unsigned):
            return
        if not code:
            raise StoreCorrupt(where, f"no worker of this master signed it. {_ADVICE}")
        if not compare_digest(self._mac(kind, _bytes(record)), code):
            raise StoreCorrupt(where, f"its signature belongs to another record or another master. {_ADVICE}")


def load_record(jid: str, load: str | bytes, replay_until_ms: int, when_back_until_ms: int) -> bytes:
    """Return the bytes over which a job's authentication code is made.

    They hold the JID, the load, and the times (milliseconds since 1970) until which the job may run late.
    """
    return b"%s %d %d %s" % (jid.encode(), replay_until_ms, when_back_until_ms, _bytes(load))


def key_record(minion: str, pem: str) -> bytes:
    """Return the bytes over which the authentication code of an accepted key is made: minion id and PEM."""
    return f"{minion} {pem}".encode("utf-8", "surrogateescape")


def check_accepted(records: Records, minion: str, pem: str, code: bytes | None) -> None:
    """Raise StoreCorrupt unless the authentication code ``code`` proves that a worker of this master accepted the
    public key ``pem`` of the minion.
    """
    records.check(ACCEPTED_KEY, key_record(minion, pem), code, f"{keys.minion_keys('accepted')}[{minion}]")


def _bytes(record: str | bytes) -> bytes:
    return record.encode() if isinstance(record, str) else record
