"""The stream of publications: every publisher reads it, each at its own pace."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt

#: The stream id before all others.
BEGINNING = "0-0"

#: A cursor as it is written: a stream id, and when its publisher gave the last sign of life.
_CURSOR = re.compile(r"(?P<id>(?P<ms>\d{1,18})-\d{1,18})(?: (?P<sign>\d{1,18}))?")


class Publications:
    """Verbs on the stream. All raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def follow(self, after: str, block_ms: int, count: int = 100) -> list[tuple[str, dict[str, Any] | StoreCorrupt]]:
        """Entries after a stream id, oldest first; waits up to ``block_ms`` for the first one.

        One that cannot be read comes as the error that says why: who follows must be able to go on behind it.
        """
        deadline = time.monotonic() + block_ms / 1000
        # Never longer at a time than half of what a connection waits for an answer: that would look like a dead Redis.
        longest = max(1, int(self._client.timeout * 500))
        wait, answer = max(1, min(block_ms, longest)), None
        while not answer and wait > 0:
            answer = self._client.call("xread", {keys.PUBLICATIONS: after}, count=count, block=wait)
            wait = min(int((deadline - time.monotonic()) * 1000), longest)
        return [_entry_or_fault(entry) for _, entries in answer or () for entry in entries]

    def range_since(self, ms: int, count: int = 1000) -> list[tuple[str, dict[str, Any]]]:
        """Entries that are not older than ``ms`` (milliseconds since 1970). Raises StoreCorrupt."""
        return [_entry(entry) for entry in self._client.call("xrange", keys.PUBLICATIONS, min=f"{ms}-0", count=count)]

    def last_id(self) -> str:
        """Id of the newest entry."""
        newest = self._client.call("xrevrange", keys.PUBLICATIONS, count=1)
        return text(newest[0][0]) if newest else BEGINNING

    def cursor(self, publisher: str) -> str | None:
        """What this publisher sent last; None when it never sent anything, or another hand wrote something else there."""
        saved = self._client.call("hget", keys.CURSORS, publisher)
        found = _CURSOR.fullmatch(text(saved or b""))
        return found["id"] if found else None

    def save_cursors(self, publishers: Sequence[str], stream_id: str, now_ms: int) -> None:
        """Remembers what was sent last under these names, and that they live."""
        self._client.call("hset", keys.CURSORS, mapping=dict.fromkeys(publishers, f"{stream_id} {now_ms}"))

    def forget_cursors(self, before_ms: int, but: str) -> list[str]:
        """Drops cursors of publishers (except ``but``) that gave no sign of life since then; their names, sorted."""
        saved = {text(name): text(value) for name, value in self._client.call("hgetall", keys.CURSORS).items()}
        old = sorted(name for name, value in saved.items() if name != but and _last_sign(value) < before_ms)
        if old:
            self._client.call("hdel", keys.CURSORS, *old)
        return old


def _last_sign(cursor: str) -> int:
    """Milliseconds since 1970. Before there were signs of life, a cursor was a stream id alone: then its time."""
    found = _CURSOR.fullmatch(cursor)
    return int(found["sign"] or found["ms"]) if found else 0


def _entry(entry: Any) -> tuple[str, dict[str, Any]]:
    stream_id, fields = entry
    where = f"{keys.PUBLICATIONS}[{text(stream_id)}]"
    if b"load" not in fields:
        raise StoreCorrupt(where, "an entry without a load")
    return text(stream_id), values.loads_map(fields[b"load"], where)


def _entry_or_fault(entry: Any) -> tuple[str, dict[str, Any] | StoreCorrupt]:
    try:
        return _entry(entry)
    except StoreCorrupt as error:
        return text(entry[0]), error
