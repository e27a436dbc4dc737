"""Fills a job cache of any size within seconds: a Lua script in Redis writes the keys of a publication and of its return.

Each job has one minion and one return. tests/bench compares a job made here with one that was stored by the store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import redis

from masterstore import keys
from masterstore.lives import jid_ms

#: What jobs are about; each job has one of each, in turn.
FUNCTIONS = (
    *("test.ping", "state.apply", "state.highstate", "cmd.run", "pkg.install", "pkg.list_upgrades", "service.restart"),
    *(
        "service.status",
        "grains.items",
        "pillar.items",
        "network.interfaces",
        "disk.usage",
        "file.stats",
        "user.list_users",
    ),
    *("saltutil.find_job", "saltutil.sync_all", "status.uptime", "ps.top", "cp.get_file", "mine.get"),
)
MINIONS = tuple(f"minion{number:03}" for number in range(100))
USERS = ("root", "sudo_ann", "sudo_bob", "api", "deploy")

#: Every so many jobs one fails: of each function some do.
FAILS = 23

#: Milliseconds between two jobs: a million are fourteen hours.
STEP_MS = 50

#: Jobs of one call: Redis answers nobody else meanwhile.
_BATCH = 2000

#: A result as of a small state run or a few lines of output.
RESULT = "up 14 days, 2:11, 3 users, load average: 0.08, 0.03, 0.01; " * 3


@dataclass(frozen=True)
class MadeJob:
    """Job ``number`` of a generated job cache, with its JID. The Lua script computes the same values from the number."""

    number: int
    jid: str

    @property
    def fun(self) -> str:
        """Function of the job."""
        return FUNCTIONS[self.number % len(FUNCTIONS)]

    @property
    def minion(self) -> str:
        """Id of the job's minion. Every combination of function and minion occurs."""
        return MINIONS[self.number * 7 // len(FUNCTIONS) % len(MINIONS)]

    @property
    def user(self) -> str:
        """User who published the job."""
        return USERS[self.number // 3 % len(USERS)]

    @property
    def failed(self) -> bool:
        """Whether the return is a failure."""
        return self.number % FAILS == FAILS - 1

    def load(self) -> dict[str, object]:
        """Return the load as the store writes it."""
        return _load(self.fun, self.minion, self.user, self.jid)

    def ret(self) -> dict[str, object]:
        """Return the minion's return."""
        return _ret(self.fun, self.minion, self.jid, self.failed)


def _load(fun: str, minion: str, user: str, jid: str) -> dict[str, object]:
    what = {"fun": fun, "arg": ["uptime"], "tgt": minion, "tgt_type": "glob", "ret": "", "user": user}
    return {**what, "jid": jid}


def _ret(fun: str, minion: str, jid: str, failed: bool) -> dict[str, object]:
    about = {"jid": jid, "id": minion, "fun": fun, "fun_args": ["uptime"]}
    return {**about, "return": RESULT, "retcode": int(failed), "success": not failed}


def _table(names: Sequence[str]) -> str:
    return f"{{{','.join(map(repr, names))}}}"


#: What both scripts begin with. ARGV: ttl, number of the first job, then for each job jid, ms.
_EACH = f"""
local FUNCTIONS, MINIONS, USERS = {_table(FUNCTIONS)}, {_table(MINIONS)}, {_table(USERS)}
local LOAD = '{json.dumps(_load("@fun@", "@minion@", "@user@", "@jid@"))}'
local RETURN = '{json.dumps(_ret("@fun@", "@minion@", "@jid@", False))}'
local FAILURE = '{json.dumps(_ret("@fun@", "@minion@", "@jid@", True))}'
local call, ttl, first = redis.call, tonumber(ARGV[1]), tonumber(ARGV[2])
local minions, last = {{}}, {{}}
local function each(make)
  for at = 3, #ARGV, 2 do
    local number, jid = first + (at - 3) / 2, ARGV[at]
    local fun = FUNCTIONS[number % #FUNCTIONS + 1]
    local minion = MINIONS[math.floor(number * 7 / #FUNCTIONS) % #MINIONS + 1]
    local user = USERS[math.floor(number / 3) % #USERS + 1]
    local failed = number % {FAILS} == {FAILS - 1} and 1 or 0
    local fields = {{jid = jid, fun = fun, minion = minion, user = user}}
    local load = string.gsub(LOAD, '@(%a+)@', fields)
    local ret = string.gsub(failed == 1 and FAILURE or RETURN, '@(%a+)@', fields)
    call('SET', '{keys.LOAD}' .. jid, load, 'EX', ttl)
    call('HSET', '{keys.RET}' .. jid, minion, ret)
    call('EXPIRE', '{keys.RET}' .. jid, ttl)
    minions[minion] = true
    last[minion .. ':' .. fun] = jid
    if make then make(jid, ARGV[at + 1], fun, minion, user, failed, #load + #ret) end
  end
  for minion in pairs(minions) do call('SADD', '{keys.MINIONS}', minion) end
  for name, jid in pairs(last) do call('SET', name, jid, 'EX', ttl) end
end
"""

#: As the store keeps jobs. What many of them go into is written once for all.
_FILL = f"""
{_EACH}
local indexes, hours = {{}}, {{}}
local function put(index, ms, jid)
  local rows = indexes[index]
  if not rows then rows = {{}}; indexes[index] = rows end
  rows[#rows + 1] = ms
  rows[#rows + 1] = jid
end
each(function(jid, ms, fun, minion, user, failed, size)
  local job = '{keys.JOB}' .. jid
  call('SADD', job .. ':minions', minion)
  call('EXPIRE', job .. ':minions', ttl)
  call('HSET', job, 'created', ms, 'expected', 1, 'answered', 1, 'returned', 1, 'failed', failed, 'user', user, 'fun', fun,
       'tgt', minion, 'bytes', size, 'ended', ms + 1200)
  call('EXPIRE', job, ttl)
  call('HSET', job .. ':life', minion, 'r1200')
  call('EXPIRE', job .. ':life', ttl)
  local hour = math.floor(ms / 3600000)
  hours[hour] = (hours[hour] or 0) + size
  put('{keys.JOBS}', ms, jid)
  put('{keys.FUNCTIONS}', ms, fun)
  put('{keys.INDEX}fun:' .. fun, ms, jid)
  put('{keys.INDEX}minion:' .. minion, ms, jid)
  put('{keys.INDEX}user:' .. user, ms, jid)
  put('{keys.INDEX}tgt:' .. minion, ms, jid)
  put('{keys.INDEX}result:' .. (failed == 0 and 'ok' or 'failed'), ms, jid)
end)
for hour, size in pairs(hours) do call('HINCRBY', '{keys.JOB_BYTES}', hour, size) end
for index, rows in pairs(indexes) do
  for at = 1, #rows, 2000 do call('ZADD', index, unpack(rows, at, math.min(at + 1999, #rows))) end
  call('EXPIRE', index, ttl)
end
"""

#: Salt's own keys alone, as its Redis returner writes them.
_FILL_PLAIN = f"{_EACH}\neach()"


def jobs(first: int, count: int, begin: datetime) -> list[MadeJob]:
    """Return ``count`` MadeJobs from number ``first`` on; job 0 of the cache was created at ``begin``."""
    step = timedelta(milliseconds=STEP_MS)
    start = begin.astimezone(UTC) + first * step
    return [MadeJob(first + at, (start + at * step).strftime("%Y%m%d%H%M%S%f")) for at in range(count)]


def fill(server: redis.Redis, first: int, count: int, begin: datetime, *, ttl: int, plain: bool = False) -> None:
    """Write ``count`` jobs into Redis with a TTL of ``ttl`` seconds. ``plain``: only the keys of Salt's Redis returner."""
    script = server.register_script(_FILL_PLAIN if plain else _FILL)
    # While Redis writes one batch the next is made.
    with ThreadPoolExecutor(1) as writer:
        written: Future[object] | None = None
        for at in range(first, first + count, _BATCH):
            arguments: list[str | int] = [ttl, at]
            for job in jobs(at, min(_BATCH, first + count - at), begin):
                arguments += [job.jid, jid_ms(job.jid)]
            if written is not None:
                written.result()
            written = writer.submit(script, args=arguments)
        if written is not None:
            written.result()
