"""The connection to Redis: lazily made, safe after a fork, with one kind of error for "not there"."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from masterstore.errors import StoreError, StoreUnavailable

#: Redis is there but cannot serve now; the caller waits and tries again, as with a lost connection.
_PASSING = ("LOADING", "READONLY", "MASTERDOWN", "OOM", "MISCONF", "TRYAGAIN", "CLUSTERDOWN")

#: What stands before a password in a URL, and the password: ``user:PASSWORD@host`` or ``?password=PASSWORD``.
_PASSWORDS = re.compile(r"((?<=//)[^:/@]*:|[?&]password=)(?:(?<=:)[^/]*(?=@)|(?<==)[^&]*)")


class Client:
    """One Redis behind a URL."""

    def __init__(self, url: str, *, timeout: float, client_name: str) -> None:
        """``timeout``: seconds for connecting and for each answer. Raises StoreError for a URL that cannot be read."""
        self.timeout = timeout
        #: The URL without its passwords.
        self.shown = _PASSWORDS.sub(r"\1***", url)
        try:
            # No hidden retries but one on a connection that Redis closed in the meantime: the caller decides about waiting.
            # A timeout is not retried: the command may have been done, and the deadline is over.
            self.redis: redis.Redis = redis.Redis.from_url(
                url,
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
                client_name=client_name,
                retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
                retry_on_error=[redis.ConnectionError],
                protocol=2,
                # As ``text`` reads: a name that another hand wrote can be asked for again.
                encoding_errors="surrogateescape",
                health_check_interval=30,
            )
        except ValueError as error:
            raise StoreError(f"redis_url {self.shown}: {error}; write redis://HOST:PORT/DB") from error

    @contextlib.contextmanager
    def calling(self) -> Iterator[redis.Redis]:
        """Redis for one call; its failures come out as StoreUnavailable."""
        try:
            yield self.redis
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            raise StoreUnavailable(f"redis at {self.shown} does not answer: {error}") from error
        except redis.ResponseError as error:
            if str(error).startswith(_PASSING):
                raise StoreUnavailable(f"redis at {self.shown} cannot serve now: {error}") from error
            raise StoreError(f"redis at {self.shown} refused: {error}") from error
        except redis.RedisError as error:
            raise StoreError(f"redis at {self.shown} does not speak as Redis does: {error}") from error

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """One command. Raises StoreUnavailable, StoreError."""
        with self.calling() as server:
            return getattr(server, verb)(*arguments, **options)


def text(value: Any) -> str:
    """A text that Redis gave as bytes."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
