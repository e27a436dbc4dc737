"""Connection to Redis: made when first used, safe after a fork, with StoreUnavailable as the error for an absent
Redis.

The Redis is one server, the one that Sentinels name, or a Redis Cluster (``cluster.ClusterRedis``).

With Sentinels, every new connection asks them for the current master. A Redis that has become a replica loses its
connections, so that the next command finds the new master. A failed command is not repeated automatically: the caller
decides whether to wait and repeat it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from masterstore import redis_parts as redis
from masterstore.address import IN_FILE, cluster_of, login_of, read_url, sentinels_of, without_login, without_passwords
from masterstore.cluster import HANGS_FOR, Address, ClusterRedis
from masterstore.cluster_keys import plain_name
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.pinned_connection import PinnedRedis

#: Error codes of a Redis that cannot serve at the moment; the caller waits and repeats, as with a lost connection.
_PASSING = frozenset(
    {
        *("LOADING", "READONLY", "MASTERDOWN", "NOREPLICAS", "OOM", "MISCONF", "BUSY", "TRYAGAIN", "CLUSTERDOWN"),
        # The slot of the keys moves to another node of a Redis Cluster.
        *("ASK", "MOVED"),
        # Redis ended the wait of a reader, because it becomes a replica.
        "UNBLOCKED",
    }
)

#: The code of an error; Redis 6 quotes the error of a script inside a sentence (``... user_script: 3: -OOM command ...``).
_CODE = re.compile(r"(?:^|: -)([A-Z]+)\b")

#: Seconds to wait for one Sentinel, or for a node of a Redis Cluster that is asked who serves which slots.
_SENTINEL_PATIENCE = 0.5


class Client:
    """Connection of this process to the Redis server, the Sentinels or the Redis Cluster of a URL."""

    def __init__(self, url: str, *, timeout: float, client_name: str) -> None:
        """Prepare the connection; nothing is sent yet. Raises StoreError for a malformed URL.

        ``timeout``: seconds for connecting and for each answer. ``client_name``: the name that Redis shows for the
        connection.
        """
        self.timeout = timeout
        #: Until when commands fail at once, by the monotonic clock; and the error of the timeout.
        self._hangs_until = 0.0
        self._hang = ""
        self.faults = Faults()
        #: The URL without its passwords; the path, until the file can be read.
        self.shown = without_passwords(url)
        # No hidden retries but one on a connection that Redis closed in the meantime: the caller decides about waiting.
        # A timeout is not retried: the command may have been done, and the deadline is over.
        options: dict[str, Any] = {
            "socket_timeout": timeout,
            "socket_connect_timeout": timeout,
            "client_name": client_name,
            # The name says enough; CLIENT SETINFO would be two more commands for each connection, which old servers refuse.
            "driver_info": None,
            "retry": redis.Retry(redis.NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
            "retry_on_error": [redis.ConnectionError],
            "protocol": 2,
            # The same decoding as ``text``: a key name that is not UTF-8 can be sent back unchanged.
            "encoding_errors": "surrogateescape",
            "health_check_interval": 30,
        }
        try:
            found = read_url(url)
            self.shown = without_passwords(found)
            if url.startswith(IN_FILE) and login_of(found):
                options["credential_provider"] = _Login(url, login_of(found))
                found = without_login(found)
            self.redis: PinnedRedis = _connected(found, options)
        except ValueError as error:
            hint = "" if "write " in str(error) else "; write redis://HOST:PORT/DB"
            raise StoreError(f"redis_url {self.shown}: {error}{hint}") from error

    @contextlib.contextmanager
    def calling(self) -> Iterator[redis.Redis]:
        """Yield redis-py's client for the ``with`` block. Errors of redis-py in the block become StoreUnavailable or StoreError.

        For a moment after a timeout StoreUnavailable is raised at once, so that many requests do not wait one after the other.
        """
        if self._hangs_until and time.monotonic() < self._hangs_until:
            raise StoreUnavailable(self._hang)
        try:
            yield self.redis
        except redis.TimeoutError as error:
            self._hang = f"redis at {self.shown} does not answer: {error}"
            # A Redis Cluster knows which of its nodes hangs.
            self._hangs_until = 0.0 if self.in_cluster else time.monotonic() + HANGS_FOR
            raise StoreUnavailable(self._hang) from error
        except (redis.ConnectionError, OSError) as error:
            raise StoreUnavailable(f"redis at {self.shown} does not answer: {error}") from error
        except redis.ResponseError as error:
            code = _code_of(error)
            if code in ("READONLY", "UNBLOCKED"):
                # This Redis is no longer the master. A new connection resolves the name, or asks the Sentinels, again.
                self.redis.disconnect_idle()
            if code in _PASSING:
                raise StoreUnavailable(f"redis at {self.shown} cannot serve now: {_said(error, code)}") from error
            hint = "; `saltern store check` names the key" if "WRONGTYPE" in str(error) else ""
            raise StoreError(f"redis at {self.shown} refused: {_said(error, code)}{hint}") from error
        except redis.RedisError as error:
            raise StoreError(f"redis at {self.shown} does not speak as Redis does: {error}") from error

    @property
    def in_cluster(self) -> bool:
        """Whether this is a Redis Cluster, where large values are in other slots than the keys that scripts change."""
        return isinstance(self.redis, ClusterRedis)

    def names(self, match: str | None, count: int) -> Iterator[str]:
        """Yield the names of all keys in Redis, or of those that match a pattern. Raises StoreUnavailable, StoreError.

        ``count``: keys that Redis looks at in one step.
        """
        with self.calling():
            yield from self.redis.names(match, count)

    def peer_certificate(self) -> bytes:
        """Return the certificate (DER) that Redis shows; b"" without TLS. Raises StoreUnavailable, StoreError."""
        with self.calling():
            return self.redis.peer_certificate()

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """Send one Redis command (a method of redis-py's client) and return its answer. Raises StoreUnavailable,
        StoreError.
        """
        with self.calling() as server:
            return getattr(server, verb)(*arguments, **options)


def _code_of(error: redis.ResponseError) -> str:

    codes = _CODE.findall(str(error))
    cut: str | None = getattr(error, "status_code", None)
    return next((code for code in codes if code in _PASSING), cut or (codes[0] if codes else ""))


def _said(error: redis.ResponseError, code: str) -> str:
    return str(error) if code in str(error) else f"{code} {error}"


class _Login:
    """User and password for each new Redis connection, read again from the file that holds the URL.

    It is a ``CredentialProvider`` of redis-py. If the file is unreadable or has no password, the last ones are used.
    """

    def __init__(self, address: str, first: tuple[str, ...]) -> None:
        self._address, self._last = address, first

    def get_credentials(self) -> tuple[str, ...]:
        """Return (user, password), or (password,) without a user, as redis-py expects."""
        with contextlib.suppress(ValueError):
            self._last = login_of(read_url(self._address)) or self._last
        return self._last

    async def get_credentials_async(self) -> tuple[str, ...]:
        """Return the same as ``get_credentials``."""
        return self.get_credentials()


class _Sentinels(redis.Sentinel):
    """Client of all Sentinels of a URL. It asks them one after the other, beginning with the one that answered last
    time, and collects for the error message why each of them named no master.
    """

    def discover_master(self, service_name: str) -> tuple[str, int]:
        """Return (address, port) of the current master. Raises redis.ConnectionError."""
        faults = []
        for number, sentinel in enumerate(self.sentinels):
            there = sentinel.connection_pool.connection_kwargs
            try:
                masters: Any = sentinel.sentinel_masters()
            except (redis.RedisError, OSError) as error:
                faults.append(f"{there['host']}:{there['port']}: {error}")
                continue
            state = masters.get(service_name)
            if state and self.check_master_state(state, service_name):  # type: ignore[no-untyped-call]
                self.sentinels[0], self.sentinels[number] = sentinel, self.sentinels[0]
                return str(state["ip"]), int(state["port"])
            why = f"'{service_name}' is down" if state else f"there is no '{service_name}'"
            faults.append(f"{there['host']}:{there['port']}: {why}")
        raise redis.ConnectionError(f"no Sentinel names a master ({'; '.join(faults)})")


class _Managed(redis.SentinelManagedConnection):
    """A connection to the Redis master that the Sentinels name. After a timeout it is closed; redis-py would leave it open.

    A late answer on an open connection would be taken for the answer to the next command.
    """

    def read_response(self, *arguments: Any, disconnect_on_error: bool | None = True, **options: Any) -> Any:
        return super().read_response(*arguments, disconnect_on_error=disconnect_on_error, **options)


class _ManagedTls(_Managed, redis.SSLConnection):
    """A TLS connection to the Redis master that the Sentinels name."""


def _connected(url: str, options: dict[str, Any]) -> PinnedRedis:
    """Return a redis-py client for a URL of a server, of Sentinels or of a Redis Cluster. It connects at its first
    command. Raises ValueError.
    """
    nodes = cluster_of(url)
    if nodes is not None:
        return _cluster(nodes.hosts, {**nodes.redis, **options})
    found = sentinels_of(url)
    if found is None:
        plain: PinnedRedis = PinnedRedis.from_url(url, **options)  # type: ignore[assignment]
        return plain
    patience = min(_SENTINEL_PATIENCE, options["socket_timeout"])
    to_sentinels = {
        **found.sentinel,
        "socket_timeout": patience,
        "socket_connect_timeout": patience,
        "protocol": 2,
        "retry": redis.Retry(redis.NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    }
    asked = _Sentinels(  # type: ignore[no-untyped-call]
        list(found.hosts), sentinel_kwargs=to_sentinels, **found.redis, **options
    )
    kind = _ManagedTls if found.redis.get("ssl") else _Managed
    server: PinnedRedis = asked.master_for(  # type: ignore[no-untyped-call]
        found.service, redis_class=PinnedRedis, connection_class=kind
    )
    return server


def _cluster(seeds: Sequence[Address], options: dict[str, Any]) -> ClusterRedis:
    patience = min(_SENTINEL_PATIENCE, options["socket_timeout"])
    briefly = {**options, "socket_timeout": patience, "socket_connect_timeout": patience}
    return ClusterRedis(
        seeds,
        lambda address: PinnedRedis(host=address[0], port=address[1], **options),
        lambda address: redis.Redis(host=address[0], port=address[1], **briefly),
    )


def text(value: Any) -> str:
    """Return bytes from Redis as text. Bytes that are not UTF-8 can be sent back unchanged."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


#: Most faulty keys that are remembered, so that each is reported once.
_REMEMBERED = 1000


class Faults:
    """Counts malformed data in Redis that was skipped (faults), and has each faulty Redis key logged once."""

    def __init__(self) -> None:
        #: Number of skipped data so far.
        self.total = 0
        #: Map of the last faulty keys to the reason.
        self.known: dict[str, str] = {}
        #: Called with (key, reason) when a faulty key is found for the first time.
        self.tell: Callable[[str, str], None] = _nobody
        #: Called each time.
        self.count: Callable[[], None] = _nothing

    def report(self, key: str, why: str) -> None:
        """Count malformed data of the Redis key ``key`` that was skipped for the reason ``why``.

        If the key was not reported before, also call ``tell(key, why)``; a role sets ``tell`` to write a log
        line.
        """
        self.total += 1
        self.count()
        if key not in self.known:
            if len(self.known) >= _REMEMBERED:
                self.known.pop(next(iter(self.known)))
            self.known[key] = why
            self.tell(key, why)

    def of_script(self, names: Iterable[bytes]) -> None:
        """Report to ``report`` each of these Redis keys, which a Lua script skipped because of malformed data."""
        for name in names:
            self.report(plain_name(text(name)), "another type than the store writes there, or no number in it")


def _nobody(key: str, why: str) -> None:
    """Default of the field ``Faults.tell``: do not log the malformed Redis key."""


def _nothing() -> None:
    """Default of the field ``Faults.count``: do not count the malformed Redis key."""
