"""Lua scripts that check one job, repair its counters, and migrate a job of an older schema.

Each script handles one job as a whole, so the roles may work on meanwhile.
"""

from __future__ import annotations

from masterstore import keys
from masterstore.job_scripts import COMMON

#: Function that counts the states of a job. ARGV of scripts that use it: jid, base ms, now ms.
_COUNTED = """
local function counted(job, minions, lives)
  local is, tally = counts_of(job) or {}, {}
  local said = {answered = 0, delivered = 0, started = 0, offline = 0, lost = 0, cancelled = 0, expired = 0}
  for at = 1, #minions, 1000 do
    local some = {unpack(minions, at, math.min(at + 999, #minions))}
    for _, text in ipairs(try('HMGET', lives, unpack(some)) or {}) do
      local state = text and string.match(text, '(%a)%-?%d+$') or 'e'
      if state == 'r' then said.answered = said.answered + 1 end
      if NAME[state] then said[NAME[state]] = said[NAME[state]] + 1 end
    end
  end
  said.expected = #minions
  return is, said
end
"""

#: KEYS: job, life, job_minions. ARGV: jid, base ms, now ms, mend (0/1).
#: Returns {faults, names of wrong counts}. No names for a job of another schema and for a running runner.
RECOUNT = f"""
{COMMON}
{_COUNTED}
local jid, base, now = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local before, ttl = alive(KEYS[1])
local minions = before and before.bytes and try('SMEMBERS', KEYS[3])
if not minions then return {{faults, {{}}}} end
local is, said = counted(KEYS[1], minions, KEYS[2])
local wrong = {{}}
local counts = copied(is)
for name, number in pairs(said) do
  if (is[name] or 0) ~= number then
    wrong[#wrong + 1] = name
    counts[name] = number
  end
end
if #wrong > 0 and ARGV[4] == '1' then
  for letter, name in pairs(INDEXED) do
    if (counts[name] or 0) > 0 then
      put('{keys.INDEX}state:' .. name, whole(counts.created or base), jid, ttl, now)
    else
      try('ZREM', '{keys.INDEX}state:' .. name, jid)
    end
  end
  conclude(jid, KEYS[1], is, counts, base, ttl, now)
end
return {{faults, wrong}}
"""

#: KEYS: job, life, job_minions, load, ret; then the indexes that the job goes into.
#: ARGV: jid, base ms, now ms, bytes, functions... Returns {faults, 1 converted, 0 was already of this schema}.
MIGRATE = f"""
{COMMON}
{_COUNTED}
local jid, base, now = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local before, ttl = alive(KEYS[1])
if not before or before.bytes or redis.call('EXISTS', KEYS[4]) == 0 then return {{faults, 0}} end
local created = whole(before.created or base)
local ended = math.max(before.ended or now, tonumber(created))
local minions = try('SMEMBERS', KEYS[3]) or {{}}
for at = 1, #minions, 1000 do
  local some = {{unpack(minions, at, math.min(at + 999, #minions))}}
  for place, ret in ipairs(try('HMGET', KEYS[5], unpack(some)) or {{}}) do
    -- The time of the return was not stored: it is at most the job's end.
    if ret then try('HSETNX', KEYS[2], some[place], 'r' .. whole(ended - base)) end
  end
end
try('EXPIRE', KEYS[2], ttl)
local is, said = counted(KEYS[1], minions, KEYS[2])
local counts = copied(is)
for name, number in pairs(said) do counts[name] = number end
counts.bytes = tonumber(ARGV[4])
counts.created = tonumber(created)
try('HINCRBY', '{keys.JOB_BYTES}', whole(math.floor(tonumber(created) / 3600000)), ARGV[4])
for at = 6, #KEYS do put(KEYS[at], created, jid, ttl, now) end
for at = 5, #ARGV do put('{keys.FUNCTIONS}', created, ARGV[at], ttl, now) end
if (counts.failed or 0) > 0 then put('{keys.INDEX}result:failed', created, jid, ttl, now) end
if waited_for(counts) > 0 then
  put('{keys.INDEX}state:running', created, jid, ttl, now)
  put('{keys.DUE}', ARGV[3], jid, ttl, now)
  if counts.ended then
    counts.ended = nil
    try('HDEL', KEYS[1], 'ended')
  end
elseif (counts.failed or 0) == 0 then
  put('{keys.INDEX}result:ok', created, jid, ttl, now)
end
keep_counts(KEYS[1], is, counts)
return {{faults, 1}}
"""
