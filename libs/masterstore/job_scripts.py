"""Lua scripts on jobs. Redis runs each as one step that happens as a whole or not at all.

``life.MOVES`` lists the allowed changes of a job's state on a minion. A job's hash has a counter for each state except
``expected`` and ``returned`` (counted as ``answered``); the number of minions still waited for is computed from them.
Other scripts are in ``return_scripts`` and ``life_scripts``.

A malformed key must not cost a result. Everything besides a script's main purpose therefore goes through ``try``,
which skips a key of the wrong type and reports it among the faults in the script's answer.
"""

from __future__ import annotations

from masterstore import audit, audit_chain, keys, life

#: Jobs for more minions than this are in the index of wide jobs only, and not in the index of each minion.
WIDE = 100

#: One of _TRIMS writes removes up to _TRIMMED old entries from its index: more than were added, so no index grows.
_TRIMS, _TRIMMED = 8, 64

#: An index lives 1/AHEAD longer than its jobs, so that most writes need not renew its TTL.
AHEAD = 16

#: Beginning of every script on jobs. ``try`` skips malformed keys: a key of a wrong type, or a text in place of a number.
TRY = """
local faults, pcall = {}, redis.pcall
local function try(...)
  local answer = pcall(...)
  if type(answer) == 'table' and answer.err then
    local why = answer.err
    if not (string.find(why, 'WRONGTYPE', 1, true) or string.find(why, 'not an integer', 1, true)) then
      return redis.call(...)
    end
    local given = {...}
    faults[#faults + 1] = given[2]
    return nil
  end
  return answer
end
-- Redis accepts integers as they are. A number that becomes part of a text, or may have a fraction, needs this.
local function whole(number) return string.format('%.0f', number) end
"""

#: Function ``put``: adds a job to an index and renews the index's TTL, which is a little longer than the job's.
PUT = f"""
local function put(index, score, member, ttl, now)
  if try('ZADD', index, score, member) == nil then return end
  local due = try('TTL', index) < ttl
  if due then try('EXPIRE', index, math.floor(ttl + ttl / {AHEAD}) + 1) end
  if due or now % {_TRIMS} == 0 then
    local old = try('ZRANGEBYSCORE', index, '-inf', '(' .. whole(now - ttl * 1000), 'LIMIT', 0, {_TRIMMED})
    if #old > 0 then try('ZREM', index, unpack(old)) end
  end
end
"""

#: Beginning of the scripts that change states of jobs.
COMMON = f"""
{life.lua()}
{TRY}
{PUT}
local COUNTS = {{'created', 'expected', 'answered', 'returned', 'failed', 'delivered', 'started', 'offline', 'lost', 'cancelled',
                'expired', 'late', 'when_back_until', 'replay_until', 'ended', 'bytes'}}
local function counts_of(job)
  local found = try('HMGET', job, unpack(COUNTS))
  if not found then return nil end
  local counts = {{}}
  for at, name in ipairs(COUNTS) do
    if found[at] then
      counts[name] = tonumber(found[at])
      if not counts[name] then faults[#faults + 1] = job end
    end
  end
  return counts
end
-- Returns the counts of a job and its TTL in seconds; nil for an unknown job.
local function alive(job)
  local ttl = redis.call('TTL', job)
  if ttl == -2 then return nil end
  local counts = counts_of(job)
  if counts and ttl == -1 then faults[#faults + 1] = job end
  if not counts or ttl < 1 then return nil end
  return counts, ttl
end
local function keep_counts(job, before, counts)
  local changed = {{}}
  for name, value in pairs(counts) do
    if value ~= before[name] then
      changed[#changed + 1] = name
      changed[#changed + 1] = whole(value)
    end
  end
  if #changed > 0 then try('HSET', job, unpack(changed)) end
end
local function waited_for(counts)
  return (counts.expected or 0) - (counts.answered or 0) - (counts.lost or 0) - (counts.cancelled or 0) - (counts.expired or 0)
end
local function add(counts, name, number) counts[name] = (counts[name] or 0) + number end
-- Applies one sign of an expected minion. Returns the previous state, and whether the state changed.
local function move(jid, lives, minion, to, at, base, counts, ttl, now)
  local text = try('HGET', lives, minion)
  if text == nil then return 'e', false end
  local from, last = 'e', nil
  if text and text ~= '' then
    from, last = string.match(text, '(%a)(%-?%d+)$')
    if not from or not MAY[from] then
      faults[#faults + 1] = lives
      from, last, text = 'e', nil, ''
    end
  end
  if not string.find(MAY[from], to, 1, true) then return from, false end
  at = math.max(math.min(at, now), counts.created or base, last and base + tonumber(last) or base)
  try('HSET', lives, minion, string.gsub(text or '', to .. '%-?%d+', '') .. to .. whole(at - base))
  try('EXPIRE', lives, ttl)
  if NAME[from] then add(counts, NAME[from], -1) end
  if NAME[to] then add(counts, NAME[to], 1) end
  if INDEXED[to] and counts[NAME[to]] == 1 then
    put('{keys.INDEX}state:' .. INDEXED[to], whole(counts.created or base), jid, ttl, now)
  end
  if INDEXED[from] and counts[NAME[from]] <= 0 then try('ZREM', '{keys.INDEX}state:' .. INDEXED[from], jid) end
  -- A waiting job waits for every minion that has not received it, also if the minion was online at the publication.
  if counts.when_back_until and string.find('eo', from, 1, true) and not string.find('eo', to, 1, true) then
    try('ZREM', '{keys.WAITING_OF}' .. minion, jid)
    -- counts does not contain this return yet.
    local taken = (counts.delivered or 0) + (counts.started or 0) + (to == 'r' and 1 or 0)
    if waited_for(counts) <= taken then try('ZREM', '{keys.WAITING}', jid) end
  end
  return from, true
end
-- To be called after all moves: sets or clears the job's end, and stores the counts.
local function conclude(jid, job, before, counts, base, ttl, now)
  local was, is = waited_for(before) > 0, waited_for(counts) > 0
  if was and not is then
    counts.ended = now
    try('ZREM', '{keys.INDEX}state:running', jid)
  elseif is and not was then
    try('HDEL', job, 'ended')
    counts.ended = before.ended
    put('{keys.INDEX}state:running', whole(counts.created or base), jid, ttl, now)
  end
  keep_counts(job, before, counts)
end
local function copied(counts)
  local copy = {{}}
  for name, value in pairs(counts) do copy[name] = value end
  return copy
end
"""

#: KEYS: request, load, job, job_minions, life, publications, audit, end of the audit record; then the indexes that the job
#: goes into.
#: ARGV: jid, load JSON, ttl, now ms, request ttl, stream cap, user, fun, tgt, publication JSON, base ms,
#: replay until ms (0: never), when back until ms (0: does not wait), away since ms (0: presence is not checked),
#: number of minions, number of functions, code of the publication, code of the load ("": none),
#: entry of the audit record ("": none), its code, its worker, the worker's count,
#: minions..., functions..., minions that are offline.
#: Returns {1 new, 0 repeated request, -1 the JID exists, -2 the worker's count is taken; "jid stream id"; minions that are
#: offline; faults}.
PUBLISH = f"""
local seen = redis.call('GET', KEYS[1])
if seen then return {{0, seen, {{}}, {{}}}} end
if redis.call('EXISTS', KEYS[2]) == 1 then return {{-1, '', {{}}, {{}}}} end
{COMMON}
{audit.ENTER}
local jid, ttl, now, base = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[11])
local when_back, away_since = tonumber(ARGV[13]), tonumber(ARGV[14])
local first, last = 23, 22 + tonumber(ARGV[15])
-- A job without an entry in the audit record is not published. A job that cannot be published is not recorded either.
local entry = ARGV[19] ~= '' and enter(KEYS[7], KEYS[8], ARGV[21], ARGV[22], ARGV[19], ARGV[20])
if entry == 0 then return {{-2, '', {{}}, {{}}}} end
if type(entry) == 'table' and entry.err then
  -- Redis is full, or cannot write now: that is said as of any other command.
  local code = string.match(entry.err, '^%-?(%u+) ')
  if code ~= 'ERR' and code ~= 'WRONGTYPE' then return entry end
  return redis.error_reply('{audit_chain.REFUSED}: ' .. entry.err)
end
redis.call('SET', KEYS[2], ARGV[2], 'EX', ttl)
local id = redis.pcall('XADD', KEYS[6], 'MAXLEN', '~', ARGV[6], '*', 'load', ARGV[10], 'mac', ARGV[17])
if type(id) == 'table' and id.err then
  redis.call('DEL', KEYS[2])
  if entry then redis.call('XDEL', KEYS[7], entry) end
  return id
end
redis.call('DEL', KEYS[3], KEYS[4], KEYS[5])
local counts = {{expected = 0, created = now, bytes = #ARGV[2]}}
if when_back > 0 then counts.when_back_until = when_back end
for i = first, last, 1000 do
  counts.expected = counts.expected + redis.call('SADD', KEYS[4], unpack(ARGV, i, math.min(i + 999, last)))
end
redis.call('EXPIRE', KEYS[4], ttl)
redis.call('HSET', KEYS[3], 'created', ARGV[4], 'expected', counts.expected, 'answered', 0, 'returned', 0, 'failed', 0,
           'user', ARGV[7], 'fun', ARGV[8], 'tgt', ARGV[9], 'bytes', #ARGV[2])
if ARGV[12] ~= '0' then redis.call('HSET', KEYS[3], 'replay_until', ARGV[12]) end
if when_back > 0 then redis.call('HSET', KEYS[3], 'when_back_until', ARGV[13]) end
if ARGV[18] ~= '' then redis.call('HSET', KEYS[3], 'mac', ARGV[18]) end
redis.call('EXPIRE', KEYS[3], ttl)
try('HINCRBY', '{keys.JOB_BYTES}', whole(math.floor(now / 3600000)), #ARGV[2])
for i = 9, #KEYS do put(KEYS[i], ARGV[4], jid, ttl, now) end
for i = last + 1, last + tonumber(ARGV[16]) do put('{keys.FUNCTIONS}', ARGV[4], ARGV[i], ttl, now) end
local offline, listed = {{}}, {{}}
for i = last + tonumber(ARGV[16]) + 1, #ARGV do listed[ARGV[i]] = true end
for i = first, last do
  if listed[ARGV[i]] then offline[#offline + 1] = ARGV[i] end
end
for i = first, away_since > 0 and last or 0, 1000 do
  local til = math.min(i + 999, last)
  local times = try('ZMSCORE', '{keys.SEEN}', unpack(ARGV, i, til))
  -- Silence of a minion that never sends signs means nothing: it counts as offline for waiting jobs only.
  local sign = when_back == 0 and try('SMISMEMBER', '{keys.SIGNERS}', unpack(ARGV, i, til))
  for at = i, times and til or 0 do
    local time = times[at - i + 1]
    if (not time or tonumber(time) < away_since) and (not sign or sign[at - i + 1] == 1) and not listed[ARGV[at]] then
      listed[ARGV[at]] = true
      offline[#offline + 1] = ARGV[at]
    end
  end
end
if when_back > 0 then
  for i = first, last do put('{keys.WAITING_OF}' .. ARGV[i], ARGV[13], jid, ttl, now) end
  put('{keys.WAITING}', ARGV[13], jid, ttl, now)
end
local before = copied(counts)
for _, minion in ipairs(offline) do move(jid, KEYS[5], minion, 'o', now, base, counts, ttl, now) end
if counts.expected > 0 then
  put('{keys.INDEX}state:running', ARGV[4], jid, ttl, now)
  put('{keys.DUE}', math.max(tonumber(ARGV[12]), when_back, now), jid, ttl, now)
end
keep_counts(KEYS[3], before, counts)
redis.call('SET', KEYS[1], jid .. ' ' .. id, 'EX', ARGV[5])
return {{1, jid .. ' ' .. id, offline, faults}}
"""
