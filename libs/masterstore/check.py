"""Checks every key of the store, repairs faults, and migrates jobs of an older schema.

It reads by ``SCAN`` in short steps, so the roles work on meanwhile. Each fault is a Finding that names its key and its
repair. A repair may be repeated without harm.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from masterstore import check_scripts, job_scripts, keys, values
from masterstore.cache import unpack
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt
from masterstore.keys import KEYS, KeySpec
from masterstore.large_returns import unpacked
from masterstore.life import read
from masterstore.lives import jid_ms
from masterstore.schema import Schema

#: Keys, fields or entries that are read in one step.
_STEP = 500

#: What a part of a pattern may be; any other part is any text.
_PARTS = {
    "jid": r"\d{20}",
    "value": ".*",
    "state": "accepted|pending|rejected|denied",
    "cache": "salt:grains|salt:pillar",
}


#: Rows whose entries are JIDs, and rows whose fields are msgpack.
_OF_JOBS = ("jobs", "wide_jobs", "due_jobs", "index", "waiting", "waiting_of", "runners")
_PACKED = ("grains", "mine", "bank")

#: As in the index of an older master, whose JIDs may have the id of a process behind them.
_JID = re.compile(r"\d{20}(_\d+)?")


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that ``saltern store check`` found in one Redis key: key, reason, and the function that repairs it, if any."""

    key: str
    why: str
    #: What mending does; empty where it does nothing.
    remedy: str = ""
    #: Does it.
    repair: Callable[[], object] | None = None

    @property
    def line(self) -> str:
        """The fault as one line of text. Bytes of a key that are not UTF-8 are escaped as ``redis-cli`` shows them."""
        key = self.key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return f"{key}: {self.why}"


def _form(spec: KeySpec) -> re.Pattern[str]:
    pattern = spec.pattern.replace("salt:<cache>", "<cache>")
    pieces = re.split(r"<(\w+)>", pattern)
    return re.compile(
        "".join(f"(?:{_PARTS.get(piece, '.+')})" if odd % 2 else re.escape(piece) for odd, piece in enumerate(pieces)),
        re.DOTALL,
    )


#: Rows of the table with their forms, those that say most of a name first. ``<minion>:<fun>`` is any text: not looked at.
_FORMS = sorted(
    ((_form(spec), spec) for spec in KEYS if spec.name != "last_jid"),
    key=lambda row: len(re.sub(r"<\w+>", "", row[1].pattern)),
    reverse=True,
)


def row_of(name: str) -> KeySpec | None:
    """Return the row of the table KEYS whose pattern a Redis key matches; None for a key of another program."""
    return next((spec for form, spec in _FORMS if form.fullmatch(name)), None)


class Check:
    """Checks and repairs the master's data in Redis. All operations raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._schema_version = Schema(client)
        self._recount = client.redis.register_script(check_scripts.RECOUNT)
        self._migrate = client.redis.register_script(check_scripts.MIGRATE)
        #: Row -> what is looked at in its values. What no row names is looked at by type and time to live alone.
        self._values: Mapping[str, Callable[[str], Iterator[Finding]]] = {
            "load": self._load,
            "ret": self._ret,
            "large": self._large,
            "life": self._life,
            "job": self._job,
            "job_bytes": self._bytes,
            "publications": self._publications,
            "schema": self._schema,
            **dict.fromkeys(_OF_JOBS, self._entries),
            **dict.fromkeys(_PACKED, self._packed),
        }

    def findings(self, keep_seconds: int, looked_at: Callable[[], object] = lambda: None) -> Iterator[Finding]:
        """Yield a Finding for each fault in the master's data as it is found. ``looked_at`` is called once for each
        Redis key (progress).

        ``keep_seconds``: time to live that a repair sets on a key that must expire and has none.
        """
        for name in self._client.names(None, _STEP):
            looked_at()
            yield from self._of(name, keep_seconds)

    def migrate(self, done: Callable[[str], object]) -> int:
        """Migrate every job of schema 1, and store the current schema version in Redis; return the number of
        migrated jobs.

        ``done`` is called with the JID of each migrated job. After an interruption, call it again: migrated jobs
        are skipped.
        """
        count = 0
        for name in self._client.names("salt:job:*", _STEP):
            spec = row_of(name)
            if spec is not None and spec.name == "job" and self._brought_over(name.removeprefix(keys.JOB)):
                count += 1
                done(name.removeprefix(keys.JOB))
        self._schema_version.say()
        return count

    def _of(self, name: str, keep_seconds: int) -> Iterator[Finding]:
        spec = row_of(name)
        if spec is None:
            if name.startswith("salt:"):
                yield Finding(name, "no key of this store: of another program, or of a newer version; it is left alone")
            return
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.type(name)
            pipe.ttl(name)
            kind, left = pipe.execute()
        if text(kind) == "none":
            return
        if text(kind) != spec.type:
            why = f"a {text(kind)} where {spec.pattern} is a {spec.type}"
            yield Finding(name, why, "removed", lambda: self._client.call("delete", name))
            return
        if left == -1 and not spec.ttl.startswith("none"):
            remedy = f"ends in {keep_seconds} s"
            yield Finding(name, "would never end", remedy, lambda: self._client.call("expire", name, keep_seconds))
        yield from self._values.get(spec.name, _nothing)(name)

    def _load(self, name: str) -> Iterator[Finding]:
        data = self._client.call("get", name)
        why = _no_map(data, name) if data is not None else ""
        if why:
            yield Finding(name, why, "removed", lambda: self._client.call("delete", name))

    def _fields(self, name: str) -> Iterator[tuple[str, bytes]]:
        cursor = 0
        while True:
            cursor, found = self._client.call("hscan", name, cursor, count=_STEP)
            yield from ((text(field), data) for field, data in found.items())
            if cursor == 0:
                return

    def _bad_field(self, name: str, field: str, why: str) -> Finding:
        return Finding(f"{name}[{field}]", why, "removed", lambda: self._client.call("hdel", name, field))

    def _ret(self, name: str) -> Iterator[Finding]:
        for field, data in self._fields(name):
            why = _no_map(data, name)
            if why:
                yield self._bad_field(name, field, why)

    def _large(self, name: str) -> Iterator[Finding]:
        for field, data in self._fields(name):
            try:
                unpacked(data, name)
            except StoreCorrupt as error:
                yield self._bad_field(name, field, error.why)

    def _life(self, name: str) -> Iterator[Finding]:
        jid = name.removeprefix(keys.JOB).removesuffix(":life")
        for field, data in self._fields(name):
            try:
                read(text(data), 0, 0)
            except ValueError as error:
                # Without a word it is expected again; who returned is known by the return.
                returned = self._client.call("hexists", keys.ret(jid), field)
                if returned:
                    at = max(int(time.time() * 1000) - jid_ms(jid), 0)
                    yield Finding(
                        f"{name}[{field}]", str(error), "returned", self._calling("hset", name, field, f"r{at}")
                    )
                else:
                    yield Finding(f"{name}[{field}]", str(error), "expected", self._calling("hdel", name, field))

    def _entries(self, name: str) -> Iterator[Finding]:
        cursor = 0
        while True:
            cursor, found = self._client.call("zscan", name, cursor, count=_STEP)
            for entry, _ in found:
                if _JID.fullmatch(text(entry)) is None:
                    yield Finding(f"{name}[{text(entry)}]", "no JID", "removed", self._calling("zrem", name, entry))
            if cursor == 0:
                return

    def _packed(self, name: str) -> Iterator[Finding]:
        for field, data in self._fields(name):
            try:
                value = unpack(data, name)
            except StoreCorrupt as error:
                yield self._bad_field(name, field, error.why)
                continue
            if name == keys.GRAINS and not isinstance(value, dict):
                yield self._bad_field(name, field, f"of type {type(value).__name__}, not a map")

    def _calling(self, *command: object) -> Callable[[], object]:
        verb, *arguments = command
        return lambda: self._client.call(str(verb), *arguments)

    def _job(self, name: str) -> Iterator[Finding]:
        jid = name.removeprefix(keys.JOB)
        for field in ("created", "expected", "answered", "returned", "failed", "bytes"):
            number = self._client.call("hget", name, field)
            if number is not None and not text(number).lstrip("-").isdecimal():
                yield self._bad_field(name, field, f"{text(number)!r} is no number")
                return
        if not self._client.call("hexists", name, "bytes") and self._client.call("exists", keys.load(jid)):
            runs = self._client.call("zscore", keys.RUNNERS, jid) is not None
            if not runs:
                yield Finding(name, "a job of schema 1", "of this schema", lambda: self._brought_over(jid))
                return
        wrong = self._counted(jid, repair=False)
        if wrong:
            why = f"{', '.join(wrong)}: not what the lives of its minions say"
            yield Finding(name, why, "counted anew", lambda: self._counted(jid, repair=True))

    def _counted(self, jid: str, *, repair: bool) -> list[str]:
        names = [keys.job(jid), keys.life(jid), keys.job_minions(jid)]
        with self._client.calling():
            faults, wrong = self._recount(keys=names, args=[jid, jid_ms(jid), int(time.time() * 1000), int(repair)])
        self._client.faults.of_script(faults)
        return sorted(map(text, wrong))

    def _bytes(self, name: str) -> Iterator[Finding]:
        for field, data in self._fields(name):
            if not (field.isdecimal() and text(data).lstrip("-").isdecimal()):
                yield self._bad_field(name, field, f"not an hour and its bytes: {text(data)!r}")

    def _publications(self, name: str) -> Iterator[Finding]:
        after = "-"
        while True:
            entries = self._client.call("xrange", name, min=after, count=_STEP)
            for stream_id, fields in entries:
                where = f"{name}[{text(stream_id)}]"
                why = _no_map(fields[b"load"], where) if b"load" in fields else "an entry without a load"
                if why:
                    yield Finding(where, why, "removed", self._calling("xdel", name, stream_id))
            if len(entries) < _STEP:
                return
            after = f"({text(entries[-1][0])}"

    def _schema(self, name: str) -> Iterator[Finding]:
        try:
            version = self._schema_version.version()
        except StoreCorrupt as error:
            yield Finding(name, error.why, "removed", lambda: self._client.call("delete", name))
            return
        if version is not None and version > keys.SCHEMA_VERSION:
            yield Finding(
                name, f"schema {version}, and this version knows {keys.SCHEMA_VERSION}: use the newer version"
            )
        elif version is not None and version < keys.SCHEMA_VERSION:
            yield Finding(
                name, f"schema {version}, not {keys.SCHEMA_VERSION}: `saltern store migrate` brings jobs over"
            )

    def _brought_over(self, jid: str) -> bool:
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.hmget(keys.job(jid), "fun", "user", "tgt")
            pipe.strlen(keys.load(jid))
            pipe.hvals(keys.ret(jid))
            pipe.scard(keys.job_minions(jid))
            named, load, returns, count = pipe.execute(raise_on_error=False)
        if not (
            isinstance(named, list) and isinstance(load, int) and isinstance(returns, list) and isinstance(count, int)
        ):
            self._client.faults.report(
                keys.job(jid), "one of its keys is of another type; `saltern store repair` first"
            )
            return False
        fun, user, tgt = (text(value or b"") for value in named)
        functions = [keys.short(name) for name in fun.split(",") if name]
        names = [keys.job(jid), keys.life(jid), keys.job_minions(jid), keys.load(jid), keys.ret(jid), keys.JOBS]
        names += [keys.index("user", user), keys.index("tgt", tgt), *(keys.index("fun", name) for name in functions)]
        if count <= job_scripts.WIDE:
            minions = self._client.call("smembers", keys.job_minions(jid))
            names += [keys.index("minion", text(minion)) for minion in minions]
        else:
            names.append(keys.WIDE_JOBS)
        size = load + sum(map(len, returns))
        with self._client.calling():
            faults, done = self._migrate(keys=names, args=[jid, jid_ms(jid), int(time.time() * 1000), size, *functions])
        self._client.faults.of_script(faults)
        return bool(done)


def _nothing(name: str) -> Iterator[Finding]:
    return iter(())


def _no_map(data: bytes, name: str) -> str:

    try:
        values.loads_map(data, name)
    except StoreCorrupt as error:
        return error.why
    return ""
