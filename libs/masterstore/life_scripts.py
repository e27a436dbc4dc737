"""Lua scripts that change and query the states of jobs on minions. They begin with ``job_scripts.COMMON``."""

from __future__ import annotations

from masterstore import keys
from masterstore.job_scripts import COMMON

#: Largest number of jobs of an index that one call reads.
_LOOKED_AT = 2000

#: Approximate number of minions of a job that one call of SETTLE checks.
_SETTLED = 500

#: KEYS: for each sign job, life, job_minions. ARGV: minion, now ms, then for each sign jid, letter, ms, base ms.
#: Answers {faults, then for each sign {1 moved, 0 not, -1 no such job or not this minion's; letter of the state now}}.
SIGN = f"""
{COMMON}
local minion, now = ARGV[1], tonumber(ARGV[2])
local answers = {{faults}}
try('ZADD', '{keys.SEEN}', 'GT', ARGV[2], minion)
try('SADD', '{keys.SIGNERS}', minion)
for at = 0, #KEYS / 3 - 1 do
  local job, lives = KEYS[at * 3 + 1], KEYS[at * 3 + 2]
  local jid, to, ms, base = ARGV[at * 4 + 3], ARGV[at * 4 + 4], tonumber(ARGV[at * 4 + 5]), tonumber(ARGV[at * 4 + 6])
  local before, ttl = alive(job)
  if before and try('SISMEMBER', KEYS[at * 3 + 3], minion) == 1 then
    local counts = copied(before)
    local from, moved = move(jid, lives, minion, to, ms, base, counts, ttl, now)
    if moved then conclude(jid, job, before, counts, base, ttl, now) end
    answers[#answers + 1] = {{moved and 1 or 0, moved and to or from}}
  else
    answers[#answers + 1] = {{-1, ''}}
  end
end
return answers
"""

#: KEYS: job, life, job_minions. ARGV: jid, letter, now ms, base ms, minions... Answers {faults, those that moved}.
MOVE_MANY = f"""
{COMMON}
local jid, to, now, base = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local done, before, ttl = {{}}, alive(KEYS[1])
if not before then return {{faults, done}} end
local counts = copied(before)
for at = 5, #ARGV do
  if try('SISMEMBER', KEYS[3], ARGV[at]) == 1 then
    local _, moved = move(jid, KEYS[2], ARGV[at], to, now, base, counts, ttl, now)
    if moved then done[#done + 1] = ARGV[at] end
  end
end
if #done > 0 then conclude(jid, KEYS[1], before, counts, base, ttl, now) end
return {{faults, done}}
"""

#: KEYS: the minion's index, the index of wide jobs, its waiting jobs. ARGV: minion, after ms, now ms, limit (0: only waiting ones),
#: letters of the states that a job may be in.
#: Answers {faults, jid, load, replay until ms, jid, ...}.
MISSED = f"""
{COMMON}
local minion, now, limit = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local answers, taken = {{faults}}, {{}}
-- A minion that asks for missed jobs also sends signs, so its silence has a meaning from now on.
if limit > 0 then try('SADD', '{keys.SIGNERS}', minion) end
local function take(jid, wide, deadline)
  if taken[jid] then return end
  local job = '{keys.JOB}' .. jid
  local kept = try('HMGET', job, 'replay_until', 'when_back_until', 'mac')
  local till = kept and tonumber(kept[deadline] or 0)
  if not till or till <= now then return end
  if wide and try('SISMEMBER', job .. ':minions', minion) ~= 1 then return end
  local text = try('HGET', job .. ':life', minion)
  local state = text and (string.match(text, '(%a)%-?%d+$') or '?') or 'e'
  if text == nil or not string.find(ARGV[5], state, 1, true) then return end
  local load = try('GET', '{keys.LOAD}' .. jid)
  if not load then return end
  taken[jid] = true
  answers[#answers + 1] = jid
  answers[#answers + 1] = load
  answers[#answers + 1] = kept[1] or '0'
  answers[#answers + 1] = kept[2] or '0'
  answers[#answers + 1] = kept[3] or ''
end
for at = 1, 2 do
  local found = limit > 0 and try('ZREVRANGEBYSCORE', KEYS[at], ARGV[3], '(' .. ARGV[2], 'LIMIT', 0, {_LOOKED_AT}) or {{}}
  for _, jid in ipairs(found) do
    if #answers > limit * 5 * at then break end
    take(jid, at == 2, 1)
  end
end
if limit == 0 then
  for _, jid in ipairs(try('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[3], '+inf', 'LIMIT', 0, {_LOOKED_AT}) or {{}}) do
    take(jid, false, 2)
  end
end
return answers
"""

#: KEYS: job, life, publications. ARGV: jid, minion, now ms, base ms, stream cap, publication JSON, letters of the
#: states in which the job is sent again though the state does not change, code of the publication. Answers {1 done, faults}.
RESEND = f"""
{COMMON}
local jid, now, base = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local before, ttl = alive(KEYS[1])
if not before or (before.when_back_until or 0) <= now then return {{0, faults}} end
local counts = copied(before)
local from, moved = move(jid, KEYS[2], ARGV[2], 'e', now, base, counts, ttl, now)
if not moved and not string.find(ARGV[7], from, 1, true) then return {{0, faults}} end
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[5], '*', 'load', ARGV[6], 'mac', ARGV[8])
conclude(jid, KEYS[1], before, counts, base, ttl, now)
return {{1, faults}}
"""

#: Finds minions of a job that are expired or lost. KEYS: job, life, job_minions, due.
#: ARGV: jid, cursor, now ms, base ms, silent since ms, milliseconds that a sign may take. Answers {faults, cursor, expired, lost}.
SETTLE = f"""
{COMMON}
local jid, now, base, grace = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6])
local before, ttl = alive(KEYS[1])
local scanned = before and waited_for(before) > 0 and try('SSCAN', KEYS[3], ARGV[2], 'COUNT', {_SETTLED})
local minions = scanned and scanned[2]
local lives = minions and (#minions == 0 and {{}} or try('HMGET', KEYS[2], unpack(minions)))
if not lives then
  try('ZREM', KEYS[4], jid)
  return {{faults, '0', 0, 0}}
end
local counts, expired, lost = copied(before), 0, 0
local created = counts.created or base
local over = math.max(counts.replay_until or 0, created + grace) < now
local waited = math.max(counts.replay_until or 0, counts.when_back_until or 0, created + grace) < now
for at, minion in ipairs(minions) do
  local state, to = lives[at] and string.match(lives[at], '(%a)%-?%d+$') or 'e', nil
  if state == 'o' and waited then to = 'x' end
  -- A minion that never sends signs may be working on the job, so it does not expire.
  if state == 'e' and over and try('SISMEMBER', '{keys.SIGNERS}', minion) == 1 then to = 'x' end
  if state == 'd' or state == 's' then
    local seen = try('ZSCORE', '{keys.SEEN}', minion)
    local step = base + tonumber(string.match(lives[at], '(%-?%d+)$'))
    if math.max(tonumber(seen or 0) or 0, step) < tonumber(ARGV[5]) then to = 'l' end
  end
  if to then
    local _, moved = move(jid, KEYS[2], minion, to, now, base, counts, ttl, now)
    if moved and to == 'x' then expired = expired + 1 end
    if moved and to == 'l' then lost = lost + 1 end
  end
end
conclude(jid, KEYS[1], before, counts, base, ttl, now)
if scanned[1] == '0' then
  if waited_for(counts) <= 0 then
    try('ZREM', KEYS[4], jid)
  else
    -- Old jobs are checked less often: a job that runs for a day is checked about a dozen times.
    try('ZADD', KEYS[4], 'XX', whole(now + math.max(grace, (now - created) / 2)), jid)
  end
end
return {{faults, scanned[1], expired, lost}}
"""

#: Drops a job. KEYS: job, then the keys that go with it. ARGV: jid, hour of its creation, number of keys that are deleted whole
#: (including the job's); from the others the JID is removed. Returns the bytes of the job.
EVICT = f"""
{COMMON}
local counts = counts_of(KEYS[1]) or {{}}
local last = tonumber(ARGV[3])
redis.call('DEL', unpack(KEYS, 1, last))
for at = last + 1, #KEYS do try('ZREM', KEYS[at], ARGV[1]) end
if counts.bytes then try('HINCRBY', '{keys.JOB_BYTES}', ARGV[2], whole(-counts.bytes)) end
return {{faults, whole(counts.bytes or 0)}}
"""
