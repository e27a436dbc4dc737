"""The job cache: what was asked, of whom, and what came back. One round trip for a publish, one for a return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import redis

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.errors import JidTaken, StoreCorrupt

#: Jobs dropped from the time index in one go.
_EXPIRE_BATCH = 10_000

#: KEYS: request, load, job, job_minions, jobs, publications.
#: ARGV: jid, load JSON, ttl, now ms, request ttl, stream cap, user, fun, tgt, publication JSON, minions...
_PUBLISH = """
local seen = redis.call('GET', KEYS[1])
if seen then return {0, seen} end
if redis.call('EXISTS', KEYS[2]) == 1 then return {-1, ''} end
local ttl = tonumber(ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'EX', ttl)
local expected = 0
for i = 11, #ARGV, 1000 do
  expected = expected + redis.call('SADD', KEYS[4], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
redis.call('EXPIRE', KEYS[4], ttl)
redis.call('HSET', KEYS[3], 'created', ARGV[4], 'expected', expected, 'answered', 0, 'returned', 0, 'failed', 0,
           'user', ARGV[7], 'fun', ARGV[8], 'tgt', ARGV[9])
redis.call('EXPIRE', KEYS[3], ttl)
redis.call('ZADD', KEYS[5], ARGV[4], ARGV[1])
local id = redis.call('XADD', KEYS[6], 'MAXLEN', '~', ARGV[6], '*', 'load', ARGV[10])
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. id, 'EX', ARGV[5])
return {1, ARGV[1] .. ' ' .. id}
"""

#: KEYS: ret, job, job_minions, load, minions, jobs, last_jid (may be left out).
#: ARGV: minion, return JSON, jid, ttl, failed (0/1), now ms.
_RETURN = """
local first = redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
local known = redis.call('EXISTS', KEYS[4])
local ttl = tonumber(ARGV[4])
redis.call('EXPIRE', KEYS[1], ttl)
redis.call('SADD', KEYS[5], ARGV[1])
if KEYS[7] then redis.call('SET', KEYS[7], ARGV[3], 'EX', ttl) end
if first == 0 then
  redis.call('HINCRBY', KEYS[2], 'duplicates', 1)
  redis.call('EXPIRE', KEYS[2], ttl)
  return {0, known, 0}
end
redis.call('HINCRBY', KEYS[2], 'returned', 1)
redis.call('HINCRBY', KEYS[2], 'failed', ARGV[5])
redis.call('EXPIRE', KEYS[2], ttl)
if known == 0 then
  redis.call('ZADD', KEYS[6], 'NX', ARGV[6], ARGV[3])
  return {1, 0, 0}
end
if redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 0 then return {1, 1, 0} end
local complete = 0
if redis.call('HINCRBY', KEYS[2], 'answered', 1) == redis.call('SCARD', KEYS[3]) then
  complete = 1
  redis.call('HSETNX', KEYS[2], 'ended', ARGV[6])
end
return {1, 1, complete}
"""


@dataclass(frozen=True, slots=True)
class Published:
    """A recorded job."""

    jid: str
    stream_id: str
    #: False when the same request was answered before.
    created: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a return."""

    #: False for a duplicate, which changed nothing.
    first: bool
    #: False when no load is in the cache (expired, or never published here).
    known_job: bool
    #: Whether this return was the last one that was missing.
    complete: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A job with all that the cache holds of it."""

    jid: str
    load: dict[str, Any]
    expected: tuple[str, ...] = ()
    returns: dict[str, dict[str, Any]] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)


class Jobs:
    """Verbs on jobs. All raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._publish = client.redis.register_script(_PUBLISH)
        self._return = client.redis.register_script(_RETURN)

    def publish(
        self, load: Mapping[str, Any], expected: Sequence[str], *, request_id: str, ttl: int, now_ms: int
    ) -> Published:
        """Reserves the JID, records the job and appends it to the publications: all of it or nothing.

        The same ``request_id`` again gives the first answer. Raises JidTaken when another job has ``load["jid"]``.
        """
        jid = str(load["jid"])
        names = [
            keys.request(request_id),
            keys.load(jid),
            keys.job(jid),
            keys.job_minions(jid),
            keys.JOBS,
            keys.PUBLICATIONS,
        ]
        packed = values.dumps(load)
        arguments: list[str | int] = [
            jid,
            packed,
            ttl,
            now_ms,
            keys.REQUEST_TTL,
            keys.PUBLICATIONS_KEPT,
            str(load.get("user", "")),
        ]
        arguments += [
            _shown(load.get("fun")),
            _shown(load.get("tgt")),
            values.dumps({**load, "expected": list(expected)}),
        ]
        with self._client.calling():
            outcome, answer = self._publish(keys=names, args=[*arguments, *expected])
        if outcome < 0:
            raise JidTaken(f"a job with the JID {jid} exists already")
        jid, _, stream_id = text(answer).partition(" ")
        return Published(jid, stream_id, outcome == 1)

    def record_return(self, ret: Mapping[str, Any], *, ttl: int, now_ms: int = 0) -> Recorded:
        """Stores a minion's return, unless it has returned before. ``now_ms`` 0: the JID's own place in time is left alone."""
        jid, minion = str(ret["jid"]), str(ret["id"])
        names = [
            keys.ret(jid),
            keys.job(jid),
            keys.job_minions(jid),
            keys.load(jid),
            keys.MINIONS,
            keys.JOBS,
            *keys.last_jid(minion, _shown(ret.get("fun"))),
        ]
        arguments: list[str | int] = [minion, values.dumps(ret), jid, ttl, int(failed(ret)), now_ms or made_ms(jid)]
        with self._client.calling():
            first, known, complete = self._return(keys=names, args=arguments)
        return Recorded(bool(first), bool(known), bool(complete))

    def own_jid(self, minion: str, own_id: str, jid: str, *, ttl: int) -> str:
        """The JID of a job that a minion began itself and calls ``own_id``: this one, or the one that it got before."""
        name = keys.own_job(minion, own_id)
        while not self._client.call("set", name, jid, ex=ttl, nx=True):
            known = self._client.call("get", name)
            if known is not None:
                return text(known)
        return jid

    def store_external(self, jid: str, load: Mapping[str, Any], ret: Mapping[str, Any], *, ttl: int = 86400) -> None:
        """A job that was not published: one that a minion started itself."""
        minion = str(ret["id"])
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            pipe.set(keys.load(jid), values.dumps(load), ex=ttl)
            pipe.hset(keys.ret(jid), minion, values.dumps(ret))
            pipe.expire(keys.ret(jid), ttl)
            pipe.hset(
                keys.job(jid),
                mapping={
                    "created": made_ms(jid),
                    "expected": 1,
                    "answered": 1,
                    "returned": 1,
                    "failed": int(failed(ret)),
                },
            )
            pipe.expire(keys.job(jid), ttl)
            pipe.sadd(keys.job_minions(jid), minion)
            pipe.expire(keys.job_minions(jid), ttl)
            pipe.zadd(keys.JOBS, {jid: made_ms(jid)})
            pipe.execute()

    def load(self, jid: str) -> dict[str, Any] | None:
        """The load of a job."""
        data = self._client.call("get", keys.load(jid))
        return values.loads_map(data, keys.load(jid)) if data else None

    def returns(self, jid: str, minions: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """{minion: return}, of all or of these minions."""
        key = keys.ret(jid)
        if minions is None:
            found = {text(name): data for name, data in self._client.call("hgetall", key).items()}
        elif minions:
            found = dict(zip(minions, self._client.call("hmget", key, list(minions)), strict=True))
        else:
            found = {}
        return {name: values.loads_map(data, key) for name, data in found.items() if data is not None}

    def expected(self, jid: str) -> list[str]:
        """Minions that the job waits for, sorted."""
        return sorted(text(name) for name in self._client.call("smembers", keys.job_minions(jid)))

    def meta(self, jid: str) -> dict[str, str]:
        """Counters and times of a job."""
        return _texts(self._client.call("hgetall", keys.job(jid)))

    def missing(self, jid: str) -> list[str]:
        """Minions that the job still waits for, sorted."""
        job = self.job(jid)
        return [] if job is None else [name for name in job.expected if name not in job.returns]

    def job(self, jid: str) -> Job | None:
        """All that is known of a job, None when it is not in the cache."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.get(keys.load(jid))
            pipe.smembers(keys.job_minions(jid))
            pipe.hgetall(keys.ret(jid))
            pipe.hgetall(keys.job(jid))
            load, expected, returns, meta = pipe.execute()
        if load is None and not returns:
            return None
        return Job(
            jid,
            values.loads_map(load, keys.load(jid)) if load else {"jid": jid},
            tuple(sorted(text(name) for name in expected)),
            {text(name): values.loads_map(data, keys.ret(jid)) for name, data in returns.items()},
            _texts(meta),
        )

    def recent(self, limit: int, before_ms: int | None = None, *, skip: int = 0) -> list[Job]:
        """The newest jobs (older than ``before_ms``, without the first ``skip``), newest first: load and meta, no returns.

        Fewer than ``limit`` where the time of some is just over.
        """
        top = "+inf" if before_ms is None else f"({before_ms}"
        with self._client.calling() as server:
            jids = [text(jid) for jid in server.zrevrangebyscore(keys.JOBS, top, "-inf", start=skip, num=limit)]
            return self._jobs(server, jids)

    def described(self, jids: Sequence[str]) -> list[Job]:
        """These jobs as far as they are in the cache, in their order: load and meta, no returns."""
        with self._client.calling() as server:
            return self._jobs(server, jids)

    def count(self) -> int:
        """How many jobs there are."""
        return int(self._client.call("zcard", keys.JOBS))

    def active(self, since_ms: int, limit: int = 1000) -> list[Job]:
        """Jobs younger than ``since_ms`` that still wait for returns, newest first."""
        with self._client.calling() as server:
            jids = [text(jid) for jid in server.zrevrangebyscore(keys.JOBS, "+inf", since_ms, start=0, num=limit)]
            jobs = self._jobs(server, jids)
        return [job for job in jobs if _count(job, "answered") < _count(job, "expected")]

    def expire(self, now_ms: int, keep_seconds: int = 86400) -> int:
        """Drops jobs from the time index that are older than ``keep_seconds``; Redis dropped the rest. Returns how many."""
        with self._client.calling() as server:
            old = server.zrangebyscore(keys.JOBS, "-inf", now_ms - keep_seconds * 1000, start=0, num=_EXPIRE_BATCH)
            return int(server.zrem(keys.JOBS, *old)) if old else 0

    def _jobs(self, server: redis.Redis, jids: Sequence[str]) -> list[Job]:
        pipe = server.pipeline(transaction=False)
        for jid in jids:
            pipe.get(keys.load(jid))
            pipe.hgetall(keys.job(jid))
        answers = pipe.execute() if jids else []
        found = []
        for jid, load, meta in zip(jids, answers[::2], answers[1::2], strict=True):
            if load is not None:
                found.append(Job(jid, values.loads_map(load, keys.load(jid)), meta=_texts(meta)))
        return found


def _count(job: Job, name: str) -> int:
    try:
        return int(job.meta.get(name, 0))
    except ValueError as error:
        raise StoreCorrupt(keys.job(job.jid), f"{name} is no number: {job.meta[name]!r}") from error


def failed(ret: Mapping[str, Any]) -> bool:
    """Whether a return says that something failed."""
    retcode = ret.get("retcode", 0)
    codes: Iterable[Any] = retcode.values() if isinstance(retcode, Mapping) else [retcode]
    return ret.get("success") is False or any(code not in (0, None) for code in codes)


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def made_ms(jid: str) -> int:
    """When the job was made, milliseconds since 1970; 0 for a JID whose digits are no time."""
    try:
        return int(datetime.strptime(jid[:20], "%Y%m%d%H%M%S%f").replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0


def _texts(found: Mapping[Any, Any]) -> dict[str, str]:
    return {text(name): text(value) for name, value in found.items()}
