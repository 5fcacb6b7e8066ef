-- The beginning of the lock script: constants, keys, the clock, the fence.
--
-- The script applies one operation on locks or slots (`LockOp` of catraca-core) in one call, all of
-- it or nothing. It consists of the files of this folder, joined in the order of `LOCK_SCRIPT` in
-- lock_store.rs. It is a second implementation of core's rules; a test runs random sequences of
-- operations through both and compares every field.
--
-- Terms: a lease is identified by the digest of its proof (16 bytes, `key` below). A mark is the
-- digest (16 bytes) of a lock name. A number is the fence of a lease. A tenant is given as a
-- digest.
--
-- KEYS     always these eleven of one namespace, all with the same hash tag, so that every key the
--          script touches is named and all of them are on one server of a cluster:
--            1 string  `<dddd` latest instant, last fence, second at which all keys expire, instant
--                      at which a change of server was noticed (see ARGV[3]); then the run_id of
--                      the server that wrote it
--            2 hash    leases: digest of the proof -> record (lease.lua)
--            3 hash    taken names: mark -> digest of the holder's proof
--            4 zset    taken ranges of calendars, all scores 0, sorted by bytes: tenant, length and
--                      text of the calendar, first instant (big-endian), digest of the proof
--            5 zset    when a lease expires or its record may be deleted: instant -> digest
--            6 zset    leases in force: fence -> digest
--            7 zset    the same by tenant, all scores 0, by bytes: tenant, fence, digest
--            8 hash    requests: digest of the request id -> digest of its content, digest of the
--                      proof
--            9 hash    versions: mark -> `<ddc16Bdd` highest version, until when it is remembered,
--                      the lease that raised it, 1 if there was one before, that version and until
--                      when (to restore it if the grant is undone)
--           10 zset    when versions are forgotten: instant -> mark
--           11 hash    counts per tenant and kind: -> `<ddddddd` (see `count` in lease.lua)
-- ARGV[1]  the operation: its number in one byte (dispatch.lua), then its fields, which the comment
--          above its function lists. Packed little-endian without padding; `d` is a double that
--          holds an integer, a text is `I4` and its bytes, `?` is a byte that is 1 or 0.
-- ARGV[2]  the channel on which the marks of freed names are published.
-- ARGV[3]  run_id of the server, as the client read it when it connected. It changes at every
--          start and with every failover, and such a server may have lost leases. Empty if the
--          client cannot tell whether this server is the primary: the change is noticed by the
--          first call of a client that can.
-- ARGV[4]  `1` if this client has had an answer about the namespace before. If KEYS[1] is missing
--          then, the data was lost.
-- ARGV[5]  the latest instant at which the operation may be applied: microseconds of the server's
--          clock, in decimal. After it nothing is done, and the reply is the error `LATE` with the
--          server's clock.
-- ARGV[6]  run_ids of other servers of the cluster that have lost nothing, separated by spaces. A
--          namespace that one of them served was moved here with its slot, which is no failover.
-- ARGV[7]  for tests only: the instant to use instead of the server's clock. With it no call is
--          late and no key gets a TTL, because the server's clock shows a different time.
--
-- Instants and spans are in microseconds. Expiry is decided by comparing instants; TTLs only delete
-- the keys of a namespace that is not used any more, hours later.

-- 2^53 - 1: the instant that means forever.
local FOREVER = 9007199254740991
local SECOND = 1000000
-- How long the record of an ended lease is kept, so that its holder learns how it ended: of a lock,
-- of a slot (longer, because a late payment may still confirm it if its range is free).
local TOMBSTONE, SLOT_TOMBSTONE = 60 * SECOND, 3600 * SECOND
-- How long a confirmed slot is kept after its end, and a version after its last use.
local PAST_KEPT, VERSION_KEPT = 7 * 86400 * SECOND, 86400 * SECOND
-- Bounds of a namespace: leases, versions, rows of counts. These and the spans above must equal
-- those of catraca_core::lock: the client names core's values in refusals.
local LEASES_MAX, VERSIONS_MAX, ROWS_MAX = 1048576, 1048576, 10000
-- The most that one call cleans up, and the most busy ranges that one look returns; the client goes
-- on from there.
local SWEEP, LOOKED = 128, 500
-- Seconds: keys live GRACE longer than their content matters; TTLs move in steps of GRAIN. GRACE is
-- longer than both tombstones, so the end of a lease need not move a TTL.
local GRACE, GRAIN = 7200, 3600
-- States of a lease.
local HELD, CONFIRMED, RELEASED, EXPIRED, FORCED = 0, 1, 2, 3, 4

local META, LEASES, NAMES, CALENDARS, DUE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local LIVE, TENANTS, REQUESTS, VERSIONS, RAISED, TALLY =
  KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

local call, pack, unpack = redis.call, struct.pack, struct.unpack
local sub, min, max = string.sub, math.min, math.max

-- The operation, and the offset of its next unread byte (byte 1 is its number).
local asked, place = ARGV[1], 2

-- Reads the next fields of the operation as a list.
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

-- A number as eight big-endian bytes, which sort like the numbers. (In member names of sorted sets
-- only; Lua never compares them.)
local function ordered(number)
  return pack('>I8', number)
end

local function after(at, span)
  return min(at + span, FOREVER)
end

-- Without KEYS[1] the namespace is new, or was lost. `kept` is the second at which all keys expire,
-- `changed` when a change of server was noticed (-FOREVER: never), `known_as` the run_id before.
local last, fence, kept, changed, known_as = 0, 0, 0, -FOREVER, ARGV[3]
local meta = call('GET', META)
if meta then
  local at
  last, fence, kept, changed, at = unpack('<dddd', meta)
  known_as = sub(meta, at)
end
local timed, now = not ARGV[7], tonumber(ARGV[7])
if timed then
  local time = call('TIME')
  now = time[1] * SECOND + time[2]
  -- The caller has given up by now and may have acted on that: nothing may be applied. (`-`
  -- converts the text of ARGV[5] to a number; Lua's `<` would not.)
  if ARGV[5] - now < 0 then
    return redis.error_reply(string.format('LATE %.0f', now))
  end
end
-- Time never goes backwards: otherwise a lease would outlast the expiry that its holder knows.
now = max(now, last)
-- Another server answers and the slot was not moved, or the data is gone: leases that were granted
-- may be missing here. `careful` in acquire.lua grants nothing until they must have expired.
local is_moved = #known_as > 0 and string.find(ARGV[6], known_as, 1, true)
local is_other = ARGV[3] ~= '' and known_as ~= ARGV[3]
if (is_other and not is_moved) or (not meta and ARGV[4] == '1') then
  changed = now
end
if ARGV[3] ~= '' then
  known_as = ARGV[3]
end

-- The next fence. Not a plain counter: after a failover that lost the last grants, a counter would
-- give the same number to two holders. The clock has moved on meanwhile.
local function next_fence()
  fence = max(fence + 1, now)
  return fence
end

-- Marks of names that became free, published at the end of the script.
local freed = {}

-- Frees a name, if this lease has it.
local function unname(mark, key)
  if call('HGET', NAMES, mark) == key then
    call('HDEL', NAMES, mark)
    freed[#freed + 1] = mark
  end
end

-- Sets the TTL of the given keys, or of all keys if the namespace must live longer than before. A
-- write may have created a key without a TTL.
local function keep(until_instant, ...)
  if not timed then
    return
  end
  local second = (math.floor(until_instant / SECOND / GRAIN) + 1) * GRAIN + GRACE
  if second > kept then
    kept = second
    -- All but KEYS[1] and the counts, which never expire (dispatch.lua).
    for index = 2, 10 do
      call('EXPIREAT', KEYS[index], kept)
    end
    return
  end
  for _, key in ipairs({ ... }) do
    call('EXPIREAT', key, kept)
  end
end
