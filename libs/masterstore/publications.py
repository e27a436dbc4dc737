"""The stream of publications: every publisher reads it, each at its own pace."""

from __future__ import annotations

import time
from typing import Any

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt

#: The stream id before all others.
BEGINNING = "0-0"


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
        """What this publisher sent last, None when it never sent anything."""
        saved = self._client.call("hget", keys.CURSORS, publisher)
        return text(saved) if saved else None

    def save_cursor(self, publisher: str, stream_id: str) -> None:
        """Remembers what this publisher sent last."""
        self._client.call("hset", keys.CURSORS, publisher, stream_id)


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
