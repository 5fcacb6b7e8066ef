-- The Redis twin of the rules of locks: one script, one call, one operation, all or nothing.
--
-- The script is this file followed by the others of its folder, joined in the order that
-- script.rs gives. Its rules are those of catraca-core's `Book`; the same stories are told to both.
--
-- KEYS     always these of one namespace, all with the same hash tag:
--            1 string  `<dddd` the latest instant, the last number, the second at which all may be
--                      garbage, since when another server answers; then which one does
--            2 hash    leases: digest of the proof -> record
--            3 hash    names: mark -> digest
--            4 zset    calendars, by bytes: tenant, length and text, first instant, digest
--            5 zset    when something is to be done: instant -> digest
--            6 zset    leases in force: number -> digest
--            7 zset    the same by tenant, by bytes: tenant, number, digest
--            8 hash    requests: digest of the name -> digests of what was asked and of the proof
--            9 hash    versions: mark -> `<ddc16Bdd` the highest, until when it is remembered, by
--                      whom it was raised; if there was one before, that one, until when
--           10 zset    until when: instant -> mark
--           11 hash    tally: tenant and kind -> `<ddddddd`
-- ARGV[1]  the operation: its number in a byte, then what apply.lua says. Packed little-endian
--          without padding; `d` is a double that holds an integer, a text is `I4` and its bytes.
-- ARGV[2]  the channel on which names that became free are told.
-- ARGV[3]  which server this is: another after each of its starts. One that took over, or came
--          back, may have lost leases.
-- ARGV[4]  `1` if the node that asks has had an answer about this namespace before: what is not
--          there then was lost.
-- ARGV[5]  the latest instant at which it may be done, in microseconds, decimal. After it nothing is
--          done, and the answer is the error `LATE` with the server's clock.
-- ARGV[6]  the instant, likewise. For tests only: without it the server's clock is used. With it
--          nothing is late, and nothing gets a TTL, since the server's time is then another one.
--
-- Expiry is data: a TTL only collects what a whole namespace left behind, hours later.

local FOREVER = 9007199254740991
local SECOND = 1000000
local TOMBSTONE, SLOT_TOMBSTONE = 60 * SECOND, 3600 * SECOND
local PAST_KEPT, VERSION_KEPT = 7 * 86400 * SECOND, 86400 * SECOND
local LEASES_MAX, VERSIONS_MAX, ROWS_MAX = 1048576, 1048576, 10000
local SWEEP, LOOKED = 128, 500
-- Seconds that garbage is kept after its last use, and how finely that is counted.
local GRACE, GRAIN = 7200, 3600
local HELD, CONFIRMED, RELEASED, EXPIRED, FORCED = 0, 1, 2, 3, 4

local META, LEASES, NAMES, CALENDARS, DUE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local LIVE, TENANTS, REQUESTS, VERSIONS, RAISED, TALLY =
  KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

local call, pack, unpack = redis.call, struct.pack, struct.unpack
local sub, min, max = string.sub, math.min, math.max

local asked, place = ARGV[1], 2

-- The next fields of the operation.
local function read(format)
  local found = { unpack('<' .. format, asked, place) }
  place = table.remove(found)
  return found
end

local function read_text()
  local text
  text, place = unpack('<I4c0', asked, place)
  return text
end

local function text(bytes)
  return pack('<I4c0', #bytes, bytes)
end

-- Eight bytes whose order is that of the numbers.
local function ordered(number)
  return pack('>I8', number)
end

local function after(at, span)
  return min(at + span, FOREVER)
end

local last, fence, kept, changed, known_as = 0, 0, 0, -FOREVER, ARGV[3]
local meta = call('GET', META)
if meta then
  local at
  last, fence, kept, changed, at = unpack('<dddd', meta)
  known_as = sub(meta, at)
end
local timed, now = not ARGV[6], tonumber(ARGV[6])
if timed then
  local time = call('TIME')
  now = time[1] * SECOND + time[2]
  if ARGV[5] - now < 0 then
    return redis.error_reply(string.format('LATE %.0f', now))
  end
end
-- Time does not go back: a lease would last longer than it was told.
now = max(now, last)
if known_as ~= ARGV[3] or (not meta and ARGV[4] == '1') then
  changed = now
end

local function next_fence()
  fence = max(fence + 1, now)
  return fence
end

-- Marks that became free, to be told at the end.
local freed = {}

local function unname(mark, key)
  if call('HGET', NAMES, mark) == key then
    call('HDEL', NAMES, mark)
    freed[#freed + 1] = mark
  end
end

-- A key that was written stays as long as anything in the namespace may be of use.
local function keep(until_instant, ...)
  if not timed then
    return
  end
  local second = (math.floor(until_instant / SECOND / GRAIN) + 1) * GRAIN + GRACE
  if second > kept then
    kept = second
    for index = 2, 10 do
      call('EXPIREAT', KEYS[index], kept)
    end
    return
  end
  for _, key in ipairs({ ... }) do
    call('EXPIREAT', key, kept)
  end
end
