"""The job cache: loads, expected minions, and returns of jobs. A publish and a return take one round trip each; a large
return takes three in a Redis Cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from masterstore import job_scripts, keys, return_scripts, values
from masterstore import redis_parts as redis
from masterstore.audit import Audit
from masterstore.client import Client, text
from masterstore.cluster_keys import cluster_name
from masterstore.durability import ConfirmedScript, Durability
from masterstore.errors import JidTaken, StoreCorrupt
from masterstore.event_codes import EventCodes
from masterstore.large_returns import is_large, packed, unpacked_together
from masterstore.lives import Lives, jid_ms
from masterstore.record_mac import LOAD, OWN_LOAD, PUBLICATION, Records, load_record

#: Jobs dropped from the time index in one go.
_EXPIRE_BATCH = 10_000

#: In a Redis Cluster a return with more bytes of JSON is stored apart from its job, compressed, on the node of its JID.
_APART_ABOVE = 1000

#: Largest number of functions of one job that are indexed.
_INDEXED_FUNCTIONS = 16


#: Redis' answer to TTL for a key that does not exist.
_NO_KEY = -2


@dataclass(frozen=True, slots=True)
class Published:
    """Result of publishing a job: its JID, the id of its entry in the stream of publications, and the offline minions."""

    jid: str
    stream_id: str
    #: False when the same request was answered before.
    created: bool
    #: Offline minions: the job waits for them, or they ask for it when they reconnect. Empty in a repeated answer.
    offline: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnaskedLimits:
    """Limits of one minion's unasked returns: returns for jobs from which the master expects no return of this
    minion.
    """

    #: Most returns and bytes in an hour; 0: unlimited.
    count: int = 0
    bytes: int = 0
    #: Seconds that the return of a job stays that the job cache does not have.
    unknown_seconds: int = 2**31


#: Answer of the script that publishes a job: the count of the entry of the audit record is taken.
_TAKEN = -2

#: No limit: for results that the master itself stores.
UNLIMITED = UnaskedLimits()


@dataclass(frozen=True, slots=True)
class Recorded:
    """Result of storing a minion's return in the job cache: whether the return is new, the job's load is known, the return
    was the last missing one of the job, it came late, differs from an earlier one, or was refused.
    """

    #: False for a duplicate, which changed nothing.
    first: bool
    #: False when no load is in the cache (expired, or never published here).
    known_job: bool
    #: Whether this was the last missing return.
    complete: bool
    #: Whether the minion was offline, or the job was lost or expired on it.
    late: bool = False
    #: Whether jobs wait for a stock minion, which cannot ask for them (``Presence.arrived``).
    waited_for: bool = False
    #: Whether an earlier return differs: the minion ran the job twice, or two minions have this id.
    differs: bool = False
    #: Whether the return was not stored because the minion has stored too many unasked ones.
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A job read from the job cache: load, expected minions, returns, counters and times."""

    jid: str
    load: dict[str, object]
    expected: tuple[str, ...] = ()
    returns: dict[str, dict[str, object]] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)


class Jobs(Lives):
    """The job cache in Redis: publishes jobs and stores returns. All operations raise StoreUnavailable if Redis does
    not answer.
    """

    def __init__(
        self,
        client: Client,
        durability: Durability = Durability(),  # noqa: B008 - it is frozen
        records: Records = Records(),  # noqa: B008 - it never changes
        event_codes: EventCodes = EventCodes(),  # noqa: B008 - it never changes
        audit: Audit | None = None,
    ) -> None:
        """Create the operations on the job cache. ``durability``: the replicas and disks that must confirm a
        publication or return. ``records``: makes the authentication codes of publications. ``event_codes``: makes the
        authentication codes of events. ``audit``: makes the entries of the audit record; None: create an Audit.
        """
        super().__init__(client, records)
        self._event_codes = event_codes
        self._audit = audit or Audit(client, records)
        self._publish = ConfirmedScript(client, job_scripts.PUBLISH, durability)
        self._return = ConfirmedScript(client, return_scripts.RETURN, durability)
        self._put_large = ConfirmedScript(client, return_scripts.PUT_LARGE, durability)
        self._spend = client.redis.register_script(return_scripts.SPEND)
        self._external = ConfirmedScript(client, return_scripts.EXTERNAL, durability)

    def publish(
        self,
        load: Mapping[str, object],
        expected: Sequence[str],
        *,
        request_id: str,
        ttl: int,
        now_ms: int,
        offline: Collection[str] = (),
        away_since_ms: int = 0,
        replay_until_ms: int = 0,
        when_back_until_ms: int = 0,
        pinned: bool = False,
        audited: Mapping[str, object] | None = None,
        owner: str = "",
    ) -> Published:
        """Reserve the JID, record the job and append it to the publications, all or nothing, in one round trip.

        Return a Published. ``expected``: ids of the minions that match the target. ``ttl``: seconds to keep the
        job. A repeated ``request_id`` returns the result of the first request. Raises JidTaken if another job has
        ``load["jid"]``.

        ``offline``: minions that are known to be away. A minion without a message since ``away_since_ms`` also
        counts as away, if it reports the states of its jobs or if the job waits. ``replay_until_ms``: until this
        time a minion that was away may still run the job; 0: only minions that receive it now.
        ``when_back_until_ms``: until this time the job is kept for absent minions; 0: it does not wait.
        ``pinned``: publish to the ids in ``expected`` instead of the target. ``audited``: fields of an entry that is
        appended to the audit record in the same step; None: no entry. If the entry cannot be appended, StoreError is
        raised and nothing is published. ``owner``: text that names the sender; the job cache keeps it in the load (field
        ``owner``), and it is not published. All times are milliseconds since 1970.
        """
        jid, functions = str(load["jid"]), _functions(load.get("fun"))
        user, fun, tgt = str(load.get("user", "")), _shown(load.get("fun")), _shown(load.get("tgt"))
        if when_back_until_ms:
            ttl += max(0, when_back_until_ms - now_ms) // 1000
        names = [keys.request(request_id), keys.load(jid), keys.job(jid), keys.job_minions(jid), keys.life(jid)]
        names += [
            keys.PUBLICATIONS,
            keys.AUDIT,
            keys.AUDIT_END,
            keys.JOBS,
            keys.index("user", user),
            keys.index("tgt", tgt),
        ]
        names += [keys.index("fun", name) for name in functions]
        narrow = len(expected) <= job_scripts.WIDE
        names += [keys.index("minion", minion) for minion in expected] if narrow else [keys.WIDE_JOBS]
        named = {"tgt": list(expected), "tgt_type": "list"} if pinned else {}
        # Time of recording: an old entry of the stream cannot be written into it again.
        also = {"expected": list(expected), "replay_until": replay_until_ms, "recorded_ms": now_ms}
        sent, kept = values.dumps({**load, **named, **also}), values.dumps({**load, "owner": owner} if owner else load)
        arguments: list[str | int | bytes] = [jid, kept, ttl, now_ms, keys.REQUEST_TTL, keys.PUBLICATIONS_KEPT]
        arguments += [user, fun, tgt, sent, jid_ms(jid), replay_until_ms, when_back_until_ms, away_since_ms]
        record = load_record(jid, kept, replay_until_ms, when_back_until_ms)
        arguments += [len(expected), len(functions)]
        arguments += [self._records.code(PUBLICATION, sent), self._records.code(LOAD, record)]
        outcome, answer, away, faults = self._published(
            names,
            arguments,
            [*expected, *functions, *offline],
            None if audited is None else {**audited, "jid": jid},
            now_ms,
        )
        self._client.faults.of_script(faults)
        if outcome < 0:
            raise JidTaken(f"a job with the JID {jid} exists already")
        jid, _, stream_id = text(answer).partition(" ")
        return Published(jid, stream_id, outcome == 1, tuple(sorted(map(text, away))))

    def _published(
        self,
        names: Sequence[str],
        arguments: Sequence[str | int | bytes],
        ids: Sequence[str],
        audited: Mapping[str, object] | None,
        now_ms: int,
    ) -> tuple[int, bytes, list[bytes], list[bytes]]:
        """Run the script that publishes a job, with an entry of the audit record unless ``audited`` is None. Return the
        script's answer.
        """
        while True:
            entry = None if audited is None else self._audit.entry(audited, now_ms)
            about: Sequence[str | int | bytes] = (
                ("", "", "", 0) if entry is None else (entry.text, entry.mac, entry.by, entry.no)
            )
            answered = False
            try:
                with self._client.calling():
                    outcome, answer, away, faults = self._publish(keys=names, args=[*arguments, *about, *ids])
                answered = True
            finally:
                if entry is not None and not answered:
                    self._audit.entered(None)
            # A request that is repeated, and a JID that is taken, use no count.
            if entry is None or outcome not in (1, _TAKEN) or not self._audit.entered(outcome == 1):
                return int(outcome), answer, away, faults

    def record_return(
        self,
        ret: Mapping[str, object],
        *,
        ttl: int,
        now_ms: int = 0,
        compress_above: int = 0,
        heard: bool = False,
        event: bytes = b"",
        events_kept: int = 0,
        unasked: UnaskedLimits = UNLIMITED,
    ) -> Recorded:
        """Store a minion's return of a job, unless the job has a return of this minion already; return a Recorded
        with the outcome.

        ``ttl``: seconds to keep the return; it is kept at least as long as the job's load. ``now_ms``: time of
        receipt, milliseconds since 1970; 0: the time in the JID. ``compress_above``: a return with more bytes of
        JSON is stored compressed in a key of its own, and ``ret:<jid>`` gets a short note in place of the value;
        0: never. ``heard``: the minion itself sent the return, which proves that the minion is present.
        ``event``: packed event to append to ``salt:events`` if this is the first return (b"": none).
        ``events_kept``: about how many events that stream keeps. ``unasked``: limits for a minion from which the
        job expects no return; above them nothing is stored and ``refused`` is True.
        """
        jid, minion = str(ret["jid"]), str(ret["id"])
        base, (data, whole, apart) = jid_ms(jid), self._packed(jid, ret, compress_above, ttl, unasked.unknown_seconds)
        arguments: list[str | int | bytes] = [minion, data, jid, ttl, int(failed(ret)), now_ms or base, base, whole]
        arguments += [int(heard), event, self._seal(event), events_kept]
        arguments += [unasked.count, unasked.bytes, unasked.unknown_seconds, apart]
        arguments += _functions(ret.get("fun"))
        with self._client.calling():
            answer = self._return(keys=keys.last_jid(minion, _shown(ret.get("fun"))), args=arguments)
        if isinstance(answer, list):
            answer, faults = answer
            self._client.faults.of_script(faults)
        recorded = Recorded(*(bool(answer & bit) for bit in (1, 2, 4, 8, 16, 32, 64)))
        if apart and recorded.refused:
            self._client.call("hdel", keys.large(jid), minion)
        return recorded

    def _packed(
        self, jid: str, ret: Mapping[str, object], compress_above: int, ttl: int, unknown_ttl: int
    ) -> tuple[bytes, bytes, int]:
        """Return (JSON for ``ret:<jid>``, compressed JSON or b"", bytes that were stored apart).

        In a Redis Cluster a large return is stored here already, on the node of its JID, so that the returns of many
        jobs spread over all nodes; the note in ``ret:<jid>`` follows in the step that records the return. A return
        without such a note counts as missing, and its minion sends it again. If two workers store different returns of
        one job and minion at the same moment, the value of one and the note of the other may be kept.
        ``ttl``, ``unknown_ttl``: seconds to keep it for a known and for an unknown job.
        """
        if not self._client.in_cluster:
            return *packed(ret, compress_above, keys.large(jid)), 0
        data, whole = packed(ret, min(compress_above or _APART_ABOVE, _APART_ABOVE), cluster_name(keys.large(jid)))
        if not whole:
            return data, b"", 0
        minion = str(ret["id"])
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.ttl(keys.load(jid))
            pipe.hexists(keys.ret(jid), minion)
            left, known = pipe.execute()
        if not known:
            seconds = min(ttl, unknown_ttl) if left == _NO_KEY else max(ttl, left)
            with self._client.calling():
                self._put_large(keys=[keys.large(jid)], args=[minion, whole, seconds])
        return data, b"", len(whole)

    def _seal(self, event: bytes) -> bytes:
        return self._event_codes.seal(event) if event else b""

    def may_store_own(self, minion: str, own_id: str, limits: UnaskedLimits) -> bool:
        """Return whether a minion may store one more return of a job that it started itself, and count this return.

        False if the minion has reached its ``limits`` for the current hour. ``own_id``: the id that the minion
        gave the job; a repeated return with this id is allowed and not counted again.
        """
        names = [keys.spent(minion), *([keys.own_job(minion, own_id)] if own_id else [])]
        with self._client.calling():
            allowed, faults = self._spend(keys=names, args=[limits.count, limits.bytes])
        self._client.faults.of_script(faults)
        return bool(allowed)

    def own_jid(self, minion: str, own_id: str, jid: str, *, ttl: int) -> str:
        """Return the JID of a job that a minion started itself, and remember it for ``ttl`` seconds.

        The first call for an ``own_id`` (the id that the minion gave the job) returns ``jid``. Later calls return
        that same JID.
        """
        name = keys.own_job(minion, own_id)
        while not self._client.call("set", name, jid, ex=ttl, nx=True):
            known = self._client.call("get", name)
            if known is not None:
                return text(known)
        return jid

    def store_external(
        self,
        jid: str,
        load: Mapping[str, object],
        ret: Mapping[str, object],
        *,
        ttl: int = 86400,
        compress_above: int = 0,
        event: bytes = b"",
        events_kept: int = 0,
        counted: bool = False,
    ) -> bool:
        """Store a job with its result at once: a job that was not published, such as a runner's or one that a minion
        started itself.

        Return True if it was stored, False if the job has a result already, which is kept. ``ttl``: seconds to keep
        the job. ``compress_above``: a return with more bytes of JSON is stored compressed; 0: never. ``event``: packed
        event to append to ``salt:events`` if the job is stored (b"": none). ``events_kept``: about how many events
        that stream keeps. ``counted``: count the bytes against the minion's hourly limit (``may_store_own``).
        """
        minion, created = str(ret["id"]), jid_ms(jid)
        user, functions = str(load.get("user", "")), _functions(load.get("fun"))
        names = [keys.RUNNERS, keys.ret(jid), keys.job(jid), keys.job_minions(jid), keys.load(jid), keys.life(jid)]
        names += [keys.JOBS, keys.index("minion", minion), keys.index("user", user)]
        names += [keys.index("tgt", _shown(load.get("tgt"))), *(keys.index("fun", name) for name in functions)]
        data, whole, apart = self._packed(jid, ret, compress_above, ttl, ttl)
        job = values.dumps(load)
        arguments: list[str | int | bytes] = [jid, minion, data, job, ttl, int(failed(ret)), created]
        arguments += [created, "failed" if failed(ret) else "ok", whole, event, self._seal(event)]
        arguments += [events_kept, int(counted), self._records.code(OWN_LOAD, load_record(jid, job, 0, 0)), apart]
        arguments += functions
        with self._client.calling():
            first, faults = self._external(keys=names, args=arguments)
        self._client.faults.of_script(faults)
        return bool(first)

    def load(self, jid: str) -> dict[str, object] | None:
        """Return the load of a job; None if the job cache has no such job."""
        data = self._client.call("get", keys.load(jid))
        return values.loads_map(data, keys.load(jid)) if data else None

    def check_load(self, jid: str) -> bool:
        """Check the authentication code of a job's load, before the job is published again.

        Return True if the job was published, for an operator, a runner or a minion. Return False if it was not
        published: a job that a minion started itself, or a runner. Raises StoreCorrupt if no worker of this master
        wrote the load.
        """
        name, fields = keys.load(jid), ("mac", "replay_until", "when_back_until")
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.get(name)
            pipe.hmget(keys.job(jid), *fields)
            load, (code, replay_until, when_back_until) = pipe.execute()
        times = [values.number(each, keys.job(jid)) for each in (replay_until, when_back_until)]
        try:
            self._records.check(LOAD, load_record(jid, load or b"", *times), code, name)
        except StoreCorrupt:
            self._records.check(OWN_LOAD, load_record(jid, load or b"", 0, 0), code, name)
            return False
        return True

    def returns(self, jid: str, minions: Sequence[str] | None = None) -> dict[str, dict[str, object]]:
        """Return {minion id: return} of a job, for all minions or for the given ones. Minions without a return are
        left out.

        Malformed returns are left out, too, and reported to ``Faults``, which logs them.
        """
        key = keys.ret(jid)
        if minions is None:
            found = {text(name): data for name, data in self._client.call("hgetall", key).items()}
        elif minions:
            found = dict(zip(minions, self._client.call("hmget", key, list(minions)), strict=True))
        else:
            found = {}
        return self._whole(jid, {name: data for name, data in found.items() if data is not None})

    def expected(self, jid: str) -> list[str]:
        """Return the sorted ids of the minions from which the job expects a return."""
        return sorted(text(name) for name in self._client.call("smembers", keys.job_minions(jid)))

    def waits_for(self, jid: str, minion: str) -> bool:
        """Return whether the job still expects a return of this minion; False for an unknown job."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.sismember(keys.job_minions(jid), minion)
            pipe.hexists(keys.ret(jid), minion)
            expected, returned = pipe.execute()
        return bool(expected) and not returned

    def meta(self, jid: str) -> dict[str, str]:
        """Return the hash of a job's counters (expected, answered, failed ...) and times as {name: text}; {} for an
        unknown job.
        """
        return _texts(self._client.call("hgetall", keys.job(jid)))

    def missing(self, jid: str) -> list[str]:
        """Return the sorted ids of the minions from which the job still expects a return; [] for an unknown job."""
        job = self.job(jid)
        return [] if job is None else [name for name in job.expected if name not in job.returns]

    def job(self, jid: str) -> Job | None:
        """Return a Job with its load, expected minions, returns, counters and times; None if the job cache has no
        such job.

        Malformed returns are left out and reported to ``Faults``, which logs them. Raises StoreCorrupt for a
        malformed load.
        """
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
            self._whole(jid, {text(name): data for name, data in returns.items()}),
            _texts(meta),
        )

    def recent(self, limit: int, before_ms: int | None = None, *, skip: int = 0) -> list[Job]:
        """Return at most ``limit`` jobs created before ``before_ms`` (milliseconds since 1970; None: now), newest
        first.

        The first ``skip`` jobs are left out. The jobs have load and meta, and no returns. There may be fewer if
        some have just expired.
        """
        top = "+inf" if before_ms is None else f"({before_ms}"
        with self._client.calling() as server:
            jids = [text(jid) for jid in server.zrevrangebyscore(keys.JOBS, top, "-inf", start=skip, num=limit)]
            return self._jobs(server, jids)

    def described(self, jids: Sequence[str], *, meta: bool = False) -> list[Job]:
        """Return the jobs with these JIDs that the job cache has, in the same order: with load and without returns.

        ``meta``: also read their counters and times. A job with a malformed load is left out and reported to
        ``Faults``, which logs it.
        """
        if not jids:
            return []
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.mget([keys.load(jid) for jid in jids])
            for jid in jids if meta else ():
                pipe.hgetall(keys.job(jid))
            loads, *metas = pipe.execute()
        found = []
        for jid, load, known in zip(jids, loads, metas or [{}] * len(jids), strict=True):
            try:
                if load is not None:
                    found.append(Job(jid, values.loads_map(load, keys.load(jid)), meta=_texts(known)))
            except StoreCorrupt as error:
                self._client.faults.report(error.key, str(error))
        return found

    def count(self) -> int:
        """Return the number of jobs in the job cache."""
        return int(self._client.call("zcard", keys.JOBS))

    def active(self, since_ms: int, limit: int = 1000) -> list[Job]:
        """Return the jobs created since ``since_ms`` (milliseconds since 1970) that still expect returns, newest
        first.

        Only the newest ``limit`` jobs are read. The jobs have load and meta, and no returns.
        """
        with self._client.calling() as server:
            jids = [text(jid) for jid in server.zrevrangebyscore(keys.JOBS, "+inf", since_ms, start=0, num=limit)]
            jobs = self._jobs(server, jids)
        return [job for job in jobs if self._waits(job)]

    def expire(self, now_ms: int, keep_seconds: int = 86400) -> int:
        """Remove jobs older than ``keep_seconds`` from the list of recent jobs, and return their number.

        Redis deletes the keys of the jobs itself.
        """
        with self._client.calling() as server:
            old = server.zrangebyscore(keys.JOBS, "-inf", now_ms - keep_seconds * 1000, start=0, num=_EXPIRE_BATCH)
            return int(server.zrem(keys.JOBS, *old)) if old else 0

    def _jobs(self, server: redis.Redis, jids: Sequence[str]) -> list[Job]:

        pipe = server.pipeline(transaction=False)
        for jid in jids:
            pipe.get(keys.load(jid))
            pipe.hgetall(keys.job(jid))
        answers = pipe.execute(raise_on_error=False) if jids else []
        found = []
        for jid, load, meta in zip(jids, answers[::2], answers[1::2], strict=True):
            for key, answer in ((keys.load(jid), load), (keys.job(jid), meta)):
                if isinstance(answer, redis.ResponseError) and "WRONGTYPE" in str(answer):
                    self._client.faults.report(key, f"another type: {answer}")
                elif isinstance(answer, Exception):
                    raise answer
            if not isinstance(load, bytes) or isinstance(meta, Exception):
                continue
            data = self._read(load, keys.load(jid))
            if data is not None:
                found.append(Job(jid, data, meta=_texts(meta)))
        return found

    def _waits(self, job: Job) -> bool:
        try:
            return int(job.meta.get("answered", 0)) < int(job.meta.get("expected", 0))
        except ValueError as error:
            self._client.faults.report(keys.job(job.jid), f"a count is no number: {error}")
            return False

    def _read(self, data: bytes, key: str) -> dict[str, object] | None:
        try:
            return values.loads_map(data, key)
        except StoreCorrupt as error:
            self._client.faults.report(key, str(error))
            return None

    def _whole(self, jid: str, found: Mapping[str, bytes]) -> dict[str, dict[str, object]]:

        read = {minion: self._read(data, keys.ret(jid)) for minion, data in found.items()}
        returns = {minion: ret for minion, ret in read.items() if ret is not None}
        large = [minion for minion, ret in returns.items() if is_large(ret)]
        if large:
            kept = self._client.call("hmget", keys.large(jid), large)
            held = [(minion, data) for minion, data in zip(large, kept, strict=True) if isinstance(data, bytes)]
            for minion, whole in unpacked_together(held, keys.large(jid)):
                if isinstance(whole, StoreCorrupt):
                    self._client.faults.report(whole.key, str(whole))
                else:
                    returns[minion] = whole
        return returns


def failed(ret: Mapping[str, object]) -> bool:
    """Return True if a job's return reports a failure: ``success`` is False, or a return code is not 0."""
    retcode = ret.get("retcode", 0)
    codes: Iterable[object] = retcode.values() if isinstance(retcode, Mapping) else [retcode]
    return ret.get("success") is False or any(code not in (0, None) for code in codes)


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _functions(fun: object) -> list[str]:
    """Return the function names under which a job is indexed, each once; ``fun`` is one name or a list."""
    names = fun if isinstance(fun, list | tuple) else [fun]
    return list(
        dict.fromkeys(keys.short(name) for name in names[:_INDEXED_FUNCTIONS] if name and isinstance(name, str))
    )


def _texts(found: Mapping[object, object]) -> dict[str, str]:
    return {text(name): text(value) for name, value in found.items() if name != b"mac"}
