"""Finds jobs by a JobFilter, newest first, in pages. The smallest matching index is read; the other indexes confirm its
jobs.

An index is a sorted set of JIDs by milliseconds. The indexes of several values of one field are merged while they are
read, so the cost of a page depends on the page and not on the job cache. Globs of users and targets have no index; they
are compared with the loads.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import filter as matching
from typing import Any

from masterstore import keys
from masterstore import redis_parts as redis
from masterstore.client import Client, text
from masterstore.job_filter import JobFilter, is_glob, load_matches
from masterstore.jobs import Job, Jobs
from masterstore.life import Life
from masterstore.lives import jid_ms

#: JIDs that are read at once: the first time what a page needs, then more if few of them match, up to a limit that does not
#: block Redis.
_FEWEST, _GROWS, _MOST = 8, 4, 2000


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of a query's jobs with their loads and without returns, newest first."""

    jobs: list[Job]
    #: ``JobFilter.cursor`` of the page behind this one; empty when this is the last.
    cursor: str


class JobFinder:
    """Finds jobs in the job cache by a JobFilter. All operations raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client, jobs: Jobs) -> None:
        self._client = client
        self._jobs = jobs

    def page(self, wanted: JobFilter, *, meta: bool = False) -> JobPage:
        """Return the newest jobs that match the filter and come after its cursor: at most ``wanted.limit`` jobs, with
        their loads. ``meta``: also read the jobs' counters and times.
        """
        found: list[Job] = []
        with self._client.calling() as server:
            for jids in self._candidates(server, wanted):
                # One more than asked for tells whether there is another page.
                for job in self._jobs.described(jids, meta=meta):
                    if load_matches(job.load, wanted):
                        found.append(job)
                        if len(found) > wanted.limit:
                            return JobPage(found[: wanted.limit], found[wanted.limit - 1].jid)
        return JobPage(found, "")

    def pages(self, wanted: JobFilter, *, meta: bool = False) -> Iterator[JobPage]:
        """Yield all pages of jobs that match the filter; its ``limit`` is the size of a page."""
        cursor = wanted.cursor
        while True:
            page = self.page(replace(wanted, cursor=cursor), meta=meta)
            yield page
            if not page.cursor:
                return
            cursor = page.cursor

    def minions_among(self, jids: Sequence[str], minions: Sequence[str]) -> dict[str, tuple[frozenset[str], bool]]:
        """Return {JID: (those of ``minions`` from which the job expects returns, whether it expects no others)}, read in
        one round trip.
        """
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            for jid in jids:
                pipe.scard(keys.job_minions(jid))
                if minions:
                    pipe.smismember(keys.job_minions(jid), list(minions))
            answers = iter(pipe.execute())
        found: dict[str, tuple[frozenset[str], bool]] = {}
        for jid in jids:
            count = next(answers)
            held = next(answers) if minions else ()
            among = frozenset(name for name, there in zip(minions, held, strict=False) if there)
            found[jid] = among, len(among) == count
        return found

    def lives(self, jobs: Sequence[Job]) -> dict[str, dict[str, Life]]:
        """Map of JID to {minion id: Life}: the state of these jobs on each minion, read in one round trip.

        ``jobs`` must have been read with ``meta``.
        """
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            for job in jobs:
                pipe.smembers(keys.job_minions(job.jid))
                pipe.hgetall(keys.life(job.jid))
            answers = pipe.execute()
        found = {}
        for job, minions, written in zip(jobs, answers[::2], answers[1::2], strict=True):
            created = job.meta.get("created", "")
            born = int(created) if created.isdecimal() else jid_ms(job.jid)
            found[job.jid] = self._jobs.read_lives(job.jid, minions, written, born)
        return found

    def _candidates(self, server: redis.Redis, wanted: JobFilter) -> Iterator[list[str]]:

        fields = self._indexes(server, wanted)
        if any(not names for names in fields):
            return
        low = "-inf" if wanted.after_ms is None else str(wanted.after_ms)
        high = "+inf" if wanted.before_ms is None else f"({wanted.before_ms}"
        lead, others = self._smallest_first(server, fields, low, high)
        # Where several fields must hold, many of those that one has are not meant.
        size = min(max(wanted.limit + 1, _FEWEST) * (_GROWS**2 if others else 1), _MOST)
        start = self._cursor_position(server, wanted.cursor)
        for jids in _walk(server, lead, low, high, start, size):
            yield _of_minions(server, _held_by_all(server, jids, others), wanted.minions)

    def _indexes(self, server: redis.Redis, wanted: JobFilter) -> list[tuple[str, ...]]:
        """Return one tuple of Redis keys for each field of the filter that has indexes; a job must be in one index
        of each tuple.

        An empty tuple means that no job can match.
        """
        rows: list[tuple[str, ...]] = [
            (*(keys.index("minion", name) for name in wanted.minions), keys.WIDE_JOBS) if wanted.minions else (),
            () if wanted.success is None else (keys.index("result", "ok" if wanted.success else "failed"),),
            tuple(keys.index("state", name) for name in wanted.states),
        ]
        for kind, names in (("user", wanted.users), ("tgt", wanted.targets)):
            if not any(map(is_glob, names)):
                rows.append(tuple(keys.index(kind, name) for name in names))
        found = [row for row in rows if row]
        if wanted.functions:
            known = [name for name in wanted.functions if not is_glob(name)]
            if len(known) < len(wanted.functions):
                every = [text(name) for name in server.zrange(keys.FUNCTIONS, 0, -1)]
                known += [name for glob in wanted.functions if is_glob(glob) for name in matching(every, glob)]
            found.append(tuple(keys.index("fun", name) for name in dict.fromkeys(known)))
        return found

    def _smallest_first(
        self, server: redis.Redis, fields: list[tuple[str, ...]], low: str, high: str
    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        if len(fields) < 2:
            return (fields[0], []) if fields else ((keys.JOBS,), [])
        pipe = server.pipeline(transaction=False)
        for names in fields:
            for name in names:
                pipe.zcount(name, low, high)
        counts = iter(pipe.execute())
        sizes = [sum(next(counts) for _ in names) for names in fields]
        lead = sizes.index(min(sizes))
        return fields[lead], [names for at, names in enumerate(fields) if at != lead]

    def _cursor_position(self, server: redis.Redis, cursor: str) -> tuple[int, str] | None:

        if not cursor:
            return None
        score = server.zscore(keys.JOBS, cursor)
        return (jid_ms(cursor) if score is None else int(score), cursor)


def _walk(
    server: redis.Redis, names: Sequence[str], low: str, high: str, start: tuple[int, str] | None, size: int
) -> Iterator[list[str]]:

    # Of many indexes little is read at first: most of their entries are older than the page.
    first = size if len(names) == 1 else max(2 * size // len(names), _FEWEST)
    begin = [_Reading(server, name, low, high, start, first) for name in names]
    pipe = server.pipeline(transaction=False)
    for reading in begin:
        reading.ask(pipe)
    for reading, rows in zip(begin, pipe.execute(), strict=True):
        reading.rows = rows
    merged = heapq.merge(*(reading.entries() for reading in begin), reverse=True)
    piece: list[str] = []
    last = ""
    for entry in merged:
        if entry[1] != last:
            piece.append(entry[1])
        last = entry[1]
        if len(piece) == size:
            yield piece
            piece = []
            size = min(size * _GROWS, _MOST)
    if piece:
        yield piece


@dataclass
class _Reading:
    """A position in one index of jobs (a sorted set of JIDs), which is read in steps from its newest entry on."""

    server: redis.Redis
    name: str
    low: str
    high: str
    position: tuple[int, str] | None
    size: int
    #: What Redis answered last.
    rows: list[tuple[bytes, float]] = field(default_factory=list)
    _skip: int = 0

    def ask(self, server: redis.Redis) -> Any:
        """Return the next rows of this index of jobs as [(JID, milliseconds since 1970)], newest first. If ``server``
        is a pipeline, queue the query in it; the rows are then in the pipeline's result.
        """
        # The position itself is read again: other jobs may have been made within its millisecond.
        inside = self.position is not None and (self.high == "+inf" or self.position[0] < int(self.high[1:]))
        top = str(self.position[0]) if self.position is not None and inside else self.high
        return server.zrevrangebyscore(self.name, top, self.low, start=self._skip, num=self.size, withscores=True)

    def entries(self) -> Iterator[tuple[int, str]]:
        """Yield (milliseconds since 1970, JID) of the entries of this index of jobs, newest first."""
        while self.rows:
            entries = [(int(score), text(jid)) for jid, score in self.rows]
            fresh = [entry for entry in entries if self.position is None or entry < self.position]
            yield from fresh
            if len(entries) < self.size:
                return
            # Behind the last one; where all were before the position, behind them.
            self._skip = 0 if fresh else self._skip + self.size
            self.position = fresh[-1] if fresh else self.position
            self.size = min(self.size * _GROWS, _MOST)
            self.rows = self.ask(self.server)


def _held_by_all(server: redis.Redis, jids: list[str], fields: Sequence[Sequence[str]]) -> list[str]:

    names = [name for field in fields for name in field]
    if not names or not jids:
        return jids
    pipe = server.pipeline(transaction=False)
    for name in names:
        pipe.zmscore(name, jids)
    scores = dict(zip(names, pipe.execute(), strict=True))
    return [
        jid
        for at, jid in enumerate(jids)
        if all(any(scores[name][at] is not None for name in field) for field in fields)
    ]


def _of_minions(server: redis.Redis, jids: list[str], minions: Sequence[str]) -> list[str]:

    if not minions or not jids:
        return jids
    pipe = server.pipeline(transaction=False)
    for name in minions:
        pipe.zmscore(keys.index("minion", name), jids)
    scores = pipe.execute()
    narrow = {jid for at, jid in enumerate(jids) if any(score[at] is not None for score in scores)}
    wide = [jid for jid in jids if jid not in narrow]
    if wide:
        pipe = server.pipeline(transaction=False)
        for jid in wide:
            pipe.smismember(keys.job_minions(jid), list(minions))
        narrow.update(jid for jid, expected in zip(wide, pipe.execute(), strict=True) if any(expected))
    return [jid for jid in jids if jid in narrow]
