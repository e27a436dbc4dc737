# ruff: noqa: E501 - a row of the table is read as a row
"""Names of all Redis keys. No other module spells a key; docs/redis.md is generated from this table.

``load:``, ``ret:``, ``<minion>:<fun>`` and ``minions`` are the keys of Salt's Redis returner, so that tools for it go
on working. All other keys begin with ``salt:``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Seconds for which the answer to a request id is kept; no client repeats a request for longer.
REQUEST_TTL = 600

#: Publications that the stream keeps: about a day with one job a second.
PUBLICATIONS_KEPT = 100_000

#: Version of this table; raised when the form of a key changes.
SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class KeySpec:
    """A row of KEYS: type, content, writers and readers of a key, and what limits its size."""

    name: str
    pattern: str
    type: str
    ttl: str
    writers: str
    readers: str
    bounded: str
    meaning: str


KEYS: tuple[KeySpec, ...] = (
    KeySpec("load", "load:<jid>", "string", "keep_jobs_seconds", "mworker", "mworker, runners, tools", "TTL", "JSON of a job's load (Salt's returner)"),
    KeySpec("ret", "ret:<jid>", "hash", "keep_jobs_seconds", "mworker", "mworker, runners, tools", "TTL", "minion -> JSON of its return, first one wins (Salt's returner)"),
    KeySpec("large", "salt:large:<jid>", "hash", "keep_jobs_seconds", "mworker", "mworker, runners", "TTL", "minion -> zlib of the JSON of a return above compress_return_bytes; that in ret:<jid> has __large__, its bytes, and no more than a sentence as return"),
    KeySpec("last_jid", "<minion>:<fun>", "string", "keep_jobs_seconds", "mworker", "tools", "TTL", "last JID of a function on a minion (Salt's returner)"),
    KeySpec("minions", "minions", "set", "none: one entry a minion", "mworker", "tools", "the number of minions", "every minion that ever returned (Salt's returner)"),
    KeySpec("jobs", "salt:jobs", "zset", "keep_jobs_seconds", "mworker", "mworker, runners", "writes take old ones off its head; maintenance trims", "jid by milliseconds of its creation"),
    KeySpec("wide_jobs", "salt:jobs:wide", "zset", "keep_jobs_seconds", "mworker", "mworker, runners", "writes trim its head, and TTL", "the same, of jobs for more minions than go into an index each"),
    KeySpec("due_jobs", "salt:jobs:due", "zset", "keep_jobs_seconds", "mworker, maintenance", "maintenance", "writes trim its head, and TTL; maintenance takes out jobs that nobody is waited for in", "jid by milliseconds at which maintenance looks who has not signed"),
    KeySpec("job_bytes", "salt:jobs:bytes", "hash", "none: one number an hour", "mworker, maintenance", "maintenance", "maintenance drops hours older than keep_jobs_seconds", "hour since 1970 -> bytes of loads and returns of the jobs created in it"),
    KeySpec("job", "salt:job:<jid>", "hash", "keep_jobs_seconds", "mworker", "runners", "TTL", "created, ended, expected, answered (of the expected), returned, failed, duplicates, late, user, fun, tgt, bytes; replay_until, when_back_until; how many minions are delivered, started, offline, lost, cancelled, expired; of a runner where it works"),
    KeySpec("job_minions", "salt:job:<jid>:minions", "set", "keep_jobs_seconds", "mworker", "runners", "TTL", "minions expected to return"),
    KeySpec("index", "salt:idx:<kind>:<value>", "zset", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners", "writes trim its head, and TTL", "jid by milliseconds of its creation, of jobs that have something in common: kind is minion (jobs for many are in salt:jobs:wide), fun, user, tgt, result (ok: all returned and none failed; failed: some return says so) or state (running: somebody is waited for; offline, lost, cancelled, expired: some minion is; late: some return was). A value longer than 128 bytes is its hash"),
    KeySpec("functions", "salt:idx:funs", "zset", "keep_jobs_seconds", "mworker", "runners", "writes trim its head, and TTL", "functions that have an index, by milliseconds of their last job"),
    KeySpec("life", "salt:job:<jid>:life", "hash", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners", "TTL", "minion -> its steps, each a letter and milliseconds since the time in the JID (offline, delivered, started, returned, lost, cancelled, x: expired, e: sent again); none yet: expected"),
    KeySpec("waiting", "salt:waiting", "zset", "that of the job", "mworker, maintenance", "mworker, runners", "writes trim its head, and TTL", "jid by milliseconds of its deadline: jobs that wait for minions to come back"),
    KeySpec("waiting_of", "salt:waiting:<minion>", "zset", "that of the job", "mworker, maintenance", "mworker", "writes trim its head, and TTL", "the same, of one minion"),
    KeySpec("signers", "salt:signers", "set", "none: one entry a minion", "mworker", "mworker, maintenance", "the number of minions", "minions that sign what becomes of their jobs: silence of the others says nothing"),
    KeySpec("request", "salt:request:<id>", "string", f"{REQUEST_TTL} s", "mworker", "mworker", "TTL", "jid and stream id that a publish with this request id got; of a runner the jid"),
    KeySpec("runners", "salt:runners", "zset", "none: an entry ends with its runner", "mworker", "mworker, maintenance", "maintenance ends runners that give no sign of life", "JIDs of runners that work by milliseconds of their last sign of life"),
    KeySpec("orders", "salt:orders:<jid>", "hash", "keep_jobs_seconds", "mworker", "mworker", "TTL", "what an orchestration is told: ID of a state, or __all__ -> JSON (kill, duration)"),
    KeySpec("own_job", "salt:own:<minion>:<id>", "string", "keep_jobs_seconds", "mworker", "mworker", "TTL", "JID that a return got of a job that the minion began itself, by the minion's own id of it"),
    KeySpec("publications", "salt:publications", "stream", "none: capped", "mworker", "publisher", f"about {PUBLICATIONS_KEPT} entries (MAXLEN ~)", "jobs to be sent to minions"),
    KeySpec("cursors", "salt:publisher:cursors", "hash", "none: one entry a publisher", "publisher", "publisher", "publishers take out those of whom nothing was heard for an hour", "publisher -> stream id of what it sent last; *: any of them"),
    KeySpec("publisher_signs", "salt:publisher:signs", "hash", "none: one entry a publisher", "publisher", "publisher", "publishers take out those of whom nothing was heard for an hour", "publisher -> milliseconds of its last sign of life"),
    KeySpec("events", "salt:events", "stream", "none: capped", "mworker, maintenance", "reactor", "about events_kept_count entries (MAXLEN ~)", "events whose tags somebody wants to read later: number, and tag and data as on the bus; that of a result comes in one step with it"),
    KeySpec("stock_sign_ins", "salt:stock:sign-ins", "zset", "a minute", "mworker", "publisher", "TTL, and later ones take out those before the last minute", "stock minions by the time of their last sign-in (milliseconds of Redis' clock): what they ran before it they may have forgotten"),
    KeySpec("events_count", "salt:events:count", "string", "none: one number", "mworker, maintenance", "reactor", "one number", "number of the newest event of the stream"),
    KeySpec("events_wanted", "salt:events:wanted", "hash", "none: one entry a reader", "reactor", "mworker, maintenance", "the number of readers; what is a day old counts no more", "reader -> JSON of the tag globs that it wants, and when it said so"),
    KeySpec("event_group", "salt:events:group:<group>", "hash", "none: four fields", "reactor", "reactor, runners", "the number of groups", "last number that a group had, how many it missed, what its readers share (the reactor: its table) and the version of that"),
    KeySpec("event_readers", "salt:events:readers:<group>", "zset", "none: who is silent is taken out", "reactor", "reactor", "the number of readers", "readers of a group by milliseconds of their last sign of life"),
    KeySpec("dead_events", "salt:events:dead:<group>", "stream", "none: capped", "reactor", "runners", "about 1000 entries (MAXLEN ~)", "events that a group tried in vain, and why"),
    KeySpec("minion_keys", "salt:keys:<state>", "hash", "none: the keys themselves", "mworker", "mworker, maintenance", "the number of minions; pending ones by max_pending_keys", "minion -> PEM, by state (accepted, pending, rejected, denied)"),
    KeySpec("keys_version", "salt:keys:version", "string", "none: one number", "mworker", "mworker", "one number", "counts changes of minion keys, so that workers know when to read again"),
    KeySpec("grains", "salt:grains", "hash", "none: one entry a minion", "mworker", "mworker, runners", "the number of minions", "minion -> msgpack of its grains"),
    KeySpec("pillar", "salt:pillar", "hash", "none: one entry a minion", "mworker", "mworker", "the number of minions", "minion -> its pillar as compiled last, sealed under the master's secret (targeting by pillar)"),
    KeySpec("changed", "salt:<cache>:changed", "zset", "none: one entry a minion", "mworker", "mworker, runners", "the number of minions, and 1000 that are gone", "minion by the number of its last change, of grains and of pillar"),
    KeySpec("version", "salt:<cache>:version", "hash", "none: two numbers", "mworker", "mworker, runners", "two numbers", "the number of the last change, and the oldest that a reader can go on from"),
    KeySpec("pillar_cache", "salt:pillar_cache:<minion>", "hash", "pillar_cache_ttl", "mworker", "mworker, runners", "TTL", "environments -> pillar that is handed out as it is (pillar_cache), sealed under the master's secret"),
    KeySpec("mine", "salt:mine:<fun>", "hash", "none: minions overwrite theirs", "mworker", "mworker, runners", "minions x mine functions", "minion -> msgpack of what it offers under this function"),
    KeySpec("mine_functions", "salt:mine", "set", "none: one entry a function", "mworker", "mworker, runners", "the number of mine functions", "functions that any minion offers"),
    KeySpec("bank", "salt:bank:<bank>", "hash", "none: runners' own", "runners", "runners", "what runners keep (cache.store), until cache.flush", "key -> msgpack of its data"),
    KeySpec("banks", "salt:banks", "set", "none: one entry a bank", "runners", "runners", "the number of banks", "names of banks that were ever written to"),
    KeySpec("seen", "salt:seen", "zset", "none: one entry a minion", "mworker", "runners, maintenance", "the number of minions", "minion by milliseconds of its last request"),
    KeySpec("epochs", "salt:epochs", "hash", "none: four numbers", "mworker, maintenance", "mworker, publisher", "four numbers", "epochs of publication and session keys, and their beginnings; never a key"),
    KeySpec("lock", "salt:lock:<name>", "string", "the lock's own", "maintenance", "maintenance", "TTL", "owner and fencing token of a lock"),
    KeySpec("fences", "salt:fences", "hash", "none: one number a lock", "maintenance", "maintenance", "the number of locks", "lock -> last fencing token given out"),
    KeySpec("schema", "salt:schema", "string", "none: one number", "mworker", "all", "one number", "version of this table"),
)  # fmt: skip

#: ``module.function``, or several with commas.
_FUNCTIONS = re.compile(r"[\w-]+\.[\w.-]+(,[\w-]+\.[\w.-]+)*")

JOBS = "salt:jobs"
FUNCTIONS = "salt:idx:funs"
WIDE_JOBS = "salt:jobs:wide"
DUE = "salt:jobs:due"
JOB_BYTES = "salt:jobs:bytes"
WAITING = "salt:waiting"
SIGNERS = "salt:signers"
MINIONS = "minions"
RUNNERS = "salt:runners"
PUBLICATIONS = "salt:publications"
CURSORS = "salt:publisher:cursors"
PUBLISHER_SIGNS = "salt:publisher:signs"
STOCK_SIGN_INS = "salt:stock:sign-ins"
EVENTS = "salt:events"
EVENTS_COUNT = "salt:events:count"
EVENTS_WANTED = "salt:events:wanted"
KEYS_VERSION = "salt:keys:version"
GRAINS = "salt:grains"
PILLAR = "salt:pillar"
MINE_FUNCTIONS = "salt:mine"
BANKS = "salt:banks"
SEEN = "salt:seen"
EPOCHS = "salt:epochs"
FENCES = "salt:fences"
SCHEMA = "salt:schema"

# Beginnings of keys that scripts end by what they read.
LOAD = "load:"
RET = "ret:"
JOB = "salt:job:"
WAITING_OF = "salt:waiting:"
INDEX = "salt:idx:"
LARGE = "salt:large:"

#: Longest value that an index key contains unhashed, bytes.
_LONGEST_VALUE = 128


def load(jid: str) -> str:
    """Key of a job's load."""
    return LOAD + jid


def ret(jid: str) -> str:
    """Key of a job's returns."""
    return RET + jid


def large(jid: str) -> str:
    """Key of a job's large returns."""
    return LARGE + jid


def last_jid(minion: str, fun: str) -> tuple[str, ...]:
    """Key of the last JID of a function on a minion, as a tuple of one; empty if the name could be another key's.

    The minion chooses both parts: a minion named ``salt`` could return a function named ``keys:accepted``.
    """
    if _FUNCTIONS.fullmatch(fun) is None or minion in ("load", "ret") or minion.startswith("salt:"):
        return ()
    return (f"{minion}:{fun}",)


def job(jid: str) -> str:
    """Key of a job's counters and times."""
    return JOB + jid


def orders(jid: str) -> str:
    """Key of operators' orders to a running orchestration (pause, kill)."""
    return f"salt:orders:{jid}"


def job_minions(jid: str) -> str:
    """Key of the minions that a job expects."""
    return f"{JOB}{jid}:minions"


def life(jid: str) -> str:
    """Key of a job's state on each minion."""
    return f"{JOB}{jid}:life"


def waiting_of(minion: str) -> str:
    """Key of the jobs that wait for a minion."""
    return WAITING_OF + minion


def index(kind: str, value: str) -> str:
    """Key of the index of jobs with this value. ``kind``: minion, fun, user, tgt, result or state. Long values are
    replaced by their hash.
    """
    return f"{INDEX}{kind}:{short(value)}"


def short(value: str) -> str:
    """Return a value as index keys contain it: the value, or its SHA-256 hash above 128 bytes."""
    data = value.encode("utf-8", "surrogateescape")
    return value if len(data) <= _LONGEST_VALUE else f"sha256={hashlib.sha256(data).hexdigest()}"


def request(request_id: str) -> str:
    """Key of the answer to a publish request."""
    return f"salt:request:{request_id}"


def own_job(minion: str, own_id: str) -> str:
    """Key of the JID of a job that a minion started itself; ``own_id`` is the minion's id of the job."""
    return f"salt:own:{minion}:{own_id}"


def event_group(group: str) -> str:
    """Key of the state of a group of event readers."""
    return f"salt:events:group:{group}"


def event_readers(group: str) -> str:
    """Key of the readers in a group, with their last signs of life."""
    return f"salt:events:readers:{group}"


def dead_events(group: str) -> str:
    """Key of the events that a group could not handle."""
    return f"salt:events:dead:{group}"


def minion_keys(state: str) -> str:
    """Key of the minions' public keys in one state."""
    return f"salt:keys:{state}"


def changed(cache: str) -> str:
    """Key of the change numbers of the minions in a cache (GRAINS or PILLAR)."""
    return f"{cache}:changed"


def version(cache: str) -> str:
    """Key of the last change number of a cache (GRAINS or PILLAR)."""
    return f"{cache}:version"


def mine(fun: str) -> str:
    """Key of the mine values of a function."""
    return f"salt:mine:{fun}"


def bank(name: str) -> str:
    """Key of a bank of data that runners store."""
    return f"salt:bank:{name}"


def pillar_cache(minion: str) -> str:
    """Key of a minion's entries in ``pillar_cache``."""
    return f"salt:pillar_cache:{minion}"


def lock(name: str) -> str:
    """Key of a lock."""
    return f"salt:lock:{name}"


def markdown() -> str:
    """Return the text of docs/redis.md."""
    return "\n".join(_markdown())


def _markdown() -> Iterator[str]:
    yield "# Keys in Redis"
    yield ""
    yield "Written by `make docs` from `libs/masterstore/keys.py`. The first four are those of Salt's Redis returner."
    yield f"Schema version {SCHEMA_VERSION}. Redis must not evict (`maxmemory-policy noeviction`) and should keep an append-only file."
    yield "A zset of jobs is kept a sixteenth longer than it says: it is not renewed with each job."
    yield ""
    yield "| key | type | holds | time to live | bounded by | written by | read by |"
    yield "|---|---|---|---|---|---|---|"
    for row in KEYS:
        yield f"| `{row.pattern}` | {row.type} | {row.meaning} | {row.ttl} | {row.bounded} | {row.writers} | {row.readers} |"
    yield ""
