"""Finding jobs, newest first and page by page: the smallest index that a filter names leads, the others say yes or no.

An index is a zset of JIDs by milliseconds. Several values of one field are the union of their indexes: they are walked together
like one, so a page costs what it holds and not what the job cache holds. Globs of users and targets have no index; jobs that an
index leads to are compared with them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import filter as matching

import redis

from masterstore import keys
from masterstore.client import Client, text
from masterstore.job_filter import JobFilter, is_glob, load_matches
from masterstore.jobs import Job, Jobs
from masterstore.lives import made_ms

#: JIDs that are read at once: a page of the usual size in one go, and never so many that Redis keeps others waiting.
_FEWEST, _MOST = 64, 1000


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs with load and meta, no returns, newest first."""

    jobs: list[Job]
    #: ``JobFilter.cursor`` of the page behind this one; empty when this is the last.
    cursor: str


class JobFinder:
    """Pages of jobs. All verbs raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client, jobs: Jobs) -> None:
        self._client = client
        self._jobs = jobs

    def page(self, wanted: JobFilter) -> JobPage:
        """The newest jobs behind the cursor that the filter means, at most ``limit``."""
        found: list[Job] = []
        with self._client.calling() as server:
            for jids in self._candidates(server, wanted):
                # One more than asked for tells whether there is another page.
                for job in self._jobs.described(jids):
                    if load_matches(job.load, wanted):
                        found.append(job)
                        if len(found) > wanted.limit:
                            return JobPage(found[: wanted.limit], found[wanted.limit - 1].jid)
        return JobPage(found, "")

    def pages(self, wanted: JobFilter) -> Iterator[JobPage]:
        """Every page from here on; ``limit`` is the size of each."""
        cursor = wanted.cursor
        while True:
            page = self.page(replace(wanted, cursor=cursor))
            yield page
            if not page.cursor:
                return
            cursor = page.cursor

    def _candidates(self, server: redis.Redis, wanted: JobFilter) -> Iterator[list[str]]:
        """JIDs that every index holds, newest first, in pieces."""
        fields = self._indexes(server, wanted)
        if any(not names for names in fields):
            return
        low = "-inf" if wanted.after_ms is None else str(wanted.after_ms)
        high = "+inf" if wanted.before_ms is None else f"({wanted.before_ms}"
        lead, others = self._smallest_first(server, fields, low, high)
        size = min(max(wanted.limit + 1, _FEWEST), _MOST)
        start = self._place(server, wanted.cursor)
        for jids in _walk(server, lead, low, high, start, size):
            yield _of_minions(server, _held_by_all(server, jids, others), wanted.minions)

    def _indexes(self, server: redis.Redis, wanted: JobFilter) -> list[tuple[str, ...]]:
        """The indexes of each field that has any; an empty row: a field that nothing can match."""
        rows: list[tuple[str, ...]] = [
            (*(keys.index("minion", name) for name in wanted.minions), keys.WIDE_JOBS) if wanted.minions else (),
            tuple(keys.index("result", name) for name in wanted.results),
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
        return fields[lead], [names for place, names in enumerate(fields) if place != lead]

    def _place(self, server: redis.Redis, cursor: str) -> tuple[int, str] | None:
        """Where in time the cursor's job stands, though it may have expired since."""
        if not cursor:
            return None
        score = server.zscore(keys.JOBS, cursor)
        return (made_ms(cursor) if score is None else int(score), cursor)


def _walk(
    server: redis.Redis, names: Sequence[str], low: str, high: str, start: tuple[int, str] | None, size: int
) -> Iterator[list[str]]:
    """JIDs of the union of these indexes, newest first, each once, behind ``start``, in pieces of at most ``size``."""
    if len(names) == 1:
        merged: Iterator[tuple[int, str]] = _entries(server, names[0], low, high, start, size)
    else:
        # Of many indexes little is read at first: most of their entries are older than the page.
        piece = max(size // len(names), 16)
        merged = heapq.merge(*(_entries(server, name, low, high, start, piece) for name in names), reverse=True)
    piece_of: list[str] = []
    last = ""
    for entry in merged:
        if entry[1] != last:
            piece_of.append(entry[1])
        last = entry[1]
        if len(piece_of) == size:
            yield piece_of
            piece_of = []
    if piece_of:
        yield piece_of


def _entries(
    server: redis.Redis, name: str, low: str, high: str, start: tuple[int, str] | None, size: int
) -> Iterator[tuple[int, str]]:
    """(milliseconds, JID) of one index, newest first, behind ``start``."""
    place = start
    while True:
        # The place itself is read again: other jobs may have been made within its millisecond.
        inside = place is not None and (high == "+inf" or place[0] < int(high[1:]))
        top, skip = (str(place[0]) if place is not None and inside else high), 0
        fresh: list[tuple[int, str]] = []
        while not fresh:
            rows = server.zrevrangebyscore(name, top, low, start=skip, num=size, withscores=True)
            if not rows:
                return
            entries = [(int(row[1]), text(row[0])) for row in rows]
            fresh = entries if place is None else [entry for entry in entries if entry < place]
            skip += size
        yield from fresh
        place = fresh[-1]


def _held_by_all(server: redis.Redis, jids: list[str], fields: Sequence[Sequence[str]]) -> list[str]:
    """Those of the JIDs that each field has in one of its indexes, in their order."""
    names = [name for field in fields for name in field]
    if not names or not jids:
        return jids
    pipe = server.pipeline(transaction=False)
    for name in names:
        pipe.zmscore(name, jids)
    scores = dict(zip(names, pipe.execute(), strict=True))
    return [
        jid
        for place, jid in enumerate(jids)
        if all(any(scores[name][place] is not None for name in field) for field in fields)
    ]


def _of_minions(server: redis.Redis, jids: list[str], minions: Sequence[str]) -> list[str]:
    """Those of the JIDs that are for one of the minions: wide jobs are for many, not for all."""
    if not minions or not jids:
        return jids
    pipe = server.pipeline(transaction=False)
    for name in minions:
        pipe.zmscore(keys.index("minion", name), jids)
    for jid in jids:
        pipe.smismember(keys.job_minions(jid), list(minions))
    answers = pipe.execute()
    scores, expected = answers[: len(minions)], answers[len(minions) :]
    return [
        jid
        for place, jid in enumerate(jids)
        if any(expected[place]) or any(score[place] is not None for score in scores)
    ]
