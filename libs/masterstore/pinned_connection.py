"""A Redis client that sends its commands over one pinned connection, instead of borrowing one from the pool for each
command.

Borrowing costs more than the command itself: redis-py locks, counts, and checks the socket for unexpected bytes. A
worker sends its commands one after the other on a connection of its own, so none of that is needed. This module only
decides which thread may use the pinned connection, and encodes text and numbers fast. redis-py does everything else:
connecting, retries, timeouts, parsing, and all calls that are not plain commands.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from masterstore import redis_parts as redis

#: Arguments of more bytes are encoded by redis-py, which does not copy them.
_COPIED = 6000


def packed(arguments: Sequence[Any]) -> bytes | None:
    """Return a Redis command as bytes in Redis' protocol; None if redis-py has to encode it.

    redis-py encodes large values, values other than text, bytes and integers, and command names of two words.
    """
    parts = [b"*%d\r\n" % len(arguments)]
    for value in arguments:
        kind = type(value)
        if kind is str:
            value = value.encode("utf-8", "surrogateescape")
        elif kind is int:
            value = b"%d" % value
        elif kind is not bytes:
            return None
        if len(value) > _COPIED:
            return None
        parts.append(b"$%d\r\n%b\r\n" % (len(value), value))
    name = arguments[0]
    return None if type(name) is not str or " " in name else b"".join(parts)


class PinnedRedis(redis.Redis):
    """Redis client with a pinned connection for one thread at a time; other threads borrow from the pool meanwhile.
    Safe after a fork.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._one_at_a_time = threading.Lock()
        #: (process id, its connection); None before the first command.
        self._kept: tuple[int, Any] | None = None

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        """Send a Redis command on the pinned connection and return its answer. Raises redis-py's errors."""
        if not self._one_at_a_time.acquire(blocking=False):
            # Also the case in a child that was forked while another thread of the parent held the lock.
            return super().execute_command(*arguments, **options)  # type: ignore[no-untyped-call]
        try:
            return self._over(self._connection(), arguments, options)
        finally:
            self._one_at_a_time.release()

    def register_script(self, script: str) -> PinnedScript:  # type: ignore[override]
        """Return a callable for a Lua script; nothing is sent to Redis yet."""
        return PinnedScript(self, script)

    def names(self, match: str | None, count: int) -> Iterator[str]:
        """Yield the names of all keys, or of those that match a pattern, as text. Raises redis-py's errors.

        ``count``: keys that Redis looks at in one step.
        """
        cursor = 0
        while True:
            answer: Any = self.scan(cursor, match=match, count=count)
            cursor, found = answer
            yield from (name.decode("utf-8", "surrogateescape") for name in found)
            if cursor == 0:
                return

    def peer_certificate(self) -> bytes:
        """Return the certificate (DER) that Redis shows on this connection; b"" without TLS. Raises redis-py's errors."""
        with self._one_at_a_time:
            connection = self._connection()
            if not getattr(connection, "is_connected", False):
                connection.connect()
            shown = getattr(connection._sock, "getpeercert", None)
            return (shown(True) if shown is not None else None) or b""

    def disconnect_idle(self) -> None:
        """Close the connections that are not in use; they are opened again when needed."""
        self.connection_pool.disconnect(inuse_connections=False)
        if not self._one_at_a_time.acquire(blocking=False):
            return
        try:
            if self._kept is not None and self._kept[0] == os.getpid():
                self._kept[1].disconnect()
        finally:
            self._one_at_a_time.release()

    def _connection(self) -> Any:
        process = os.getpid()
        if self._kept is None or self._kept[0] != process:
            self._kept = (process, self.connection_pool.get_connection())
        return self._kept[1]

    def _over(self, connection: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        command = packed(arguments)

        def exchange() -> Any:
            if command is None:
                connection.send_command(*arguments, **options)
            else:
                connection.send_packed_command((command,))
            return self.parse_response(connection, arguments[0], **options)  # type: ignore[no-untyped-call]

        # As redis-py's pool does. Only connect() asks the Sentinels for the current master.
        if not getattr(connection, "is_connected", False):
            connection.connect()
        try:
            return connection.retry.call_with_retry(exchange, lambda error: connection.disconnect())
        except redis.ResponseError:
            raise
        except BaseException:
            # After an interrupted exchange a late answer would be taken for the answer to the next command.
            connection.disconnect()
            raise


class PinnedScript:
    """A Lua script in Redis, called by its digest, or by its text if Redis does not know the digest."""

    def __init__(self, server: PinnedRedis, script: str) -> None:
        self._server = server
        self.script = script
        self.sha = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, keys: Sequence[str] = (), args: Iterable[Any] = ()) -> Any:
        """Run the Lua script with these keys and arguments and return its answer. Raises redis-py's errors."""
        given = (len(keys), *keys, *args)
        try:
            return self._server.execute_command("EVALSHA", self.sha, *given)
        except redis.NoScriptError:
            return self._server.execute_command("EVAL", self.script, *given)
