"""A job cache of any size, made within seconds: Redis itself writes what a publish and a return would have written.

Jobs have one minion each, and one return. tests/bench holds a made job against one that went through the store.
"""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import redis

from masterstore import keys
from masterstore.lives import made_ms

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

#: KEYS: none: names are made from what is given. ARGV: ttl, then for each job jid, ms, fun, minion, user, failed, load, return.
_FILL = f"""
local ttl = tonumber(ARGV[1])
local indexes = {{}}
local function put(index, ms, jid) redis.call('ZADD', index, ms, jid); indexes[index] = true end
for at = 2, #ARGV, 8 do
  local jid, ms, fun, minion, user = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local failed, load, ret = ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
  local job = '{keys.JOB}' .. jid
  redis.call('SET', '{keys.LOAD}' .. jid, load, 'EX', ttl)
  redis.call('SADD', job .. ':minions', minion)
  redis.call('EXPIRE', job .. ':minions', ttl)
  redis.call('HSET', job, 'created', ms, 'expected', 1, 'answered', 1, 'returned', 1, 'failed', failed, 'user', user, 'fun', fun,
             'tgt', minion, 'bytes', #load + #ret, 'ended', string.format('%.0f', ms + 1200))
  redis.call('EXPIRE', job, ttl)
  redis.call('HSET', job .. ':life', minion, 'r1200')
  redis.call('EXPIRE', job .. ':life', ttl)
  redis.call('HSET', 'ret:' .. jid, minion, ret)
  redis.call('EXPIRE', 'ret:' .. jid, ttl)
  redis.call('SET', minion .. ':' .. fun, jid, 'EX', ttl)
  redis.call('SADD', '{keys.MINIONS}', minion)
  redis.call('HINCRBY', '{keys.JOB_BYTES}', math.floor(ms / 3600000), #load + #ret)
  put('{keys.JOBS}', ms, jid)
  put('{keys.FUNCTIONS}', ms, fun)
  put('{keys.INDEX}fun:' .. fun, ms, jid)
  put('{keys.INDEX}minion:' .. minion, ms, jid)
  put('{keys.INDEX}user:' .. user, ms, jid)
  put('{keys.INDEX}tgt:' .. minion, ms, jid)
  put('{keys.INDEX}result:' .. (failed == '0' and 'ok' or 'failed'), ms, jid)
end
for index in pairs(indexes) do redis.call('EXPIRE', index, ttl) end
"""

#: The same of Salt's own keys alone, as its Redis returner writes them. KEYS and ARGV as above.
_FILL_PLAIN = """
for at = 2, #ARGV, 8 do
  redis.call('SETEX', 'load:' .. ARGV[at], ARGV[1], ARGV[at + 6])
  redis.call('HSET', 'ret:' .. ARGV[at], ARGV[at + 3], ARGV[at + 7])
  redis.call('EXPIRE', 'ret:' .. ARGV[at], ARGV[1])
  redis.call('SET', ARGV[at + 3] .. ':' .. ARGV[at + 2], ARGV[at])
  redis.call('SADD', 'minions', ARGV[at + 3])
end
"""


@dataclass(frozen=True)
class MadeJob:
    """Job ``number`` of a cache."""

    number: int
    jid: str

    @property
    def fun(self) -> str:
        """Its function."""
        return FUNCTIONS[self.number % len(FUNCTIONS)]

    @property
    def minion(self) -> str:
        """Its minion: every function comes to every minion."""
        return MINIONS[self.number * 7 // len(FUNCTIONS) % len(MINIONS)]

    @property
    def user(self) -> str:
        """Who published it."""
        return USERS[self.number // 3 % len(USERS)]

    @property
    def failed(self) -> bool:
        """Whether its return is a failure."""
        return self.number % FAILS == FAILS - 1

    def load(self) -> dict[str, object]:
        """As the store keeps it."""
        what = {
            "fun": self.fun,
            "arg": ["uptime"],
            "tgt": self.minion,
            "tgt_type": "glob",
            "ret": "",
            "user": self.user,
        }
        return {**what, "jid": self.jid}

    def ret(self) -> dict[str, object]:
        """Its return."""
        about = {"jid": self.jid, "id": self.minion, "fun": self.fun, "fun_args": ["uptime"]}
        return {**about, "return": RESULT, "retcode": int(self.failed), "success": not self.failed}


def jobs(first: int, count: int, begin: datetime) -> list[MadeJob]:
    """Jobs from number ``first`` on, of a cache whose job 0 was made at ``begin``."""
    step = timedelta(milliseconds=STEP_MS)
    start = begin.astimezone(UTC) + first * step
    return [MadeJob(first + at, (start + at * step).strftime("%Y%m%d%H%M%S%f")) for at in range(count)]


def fill(server: redis.Redis, first: int, count: int, begin: datetime, *, ttl: int, plain: bool = False) -> None:
    """Makes so many jobs. ``plain``: only Salt's own keys, as its Redis returner does."""
    script = server.register_script(_FILL_PLAIN if plain else _FILL)
    # While Redis writes one batch the next is made.
    with ThreadPoolExecutor(1) as writer:
        written: Future[object] | None = None
        for at in range(first, first + count, _BATCH):
            arguments: list[str | int] = [ttl]
            for job in jobs(at, min(_BATCH, first + count - at), begin):
                arguments += [job.jid, made_ms(job.jid), job.fun, job.minion, job.user, int(job.failed)]
                arguments += [json.dumps(job.load()), json.dumps(job.ret())]
            if written is not None:
                written.result()
            written = writer.submit(script, args=arguments)
        if written is not None:
            written.result()
