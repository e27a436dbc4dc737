"""Size of the job cache in bytes, counted by the hour of a job's creation, and eviction of the oldest jobs above a
budget.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from masterstore import job_scripts, keys, life_scripts
from masterstore.client import Client, text
from masterstore.errors import StoreUnavailable
from masterstore.life import INDEXED
from masterstore.lives import jid_ms

#: Jobs checked in one round, and rounds in one call; the next call checks the rest.
_BATCH, _GOES = 100, 50

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Evicted:
    """Number and total bytes of the jobs that were deleted from the job cache."""

    jobs: int
    bytes: int


class JobBudget:
    """Measures the size of the job cache and deletes the oldest jobs. All operations raise StoreUnavailable if Redis
    does not answer.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._evict = client.redis.register_script(life_scripts.EVICT)

    def bytes(self) -> int:
        """Return the total size in bytes of all jobs in the cache."""
        return sum(self._hours().values())

    def forget(self, now_ms: int, keep_seconds: int) -> int:
        """Remove the byte counts of those hours of job creation that ended more than ``keep_seconds`` ago: all jobs of
        these hours have expired.

        Return the number of removed hours.
        """
        oldest = (now_ms - keep_seconds * 1000) // _HOUR_MS
        over = [hour for hour in self._hours() if hour < oldest]
        return int(self._client.call("hdel", keys.JOB_BYTES, *map(str, over))) if over else 0

    def evict(self, budget: int) -> Evicted:
        """Delete the oldest jobs until the cache has at most ``budget`` bytes; return the numbers of deleted jobs
        and bytes.

        One call deletes a bounded number of jobs. Jobs that still expect returns or wait for minions are kept.
        """
        above = self.bytes() - budget
        jobs = freed = kept = 0
        for _ in range(_GOES):
            if freed >= above:
                break
            oldest = [
                (text(row[0]), int(row[1]))
                for row in self._client.call("zrange", keys.JOBS, kept, kept + _BATCH - 1, withscores=True)
            ]
            if not oldest:
                break
            running = self._client.call("zmscore", keys.index("state", "running"), [jid for jid, _ in oldest])
            for (jid, made), runs in zip(oldest, running, strict=True):
                if freed >= above:
                    break
                if runs is not None:
                    kept += 1
                else:
                    jobs, freed = jobs + 1, freed + self.drop(jid, made)
        return Evicted(jobs, freed)

    def drop_ended(self, before_ms: int) -> Evicted:
        """Delete the jobs that ended before ``before_ms`` (milliseconds since 1970); return the numbers of deleted
        jobs and bytes.

        One call deletes a bounded number of jobs, oldest first. A job without expected minions counts as ended
        when it was created.
        """
        jobs = freed = kept = 0
        for _ in range(_GOES):
            names = self._client.call(
                "zrangebyscore", keys.JOBS, "-inf", before_ms, start=kept, num=_BATCH, withscores=True
            )
            if not names:
                break
            oldest = [(text(jid), int(made)) for jid, made in names]
            running = self._client.call("zmscore", keys.index("state", "running"), [jid for jid, _ in oldest])
            with self._client.calling() as server:
                pipe = server.pipeline(transaction=False)
                for jid, _ in oldest:
                    pipe.hget(keys.job(jid), "ended")
                ends = pipe.execute(raise_on_error=False)
            for (jid, made), runs, ended in zip(oldest, running, ends, strict=True):
                if runs is not None or _whole(ended) >= before_ms:
                    kept += 1
                else:
                    jobs, freed = jobs + 1, freed + self.drop(jid, made)
        return Evicted(jobs, freed)

    def drop(self, jid: str, created_ms: int = 0) -> int:
        """Delete a job with all its Redis keys and index entries. Return the number of bytes that it used.

        ``created_ms``: time of its creation, milliseconds since 1970; 0: the time in the JID.
        """
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.hmget(keys.job(jid), "fun", "user", "tgt")
            pipe.scard(keys.job_minions(jid))
            pipe.hkeys(keys.ret(jid))
            named, size, returned = pipe.execute(raise_on_error=False)
            expected = (
                server.smembers(keys.job_minions(jid)) if isinstance(size, int) and size <= job_scripts.WIDE else ()
            )
        fun, user, tgt = (text(value or "") for value in (named if isinstance(named, list) else [None] * 3))
        minions = {*expected, *(returned if isinstance(returned, list) and len(returned) <= job_scripts.WIDE else ())}
        whole = [keys.job(jid), keys.load(jid), keys.ret(jid), keys.job_minions(jid), keys.life(jid)]
        if not self._client.in_cluster:
            whole.append(keys.large(jid))
        names = [*whole, *_indexes(fun, user, tgt), *(keys.index("minion", text(minion)) for minion in minions)]
        hour = (created_ms or jid_ms(jid)) // _HOUR_MS
        with self._client.calling():
            faults, freed = self._evict(keys=names, args=[jid, hour, len(whole)])
        self._client.faults.of_script(faults)
        if self._client.in_cluster:
            # Its node may be away. The key ends by itself.
            with contextlib.suppress(StoreUnavailable):
                self._client.call("delete", keys.large(jid))
        return int(freed)

    def _hours(self) -> dict[int, int]:
        hours: dict[int, int] = {}
        for hour, size in self._client.call("hgetall", keys.JOB_BYTES).items():
            try:
                hours[int(hour)] = int(size)
            except ValueError:
                self._client.faults.report(keys.JOB_BYTES, f"not an hour and its bytes: {text(hour)!r}: {text(size)!r}")
        return hours


def _whole(value: object) -> int:

    digits = text(value) if isinstance(value, bytes | str) else ""
    return int(digits) if digits.isdecimal() else 0


def _indexes(fun: str, user: str, tgt: str) -> Sequence[str]:
    """Return the Redis keys of all indexes that may contain a job of this function, user and target.

    The indexes of the job's minions are left out.
    """
    states = ("running", "late", *(state.value for state in INDEXED))
    return [
        *(keys.JOBS, keys.WIDE_JOBS, keys.DUE, keys.WAITING, keys.index("user", user), keys.index("tgt", tgt)),
        *(keys.index("fun", name) for name in fun.split(",")),
        *(keys.index("state", state) for state in states),
        *(keys.index("result", result) for result in ("ok", "failed")),
    ]
