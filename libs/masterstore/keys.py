# ruff: noqa: E501 - a row of the table is read as a row
"""Names of all Redis keys. No other module spells a key; docs/redis.md is generated from this table.

``load:``, ``ret:``, ``<minion>:<fun>`` and ``minions`` are the keys of Salt's Redis returner, so that tools for it go
on working. All other keys begin with ``salt:``.
"""

from __future__ import annotations

import hashlib
import json
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
    """A row of the table KEYS: one pattern of Redis keys, with its Redis type, content, writers, readers, and the limit
    of its size.
    """

    name: str
    pattern: str
    type: str
    ttl: str
    writers: str
    readers: str
    bounded: str
    meaning: str


KEYS: tuple[KeySpec, ...] = (
    KeySpec("load", "load:<jid>", "string", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners, tools", "TTL", "JSON of a job's load (Salt's returner)"),
    KeySpec("ret", "ret:<jid>", "hash", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners, tools", "TTL", "minion -> JSON of its return; a second return is ignored (Salt's returner)"),
    KeySpec("large", "salt:large:<jid>", "hash", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners", "TTL", "minion -> zlib-compressed JSON of a return above compress_return_bytes, in a Redis Cluster above 1000 bytes; the entry in ret:<jid> then has __large__ (its size in bytes) and a sentence in place of the return"),
    KeySpec("last_jid", "<minion>:<fun>", "string", "keep_jobs_seconds", "mworker", "tools", "TTL", "JID of the last run of a function on a minion (Salt's returner)"),
    KeySpec("minions", "minions", "set", "none: one entry a minion", "mworker", "tools", "the number of minions", "ids of all minions that ever returned (Salt's returner)"),
    KeySpec("jobs", "salt:jobs", "zset", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners", "writes remove the oldest; maintenance trims", "JID, scored by the milliseconds of its creation"),
    KeySpec("wide_jobs", "salt:jobs:wide", "zset", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners", "writes remove the oldest; TTL", "JID, scored by the milliseconds of its creation: jobs for more minions than are indexed one by one"),
    KeySpec("due_jobs", "salt:jobs:due", "zset", "keep_jobs_seconds", "mworker, maintenance", "maintenance", "writes remove the oldest; TTL; maintenance removes jobs that expect no more returns", "JID, scored by the milliseconds at which maintenance checks which minions reported nothing"),
    KeySpec("job_bytes", "salt:jobs:bytes", "hash", "none: one number an hour", "mworker, maintenance", "maintenance", "maintenance drops hours older than keep_jobs_seconds", "hour since 1970 -> bytes of loads and returns of the jobs created in that hour"),
    KeySpec("job", "salt:job:<jid>", "hash", "keep_jobs_seconds", "mworker, maintenance", "runners, publisher, mworker", "TTL", "created, ended, expected, answered (returns of expected minions), returned, failed, duplicates, late, user, fun, tgt, bytes; replay_until, when_back_until; number of minions in each of the states delivered, started, offline, lost, cancelled, expired; mac: code by which workers know that the load and the two times are a worker's; for a runner also the host on which it runs"),
    KeySpec("job_minions", "salt:job:<jid>:minions", "set", "keep_jobs_seconds", "mworker, maintenance", "runners", "TTL", "ids of the minions expected to return"),
    KeySpec("index", "salt:idx:<kind>:<value>", "zset", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners, maintenance", "writes remove the oldest; TTL", "JID, scored by the milliseconds of its creation: jobs with this value. kind is minion (jobs for many minions are in salt:jobs:wide), fun, user, tgt, result (ok: all minions returned and none failed; failed: some return is a failure) or state (running: some return is still expected; offline, lost, cancelled, expired: some minion has this state; late: some return was late). A value longer than 128 bytes is replaced by its hash"),
    KeySpec("functions", "salt:idx:funs", "zset", "keep_jobs_seconds", "mworker, maintenance", "runners", "writes remove the oldest; TTL", "name of a function that has an index, scored by the milliseconds of its last job"),
    KeySpec("life", "salt:job:<jid>:life", "hash", "keep_jobs_seconds", "mworker, maintenance", "mworker, runners", "TTL", "minion -> states of the job on it, each a letter and the milliseconds since the time in the JID (o: offline, d: delivered, s: started, r: returned, l: lost, c: cancelled, x: expired, e: sent again); empty: expected"),
    KeySpec("waiting", "salt:waiting", "zset", "TTL of the job", "mworker, maintenance", "mworker, runners, maintenance", "writes remove the oldest; TTL", "JID, scored by the milliseconds of its deadline: jobs that wait for minions to reconnect"),
    KeySpec("waiting_of", "salt:waiting:<minion>", "zset", "TTL of the job", "mworker, maintenance", "mworker", "writes remove the oldest; TTL", "JID, scored by the milliseconds of its deadline: jobs that wait for this minion"),
    KeySpec("signers", "salt:signers", "set", "none: one entry a minion", "mworker", "mworker, maintenance", "the number of minions", "ids of minions that report the progress of their jobs; only for these does silence mean that a job was not delivered"),
    KeySpec("request", "salt:request:<id>", "string", f"{REQUEST_TTL} s", "mworker", "mworker", "TTL", "JID and stream id of the publication that this request id created; for a runner the JID"),
    KeySpec("runners", "salt:runners", "zset", "none: an entry ends with its runner", "mworker, maintenance", "mworker, maintenance", "maintenance ends runners without a sign of life", "JID of a running runner, scored by the milliseconds of its last sign of life"),
    KeySpec("orders", "salt:orders:<jid>", "hash", "keep_jobs_seconds", "mworker", "mworker", "TTL", "orders to an orchestration: state ID, or __all__ -> JSON (kill, duration)"),
    KeySpec("own_job", "salt:own:<minion>:<id>", "string", "keep_jobs_seconds", "mworker", "mworker", "TTL", "JID that the master gave to a job that the minion started itself; <id> is the minion's own id of the job"),
    KeySpec("spent", "salt:spent:<minion>", "hash", "an hour", "mworker", "mworker", "TTL", "count and bytes of the returns that the minion stored within the hour for jobs that do not expect it; above unasked_returns_per_hour and unasked_return_bytes_per_hour further ones are dropped"),
    KeySpec("publications", "salt:publications", "stream", "none: capped", "mworker", "publisher", f"about {PUBLICATIONS_KEPT} entries (MAXLEN ~)", "publications to be sent to minions, each with a code (mac) by which publishers know that a worker recorded it"),
    KeySpec("cursors", "salt:publisher:cursors", "hash", "none: one entry a publisher", "publisher", "publisher, mworker", "publishers remove entries without a sign of life for an hour", "publisher -> stream id of the publication that it sent last; *: the last one that any publisher sent"),
    KeySpec("publisher_signs", "salt:publisher:signs", "hash", "none: one entry a publisher", "publisher", "publisher, mworker", "publishers remove entries without a sign of life for an hour", "publisher -> milliseconds of its last sign of life"),
    KeySpec("events", "salt:events", "stream", "none: capped", "mworker, maintenance, reactor", "reactor", "about events_kept_count entries (MAXLEN ~)", "events whose tags some reader wants: number, tag and data as on the bus; the event of a return is written in the same step as the return. mac: time, number and code by which readers know that a role of this master kept the event"),
    KeySpec("reqservers", "salt:reqservers", "hash", "a minute", "mworker", "mworker, runners", "TTL; the number of reqservers", "reqserver -> JSON of its figures: waiting requests, workers and busy workers by pool, connections of minions, and the milliseconds of the report"),
    KeySpec("stock_sign_ins", "salt:stock:sign-ins", "zset", "a minute", "mworker", "publisher", "TTL; writes remove entries older than a minute", "stock minion, scored by the milliseconds (Redis' clock) of its last sign-in: it may have forgotten jobs that it received before"),
    KeySpec("master_keys", "salt:keys:master", "hash", "90 days", "mworker", "mworker", "TTL; the number of minions", "minion -> fingerprint of the master's key that it accepts, as its last sign-in showed while two keys were valid (saltern rotate master)"),
    KeySpec("events_count", "salt:events:count", "string", "none: one number", "mworker, maintenance, reactor", "reactor", "one number", "number of the newest event in the stream"),
    KeySpec("events_wanted", "salt:events:wanted", "hash", "none: one entry a reader", "reactor, mworker", "mworker, maintenance", "the number of readers; entries older than a day are ignored", "reader -> JSON of the tag globs that it wants, and the time at which it wrote them"),
    KeySpec("event_group", "salt:events:group:<group>", "hash", "none: five fields", "reactor", "reactor, runners", "the number of groups", "number of the group's last event, number of events it missed, data that its readers share (the reactor's table), version of that data, and its code (mac)"),
    KeySpec("event_readers", "salt:events:readers:<group>", "zset", "none: silent readers are removed", "reactor", "reactor", "the number of readers", "reader of a group, scored by the milliseconds of its last sign of life"),
    KeySpec("dead_events", "salt:events:dead:<group>", "stream", "none: capped", "reactor, runners", "runners", "about 1000 entries (MAXLEN ~)", "events that a group failed to handle, with the error and the event's code (mac)"),
    KeySpec("minion_keys", "salt:keys:<state>", "hash", "none: the keys themselves", "mworker", "mworker, maintenance", "the number of minions; pending ones by max_pending_keys", "minion -> PEM of its public key; state is accepted, pending, rejected or denied"),
    KeySpec("keys_version", "salt:keys:version", "string", "none: one number", "mworker", "mworker", "one number", "counter of changes to minion keys; workers read the keys again when it changes"),
    KeySpec("acceptances", "salt:keys:acceptances", "hash", "none: one entry a minion", "mworker", "mworker", "the number of minions", "minion -> number of the change of minion keys that accepted its key; session keys depend on it, so a session ends when its key is no longer accepted"),
    KeySpec("clocks", "salt:clocks", "hash", "none: one entry a minion", "mworker", "mworker", "the number of minions", "minion -> seconds by which its clock is behind the master's, as its last new request showed it: a request that is older by more than request_window is refused"),
    KeySpec("nonce", "salt:nonce:<minion>:<nonce>", "string", "two request_window and a minute", "mworker", "mworker", "TTL", "a request of the minion came with this nonce; a second one changes nothing"),
    KeySpec("key_codes", "salt:keys:codes", "hash", "none: one entry a minion", "mworker", "mworker", "the number of minions", "minion -> code by which workers know that a worker of this master accepted its key"),
    KeySpec("grains", "salt:grains", "hash", "none: one entry a minion", "mworker", "mworker, runners", "the number of minions", "minion -> msgpack of its grains"),
    KeySpec("pillar", "salt:pillar", "hash", "none: one entry a minion", "mworker", "mworker", "the number of minions", "minion -> its last compiled pillar, encrypted with the master's secret (for targeting by pillar)"),
    KeySpec("changed", "salt:<cache>:changed", "zset", "none: one entry a minion", "mworker", "mworker, runners", "the number of minions, and 1000 deleted ones", "minion, scored by the number of its last change; <cache> is grains or pillar"),
    KeySpec("version", "salt:<cache>:version", "hash", "none: two numbers", "mworker", "mworker, runners", "two numbers", "number of the last change, and the oldest number from which a reader can continue"),
    KeySpec("pillar_cache", "salt:pillar_cache:<minion>", "hash", "pillar_cache_ttl", "mworker", "mworker, runners", "TTL", "environments -> compiled pillar that is sent without compiling it again (option pillar_cache), encrypted with the master's secret"),
    KeySpec("mine", "salt:mine:<fun>", "hash", "none: minions overwrite their data", "mworker", "mworker, runners", "minions x mine functions", "minion -> msgpack of its mine data for this function, inside a msgpack extension (type 77) behind a code (64 bytes) by which workers know that a worker stored it"),
    KeySpec("mine_functions", "salt:mine", "set", "none: one entry a function", "mworker", "mworker, runners", "the number of mine functions", "names of mine functions that some minion has data for"),
    KeySpec("bank", "salt:bank:<bank>", "hash", "none: runners decide", "runners", "runners", "data that runners store (cache.store) until cache.flush", "key -> msgpack of its data (runners cache.store, cache.fetch)"),
    KeySpec("banks", "salt:banks", "set", "none: one entry a bank", "runners", "runners", "the number of banks", "names of all banks that were ever written"),
    KeySpec("seen", "salt:seen", "zset", "none: one entry a minion", "mworker", "runners, maintenance", "the number of minions", "minion, scored by the milliseconds of its last request"),
    KeySpec("left", "salt:left", "zset", "none: one entry a minion", "mworker", "mworker, runners", "the number of minions", "minion whose last connection has ended, scored by the milliseconds of its last request; salt:seen has it again when it comes back"),
    KeySpec("epochs", "salt:epochs", "hash", "none: four numbers", "mworker, maintenance, publisher", "mworker, publisher", "four numbers", "epochs of the publication key and of session keys, and the start of each; never a key"),
    KeySpec("lock", "salt:lock:<name>", "string", "TTL of the lock", "maintenance, reactor", "maintenance, reactor", "TTL", "owner and fencing token of a lock"),
    KeySpec("fences", "salt:fences", "hash", "none: one number a lock", "maintenance, reactor", "maintenance, reactor", "the number of locks", "lock -> last fencing token issued"),
    KeySpec("audit", "salt:audit", "stream", "none: capped", "mworker", "tools", "about audit_kept entries, audit_max_bytes in all", "who did what on the master: JSON of an entry (entry), and a code (mac) by which `saltern audit verify` knows that a worker wrote it"),
    KeySpec("audit_seals", "salt:audit:seals", "stream", "none: capped", "mworker", "mworker, tools", "at most one for each entry in salt:audit; leaves with its entries", "hash chain over the audit record: JSON of a seal (seal) with a digest of entries and the hash of the seal before, and a code (mac)"),
    KeySpec("audit_end", "salt:audit:end", "hash", "none: capped", "mworker", "mworker, tools", "two fields, and one for each worker that wrote within two hours", "the last seal of salt:audit:seals (seal), and a code (mac) by which workers know that a worker wrote it; the last count of each worker (no:<worker>)"),
    KeySpec("token", "salt:token:<digest>", "hash", "token_expire", "mworker", "mworker", "TTL", "a user who signed in (eauth): JSON of name, backend, groups, start and end (record), and its code (mac). <digest> is the SHA-256 of the token; the token itself is nowhere in Redis"),
    KeySpec("tokens_of", "salt:tokens:<digest>", "zset", "token_expire", "mworker", "mworker", "eauth_tokens_per_user", "digests of a user's tokens, scored by the milliseconds of their end; <digest> is the SHA-256 of backend and user"),
    KeySpec("login_failures", "salt:logins:<digest>", "string", "a minute", "mworker", "mworker", "TTL", "number of failed sign-ins (eauth) of an address or a user; <digest> is its SHA-256"),
    KeySpec("schema", "salt:schema", "string", "none: one number", "mworker, maintenance", "all", "one number", "version of this table"),
)  # fmt: skip

#: What a minion's id must not begin with for the key ``<minion>:<fun>``: it could then be a key of another row.
_OTHERS = ("salt:", "load:", "ret:", ":")

#: ``module.function``, or several separated by commas.
_FUNCTIONS = re.compile(r"[\w-]+\.[\w.-]+(,[\w-]+\.[\w.-]+)*")

JOBS = "salt:jobs"
FUNCTIONS = "salt:idx:funs"
WIDE_JOBS = "salt:jobs:wide"
DUE = "salt:jobs:due"
JOB_BYTES = "salt:jobs:bytes"
WAITING = "salt:waiting"
SIGNERS = "salt:signers"
LEFT = "salt:left"
MINIONS = "minions"
RUNNERS = "salt:runners"
PUBLICATIONS = "salt:publications"
CURSORS = "salt:publisher:cursors"
PUBLISHER_SIGNS = "salt:publisher:signs"
REQSERVERS = "salt:reqservers"
STOCK_SIGN_INS = "salt:stock:sign-ins"
EVENTS = "salt:events"
EVENTS_COUNT = "salt:events:count"
EVENTS_WANTED = "salt:events:wanted"
KEYS_VERSION = "salt:keys:version"
ACCEPTANCES = "salt:keys:acceptances"
CLOCKS = "salt:clocks"
MASTER_KEYS = "salt:keys:master"
KEY_CODES = "salt:keys:codes"
GRAINS = "salt:grains"
PILLAR = "salt:pillar"
MINE_FUNCTIONS = "salt:mine"
BANKS = "salt:banks"
SEEN = "salt:seen"
EPOCHS = "salt:epochs"
FENCES = "salt:fences"
SCHEMA = "salt:schema"
#: A key that never exists. Roles write nothing to it, to see whether Redis accepts writes.
WRITE_PROBE = "salt:write-probe"
AUDIT = "salt:audit"
AUDIT_SEALS = "salt:audit:seals"
AUDIT_END = "salt:audit:end"

# Prefixes of keys whose rest a script reads from Redis.
LOAD = "load:"
RET = "ret:"
JOB = "salt:job:"
WAITING_OF = "salt:waiting:"
INDEX = "salt:idx:"
LARGE = "salt:large:"
SPENT = "salt:spent:"
PILLAR_CACHE = "salt:pillar_cache:"
MINE = "salt:mine:"
TOKEN = "salt:token:"

#: Longest value that an index key contains unhashed, bytes.
_LONGEST_VALUE = 128


def load(jid: str) -> str:
    """Redis key of a job's load (string: JSON)."""
    return LOAD + jid


def ret(jid: str) -> str:
    """Redis key of a job's returns (hash: minion id to JSON)."""
    return RET + jid


def large(jid: str) -> str:
    """Redis key of a job's large returns (hash: minion id to compressed JSON)."""
    return LARGE + jid


def last_jid(minion: str, fun: str) -> tuple[str, ...]:
    """Redis key of the JID of a function's last job on a minion, as a tuple of one; () if the name could be another key's.

    The minion chooses both parts: a minion named ``salt`` could return a function named ``keys:accepted``. An id that
    begins with ":" has no such key, because ``:mine`` would have the key of ``salt:mine`` in a Redis Cluster.
    """
    if _FUNCTIONS.fullmatch(fun) is None or minion in ("load", "ret") or minion.startswith(_OTHERS):
        return ()
    return (f"{minion}:{fun}",)


def job(jid: str) -> str:
    """Redis key of a job's counters and times (hash)."""
    return JOB + jid


def orders(jid: str) -> str:
    """Redis key of operators' orders to a running orchestration (hash: state ID to order, such as pause or kill)."""
    return f"salt:orders:{jid}"


def job_minions(jid: str) -> str:
    """Redis key of the minions that a job expects (set)."""
    return f"{JOB}{jid}:minions"


def life(jid: str) -> str:
    """Redis key of a job's state on each minion (hash)."""
    return f"{JOB}{jid}:life"


def waiting_of(minion: str) -> str:
    """Redis key of the jobs that wait for an offline minion (sorted set: JID by the time until which it waits)."""
    return WAITING_OF + minion


def index(kind: str, value: str) -> str:
    """Redis key of the index of jobs with this value. ``kind``: minion, fun, user, tgt, result or state.

    A long value is replaced by its hash.
    """
    return f"{INDEX}{kind}:{short(value)}"


def short(value: str) -> str:
    """Return a value as index keys contain it: the value, or its SHA-256 hash above 128 bytes."""
    data = value.encode("utf-8", "surrogateescape")
    return value if len(data) <= _LONGEST_VALUE else f"sha256={hashlib.sha256(data).hexdigest()}"


def request(request_id: str) -> str:
    """Redis key of the stored result of a publish request, so that a repeated ``request_id`` gets the same answer."""
    return f"salt:request:{request_id}"


def own_job(minion: str, own_id: str) -> str:
    """Redis key of the JID of a job that a minion started itself; ``own_id`` is the minion's id of the job."""
    return f"salt:own:{_part(minion)}:{own_id}"


def spent(minion: str) -> str:
    """Redis key of the number and bytes of unasked returns that a minion stored within the hour (hash: count,
    bytes).

    An unasked return is a return for a job from which the master expects none of this minion.
    """
    return SPENT + minion


def event_group(group: str) -> str:
    """Redis key of the text that the readers of a consumer group of events share, and its version (hash), by the
    group's name.
    """
    return f"salt:events:group:{group}"


def event_readers(group: str) -> str:
    """Redis key of the readers in a consumer group of events, with the time of the last sign of life of each."""
    return f"salt:events:readers:{group}"


def dead_events(group: str) -> str:
    """Redis key of the list of events that the readers of a consumer group could not handle."""
    return f"salt:events:dead:{group}"


def minion_keys(state: str) -> str:
    """Redis key of the minions' public keys in one state, such as accepted (hash: minion id to PEM)."""
    return f"salt:keys:{state}"


def changed(cache: str) -> str:
    """Redis key of the map of minion id to the number of its last change, for a cache (GRAINS or PILLAR)."""
    return f"{cache}:changed"


def version(cache: str) -> str:
    """Redis key of the number of the last change in a cache (GRAINS or PILLAR)."""
    return f"{cache}:version"


def mine(fun: str) -> str:
    """Redis key of the values that minions offer for one mine function."""
    return MINE + fun


def bank(name: str) -> str:
    """Redis key of a bank: named data of runners (hash)."""
    return f"salt:bank:{name}"


def pillar_cache(minion: str) -> str:
    """Redis key of a minion's entries in ``pillar_cache``."""
    return PILLAR_CACHE + minion


def nonce(minion: str, value: str) -> str:
    """Redis key that exists while the nonce of a minion's request is remembered, so that a repeated request is recognised."""
    return f"salt:nonce:{_part(minion)}:{value}"


def _part(minion: str) -> str:
    """Return a minion id as keys contain it that have another part behind it: without ":", so that the part ends there.

    An id without ":" and "%" stays as it is.
    """
    return minion.replace("%", "%25").replace(":", "%3A")


def token(digest: str) -> str:
    """Redis key of an eauth token's record with user, backend and times (hash). ``digest``: SHA-256 digest of the
    token's text.
    """
    return TOKEN + digest


def tokens_of(eauth: str, user: str) -> str:
    """Redis key of the eauth tokens of one user (sorted set: SHA-256 digest of a token by the time at which it
    expires).
    """
    return f"salt:tokens:{hashlib.sha256(json.dumps([eauth, user]).encode()).hexdigest()}"


def login_failures(subject: str) -> str:
    """Redis key of the number of failed sign-ins of one address or one user (``subject``)."""
    return f"salt:logins:{hashlib.sha256(subject.encode('utf-8', 'surrogateescape')).hexdigest()}"


def lock(name: str) -> str:
    """Redis key of a lock by its name."""
    return f"salt:lock:{name}"


def markdown() -> str:
    """Return the text of the generated page docs/redis.md, a table of all Redis keys."""
    return "\n".join(_markdown())


def _markdown() -> Iterator[str]:
    yield "# Keys in Redis"
    yield ""
    yield "Written by `make reference` from `libs/masterstore/keys.py`. The first four are those of Salt's Redis returner."
    yield f"Schema version {SCHEMA_VERSION}. Redis must not evict (`maxmemory-policy noeviction`) and should keep an append-only file."
    yield "A zset of jobs is kept a sixteenth longer than it says: it is not renewed with each job."
    yield "In a Redis Cluster names have hash tags: `salt:jobs` is `{salt}:jobs`, `ret:<jid>` is `{salt}ret:<jid>`; a job's large returns are in"
    yield "`salt:large:{<jid>}`, a minion's cached pillars in `salt:pillar_cache:{<minion>}` ([outages](operations/outages.md#redis-cluster))."
    yield ""
    yield "| key | type | holds | time to live | bounded by | written by | read by |"
    yield "|---|---|---|---|---|---|---|"
    for row in KEYS:
        yield f"| `{row.pattern}` | {row.type} | {row.meaning} | {row.ttl} | {row.bounded} | {row.writers} | {row.readers} |"
    yield ""
