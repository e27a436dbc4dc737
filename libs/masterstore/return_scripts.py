"""Lua scripts that store results: a minion's return, and a job that was not published and has ended.

RETURN runs more often than all other scripts together. Most of its cost are its Redis calls, 0.5 to 2.5 microseconds
each. So it skips what an earlier step has done, reads only the fields that it needs, and builds key names itself, which
is cheaper than sending them. docs/jobs.md compares it with plain Redis commands.

The event of a result is stored in the same step as the result, and only by the first return, so each result has exactly
one event.
"""

from __future__ import annotations

from masterstore import keys, life
from masterstore.job_scripts import AHEAD, COMMON, PUT, TRY

#: Seconds for which the unasked returns of a minion are counted, from the first one on.
SPENT_SECONDS = 3600

#: Function ``keep``: adds an event to the stream. If the key is no stream, the event is lost, but not the return.
_KEEP = f"""
local function keep(event, seal, most)
  local number = try('INCR', '{keys.EVENTS_COUNT}')
  if number then try('XADD', '{keys.EVENTS}', 'MAXLEN', '~', most, '*', 'n', number, 'event', event, 'mac', seal) end
end
"""

#: Function ``spend``: counts one more unasked return of a minion in the key ``spent``; returns whether the minion may have one.
#: ``most`` returns and ``bytes`` bytes in an hour; 0: any. Bytes are counted by whoever stores the return, when it is stored.
_SPEND = f"""
local function spend(spent, most, bytes)
  most, bytes = tonumber(most), tonumber(bytes)
  if most == 0 and bytes == 0 then return true end
  local found = try('HMGET', spent, 'count', 'bytes') or {{}}
  if most > 0 and (tonumber(found[1] or 0) or 0) >= most then return false end
  if bytes > 0 and (tonumber(found[2] or 0) or 0) >= bytes then return false end
  if try('HINCRBY', spent, 'count', 1) == 1 then try('EXPIRE', spent, {SPENT_SECONDS}) end
  return true
end
-- The hour may have ended since.
local function spend_bytes(spent, size)
  if try('HINCRBY', spent, 'bytes', size) == size then try('EXPIRE', spent, {SPENT_SECONDS}) end
end
"""

#: KEYS: spent, own_job (may be left out). ARGV: most, bytes. Returns {1 if the minion may store one more unasked return, else 0;
#: faults}. A repeated return, whose job has a JID already, is not counted again.
SPEND = f"""
{TRY}
{_SPEND}
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then return {{1, faults}} end
return {{spend(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0, faults}}
"""

#: A large return in a Redis Cluster, where it is in another slot than its job. KEYS: large. ARGV: minion, compressed JSON, seconds.
PUT_LARGE = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if redis.call('TTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('EXPIRE', KEYS[1], ARGV[3]) end
"""

#: KEYS: last_jid (may be left out).
#: ARGV: minion, return JSON, jid, ttl, failed (0/1), now ms, base ms, the whole return compressed (empty: it is in the JSON),
#: 1 if it also proves the minion's presence, its event (empty: no reader wants it), the event's seal, events that are kept, most
#: unasked returns of the minion (0: any number), most bytes of them (0: any), seconds that a return of an unknown job stays,
#: bytes of the return that were stored elsewhere before (PUT_LARGE), functions...
#: Returns a sum: 1 first return, 2 job is known, 4 all minions returned, 8 late, 16 jobs wait for a minion that cannot ask for
#: them, 32 differs from the first return, 64 refused because the minion has too many unasked returns; or {sum, faults}.
RETURN = f"""
{TRY}
{_SPEND}
{life.lua_into(life.State.RETURNED)}
local minion, jid, ttl, now, base = ARGV[1], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ret, job = '{keys.RET}' .. jid, '{keys.JOB}' .. jid
local left = redis.call('TTL', '{keys.LOAD}' .. jid)
local known = left ~= -2
-- Whether the job expects the minion. An unasked return is stored within the minion's limits only.
local waits = known and try('SISMEMBER', job .. ':minions', minion) == 1
if not waits and redis.call('HEXISTS', ret, minion) == 0 and not spend('{keys.SPENT}' .. minion, ARGV[13], ARGV[14]) then
  return (known and 2 or 0) + 64
end
local first = redis.call('HSETNX', ret, minion, ARGV[2]) == 1
local answer = (first and 1 or 0) + (known and 2 or 0)
-- Keys written with the load have a sufficient TTL, unless the load is old.
local renew = left < ttl - ttl / {AHEAD}
if left > ttl then ttl = left end
-- The indexes of jobs live as long as those of other jobs: "put" removes what is older.
local stays = known and ttl or math.min(ttl, tonumber(ARGV[15]))
redis.call('EXPIRE', ret, stays)
if first and ARGV[8] ~= '' then
  local kept = pcall('HSET', '{keys.LARGE}' .. jid, minion, ARGV[8])
  if type(kept) == 'table' and kept.err then
    redis.call('HDEL', ret, minion)
    return kept
  end
  redis.call('EXPIRE', '{keys.LARGE}' .. jid, stays)
end
try('SADD', '{keys.MINIONS}', minion)
-- A minion that repeats a return under other names of functions must not make a key for each.
if first and KEYS[1] then try('SET', KEYS[1], jid, 'EX', stays) end
if ARGV[9] == '1' then
  try('ZADD', '{keys.SEEN}', 'GT', now, minion)
  if try('EXISTS', '{keys.WAITING_OF}' .. minion) == 1 and try('SISMEMBER', '{keys.SIGNERS}', minion) == 0 then
    answer = answer + 16
  end
end
if not first then
  if redis.call('HGET', ret, minion) ~= ARGV[2] then answer = answer + 32 end
  try('HINCRBY', job, 'duplicates', 1)
  try('EXPIRE', job, stays)
  return #faults > 0 and {{answer, faults}} or answer
end
if ARGV[10] ~= '' then
  {_KEEP}
  keep(ARGV[10], ARGV[11], ARGV[12])
end
-- State of the job on this minion, if the job expects the minion.
local lives = job .. ':life'
local from, last, text = 'e', nil, waits and try('HGET', lives, minion)
if text and text ~= '' then
  from, last = string.match(text, '(%a)(%-?%d+)$')
  if not from or not string.find(LETTERS, from, 1, true) then
    faults[#faults + 1] = lives
    from, last, text = 'e', nil, ''
  end
end
local name = from ~= 'e' and ({life.lua_names()})[from] or nil
local found = try('HMGET', job, 'returned', 'failed', 'bytes', 'created', 'expected', 'answered', 'lost', 'cancelled', 'expired',
                  'when_back_until', 'late', name or 'late') or {{}}
local function count(at)
  local number = found[at] and tonumber(found[at])
  if found[at] and not number then faults[#faults + 1] = job end
  return number or 0
end
local failed, size, created = count(2), #ARGV[2] + #ARGV[8] + ARGV[16], count(4)
if created == 0 then created = base > 0 and base or now end
{PUT}
if ARGV[5] == '1' then
  failed = failed + 1
  if failed == 1 then put('{keys.INDEX}result:failed', created, jid, ttl, now) end
end
try('HINCRBY', '{keys.JOB_BYTES}', math.floor(created / 3600000), size)
local change = {{'returned', count(1) + 1, 'bytes', count(3) + size}}
local function set(field, value) change[#change + 1] = field; change[#change + 1] = value end
if ARGV[5] == '1' or not found[2] then set('failed', failed) end
if waits then
  local expected, answered = count(5), count(6) + 1
  local before = expected - answered + 1 - count(7) - count(8) - count(9)
  local after = before - 1
  if text ~= nil and string.find(INTO, from, 1, true) then
    local at = math.max(now, created, last and base + tonumber(last) or base)
    try('HSET', lives, minion, (text or '') .. '{life.LETTERS[life.State.RETURNED]}' .. whole(at - base))
    if renew or not text then try('EXPIRE', lives, ttl) end
    if name then
      local others = count(12) - 1
      set(name, others)
      if others <= 0 and string.find(INDEXED, from, 1, true) then try('ZREM', '{keys.INDEX}state:' .. name, jid) end
      if string.find(GIVEN_UP, from, 1, true) then after = before end
    end
    if found[10] and string.find(UNDELIVERED, from, 1, true) then
      try('ZREM', '{keys.WAITING_OF}' .. minion, jid)
      local taken = 1
      for _, there in ipairs(try('HMGET', job, 'delivered', 'started') or {{}}) do taken = taken + (tonumber(there or 0) or 0) end
      if before <= taken then try('ZREM', '{keys.WAITING}', jid) end
    end
  end
  set('answered', answered)
  if string.find(LATE, from, 1, true) then
    answer = answer + 8
    local late = count(11) + 1
    set('late', late)
    if late == 1 then put('{keys.INDEX}state:late', created, jid, ttl, now) end
  end
  if answered == expected then
    answer = answer + 4
    if failed == 0 then put('{keys.INDEX}result:ok', created, jid, ttl, now) end
  end
  if before > 0 and after <= 0 then
    set('ended', now)
    try('ZREM', '{keys.INDEX}state:running', jid)
  end
else
  if tonumber(ARGV[14]) > 0 then spend_bytes('{keys.SPENT}' .. minion, size) end
  if not known then
    put('{keys.JOBS}', created, jid, ttl, now)
    for i = 17, #ARGV do
      put('{keys.INDEX}fun:' .. ARGV[i], created, jid, ttl, now)
      put('{keys.FUNCTIONS}', created, ARGV[i], ttl, now)
    end
  end
  put('{keys.INDEX}minion:' .. minion, created, jid, ttl, now)
end
try('HSET', job, unpack(change))
if renew or not found[4] then try('EXPIRE', job, stays) end
return #faults > 0 and {{answer, faults}} or answer
"""

#: A job that was not published and has ended. KEYS: runners, ret, job, job_minions, load, life; then the indexes that it goes into.
#: ARGV: jid, minion, return JSON, load JSON, ttl, failed (0/1), created ms, base ms, result (ok, failed),
#: the whole return compressed (empty: it is in the JSON), its event (empty: no reader wants it), the event's seal, events that are
#: kept, 1 if its bytes count as unasked ones of the minion, code of the load (empty: none), bytes of the return that were stored
#: elsewhere before (PUT_LARGE), functions...
#: Returns {1 if stored, else 0; faults}: a job's earlier return is not replaced.
EXTERNAL = f"""
{COMMON}
{_SPEND}
local jid, ttl, created = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[7])
try('ZREM', KEYS[1], jid)
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return {{0, faults}} end
redis.call('SET', KEYS[5], ARGV[4], 'EX', ttl)
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
if #ARGV[10] > 0 then
  redis.call('HSET', '{keys.LARGE}' .. jid, ARGV[2], ARGV[10])
  redis.call('EXPIRE', '{keys.LARGE}' .. jid, ttl)
end
local size = #ARGV[3] + #ARGV[4] + #ARGV[10] + ARGV[16]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
try('SADD', KEYS[4], ARGV[2])
try('HSETNX', KEYS[3], 'created', ARGV[7])
try('HSET', KEYS[3], 'expected', 1, 'answered', 1, 'returned', 1, 'failed', ARGV[6], 'ended', now, 'bytes', size,
    'mac', ARGV[15])
try('HSET', KEYS[6], ARGV[2], 'r' .. whole(math.max(now, created) - tonumber(ARGV[8])))
if ARGV[11] ~= '' then
  {_KEEP}
  keep(ARGV[11], ARGV[12], ARGV[13])
end
for i = 2, 6 do try('EXPIRE', KEYS[i], ttl) end
try('HINCRBY', '{keys.JOB_BYTES}', whole(math.floor(created / 3600000)), size)
if ARGV[14] == '1' then spend_bytes('{keys.SPENT}' .. ARGV[2], size) end
put('{keys.INDEX}result:' .. ARGV[9], ARGV[7], jid, ttl, created)
for i = 7, #KEYS do put(KEYS[i], ARGV[7], jid, ttl, created) end
for i = 17, #ARGV do put('{keys.FUNCTIONS}', ARGV[7], ARGV[i], ttl, created) end
return {{1, faults}}
"""
