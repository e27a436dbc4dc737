"""Jobs of runners: recorded at their start, ended once, and given up if the runner's process dies.

A runner sends signs of life while it works. Its worker and the role maintenance end jobs without signs, so that nobody
waits for them. Times are Redis' own, because workers may run on machines with different clocks.
"""

from __future__ import annotations

from collections.abc import Mapping

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.jobs import Jobs
from masterstore.lives import jid_ms

#: Seconds between two signs of life of a runner.
SIGN_EVERY = 5.0

#: Seconds of silence after which a runner is checked; on a busy machine several signs may be late.
SILENT_AFTER = 20.0

#: Largest number of runners in a list.
_SHOWN = 1000

#: KEYS: request, load, job, job_minions, runners. ARGV: jid, load JSON, ttl, master's id, request ttl, user, fun, ms of the jid.
_BEGIN = """
local seen = redis.call('GET', KEYS[1])
if seen then return string.match(seen, '^[^ ]*') end
local time = redis.call('TIME')
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[5])
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
redis.call('HSET', KEYS[3], 'created', ARGV[8], 'expected', 1, 'answered', 0, 'returned', 0, 'failed', 0,
           'user', ARGV[6], 'fun', ARGV[7], 'tgt', ARGV[4])
redis.call('EXPIRE', KEYS[3], ARGV[3])
redis.call('SADD', KEYS[4], ARGV[4])
redis.call('EXPIRE', KEYS[4], ARGV[3])
redis.call('ZADD', KEYS[5], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1])
return ARGV[1]
"""

#: KEYS: runners, job. ARGV: jid, where.
_ALIVE = """
local time = redis.call('TIME')
if redis.call('ZSCORE', KEYS[1], ARGV[1]) == false then return 0 end
redis.call('ZADD', KEYS[1], 'XX', time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1])
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HSET', KEYS[2], 'where', ARGV[2]) end
return 1
"""

#: KEYS: runners. ARGV: milliseconds. Returns jid, last sign, jid, last sign...
_SILENT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for _, jid in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[1]), 'LIMIT', 0, 1000)) do
  local sign = redis.call('ZSCORE', KEYS[1], jid)
  table.insert(found, jid)
  table.insert(found, sign)
end
return found
"""


class RunnerJobs:
    """Jobs of runners in the job cache. All operations raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client, jobs: Jobs) -> None:
        self._client = client
        self._jobs = jobs
        register = client.redis.register_script
        self._begin, self._alive, self._silent = map(register, (_BEGIN, _ALIVE, _SILENT))

    def begin(self, request_id: str, load: Mapping[str, object], master: str, *, ttl: int) -> str:
        """Record that a runner's job starts; return its JID, or the JID that an earlier request with this
        ``request_id`` got.

        ``master``: id under which the result will be stored. ``ttl``: seconds to keep the job. The job is added to the
        list of recent jobs only when it ends, so that a runner that lists jobs does not list itself.
        """
        jid = str(load["jid"])
        names = [keys.request(request_id), keys.load(jid), keys.job(jid), keys.job_minions(jid), keys.RUNNERS]
        arguments: list[str | int] = [jid, values.dumps(load), ttl, master, keys.REQUEST_TTL, str(load.get("user", ""))]
        with self._client.calling():
            return text(self._begin(keys=names, args=[*arguments, str(load.get("fun", "")), jid_ms(jid)]))

    def drop(self, request_id: str, jid: str) -> None:
        """Delete the job of a runner that could not be started, so that the request may be sent again."""
        known = self._client.call("get", keys.request(request_id))
        names = [keys.load(jid), keys.job(jid), keys.job_minions(jid)]
        if known is not None and text(known) == jid:
            names.append(keys.request(request_id))
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            pipe.delete(*names)
            pipe.zrem(keys.RUNNERS, jid)
            pipe.execute()

    def alive(self, jid: str, where: str) -> bool:
        """Record a sign of life of a runner; return False if its job has ended or was given up.

        ``where``: host and process of the runner, as text for operators.
        """
        with self._client.calling():
            return bool(self._alive(keys=[keys.RUNNERS, keys.job(jid)], args=[jid, where]))

    def silent(self, for_ms: int) -> dict[str, int]:
        """Return {JID: last sign of life, milliseconds since 1970} of runners that sent no sign for ``for_ms``
        milliseconds.
        """
        with self._client.calling():
            found = self._silent(keys=[keys.RUNNERS], args=[for_ms])
        return {text(jid): int(float(text(sign))) for jid, sign in zip(found[::2], found[1::2], strict=True)}

    def end(
        self,
        load: Mapping[str, object],
        ret: Mapping[str, object],
        *,
        ttl: int,
        event: bytes = b"",
        events_kept: int = 0,
    ) -> bool:
        """Store the result of a runner's job; return False if the job has a result already, which is kept.

        ``ret`` has id, return, success and retcode. ``ttl``: seconds to keep the job. ``event``: packed event to
        append to ``salt:events`` if the result is stored (b"": none). ``events_kept``: about how many events that
        stream keeps.
        """
        return self._jobs.store_external(str(load["jid"]), load, ret, ttl=ttl, event=event, events_kept=events_kept)

    def running(self) -> dict[str, dict[str, object]]:
        """Map of JID to the load of each running runner, with the field ``where`` (its host and process)."""
        jids = [text(jid) for jid in self._client.call("zrange", keys.RUNNERS, 0, _SHOWN)]
        return {jid: (self._jobs.load(jid) or {}) | {"where": self._jobs.meta(jid).get("where", "")} for jid in jids}

    def orders(self, jid: str) -> dict[str, dict[str, object]]:
        """Map of state ID to the operators' order (pause, kill) to an orchestration."""
        name = keys.orders(jid)
        return {
            text(state): values.loads_map(order, name) for state, order in self._client.call("hgetall", name).items()
        }

    def tell(self, jid: str, state: str, order: Mapping[str, object], *, ttl: int) -> None:
        """Store an operator's order, such as pause, for the state with the ID ``state`` of a running orchestration.

        It is merged with an earlier order for that state. ``ttl``: seconds to keep the orders.
        """
        name = keys.orders(jid)
        earlier = self.orders(jid).get(state, {})
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            pipe.hset(name, state, values.dumps({**earlier, **order}))
            pipe.expire(name, ttl)
            pipe.execute()

    def take_back(self, jid: str, state: str | None = None) -> None:
        """Delete the operators' order for one state ID of an orchestration; with None delete all its orders."""
        if state is None:
            self._client.call("delete", keys.orders(jid))
        else:
            self._client.call("hdel", keys.orders(jid), state)

    def lose(self, jid: str, why: str, *, ttl: int) -> dict[str, object] | None:
        """End the job of a runner whose process died: store a failed return with the reason ``why``.

        Return the data for the event of this result; None if the job has a result already, which is kept.
        ``ttl``: seconds to keep the job.
        """
        load = self._jobs.load(jid) or {"jid": jid}
        fun, where = str(load.get("fun", "runner.unknown")), self._jobs.meta(jid).get("where", "")
        message = (
            f"The runner {fun.removeprefix('runner.')} has no result: {why}{f' ({where})' if where else ''}. What it began on"
            " minions may go on: salt-run jobs.active shows it. Run it again once you know how far it came."
        )
        names = {"fun": fun, "jid": jid, "user": load.get("user", ""), "fun_args": load.get("arg", [])}
        result = {**names, "return": message, "success": False}
        kept = {**result, "id": str(load.get("tgt", "master")), "retcode": 1}
        return result if self.end(load, kept, ttl=ttl) else None
