"""The Redis stream of publications; each publisher reads it independently."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt
from masterstore.record_mac import PUBLICATION, Records

#: The stream id before all others.
BEGINNING = "0-0"

#: A stream id. Nothing more may be in a cursor: publishers of an earlier version read it, too, while a master is upgraded.
_CURSOR = re.compile(r"(?P<ms>\d{1,18})-\d{1,18}")

#: An entry of a stream, as redis-py returns it: (stream id, fields).
_StreamEntry = tuple[bytes, dict[bytes, bytes]]


class Publications:
    """The Redis stream of publications (jobs to publish). All operations raise StoreUnavailable if Redis does not
    answer.
    """

    def __init__(self, client: Client, records: Records = Records()) -> None:  # noqa: B008 - it never changes
        """Create the operations on the Redis stream of publications. ``records`` checks the authentication codes of
        publications; a publication with a wrong code counts as malformed.
        """
        self._client = client
        self._records = records

    def follow(self, after: str, block_ms: int, count: int = 100) -> list[tuple[str, dict[str, object] | StoreCorrupt]]:
        """Return [(stream id, load)] of at most ``count`` entries after the stream id ``after``, oldest first.

        Wait up to ``block_ms`` milliseconds for the first one; [] if none came. A malformed entry has its
        StoreCorrupt error in place of the load, so that the reader can skip it.
        """
        deadline = time.monotonic() + block_ms / 1000
        # Never longer at a time than half of what a connection waits for an answer: that would look like a dead Redis.
        longest = max(1, int(self._client.timeout * 500))
        wait, answer = max(1, min(block_ms, longest)), None
        while not answer and wait > 0:
            answer = self._client.call("xread", {keys.PUBLICATIONS: after}, count=count, block=wait)
            wait = min(int((deadline - time.monotonic()) * 1000), longest)
        return [self._entry_or_fault(entry) for _, entries in answer or () for entry in entries]

    def range_since(self, ms: int, count: int = 1000) -> list[tuple[str, dict[str, object]]]:
        """Return (stream id, load) of the publications since ``ms`` (milliseconds since 1970), oldest first. Raises
        StoreCorrupt.
        """
        return [
            self._entry(entry) for entry in self._client.call("xrange", keys.PUBLICATIONS, min=f"{ms}-0", count=count)
        ]

    def last_id(self) -> str:
        """Return the stream id of the newest publication; BEGINNING if there is none."""
        newest = self._client.call("xrevrange", keys.PUBLICATIONS, count=1)
        return text(newest[0][0]) if newest else BEGINNING

    def cursor(self, publisher: str) -> str | None:
        """Return the stream id of the last publication that this publisher sent; None if there is none or it is
        malformed.
        """
        saved = self._client.call("hget", keys.CURSORS, publisher)
        cursor = text(saved or b"")
        return cursor if _CURSOR.fullmatch(cursor) else None

    def save_cursors(self, publishers: Sequence[str], stream_id: str) -> None:
        """Store the stream id of the last publication that was sent, under the names of these publishers."""
        self._client.call("hset", keys.CURSORS, mapping=dict.fromkeys(publishers, stream_id))

    def give_sign(self, publisher: str, now_ms: int) -> None:
        """Record that this publisher process is alive. ``now_ms``: milliseconds since 1970."""
        self._client.call("hset", keys.PUBLISHER_SIGNS, publisher, now_ms)

    def forget_cursors(self, before_ms: int, but: str) -> list[str]:
        """Delete the cursors of publishers that gave no sign of life since ``before_ms``; return their names,
        sorted.

        ``before_ms``: milliseconds since 1970. ``but``: name of a publisher whose cursor is kept.
        """
        saved = {text(name): text(value) for name, value in self._client.call("hgetall", keys.CURSORS).items()}
        signs = {text(name): text(value) for name, value in self._client.call("hgetall", keys.PUBLISHER_SIGNS).items()}
        last = {name: max(_sent_at(saved.get(name, "")), _number(signs.get(name, ""))) for name in saved | signs}
        old = sorted(name for name, at in last.items() if name != but and at < before_ms)
        if old:
            self._client.call("hdel", keys.CURSORS, *old)
            self._client.call("hdel", keys.PUBLISHER_SIGNS, *old)
        return old

    def _entry(self, entry: _StreamEntry) -> tuple[str, dict[str, object]]:
        stream_id, fields = entry
        where = f"{keys.PUBLICATIONS}[{text(stream_id)}]"
        if b"load" not in fields:
            raise StoreCorrupt(where, "an entry without a load")
        self._records.check(PUBLICATION, fields[b"load"], fields.get(b"mac"), where)
        return text(stream_id), values.loads_map(fields[b"load"], where)

    def _entry_or_fault(self, entry: _StreamEntry) -> tuple[str, dict[str, object] | StoreCorrupt]:
        try:
            return self._entry(entry)
        except StoreCorrupt as error:
            return text(entry[0]), error


def _sent_at(cursor: str) -> int:

    found = _CURSOR.fullmatch(cursor)
    return int(found["ms"]) if found else 0


def _number(text_of_it: str) -> int:
    return int(text_of_it) if text_of_it.isdecimal() else 0
