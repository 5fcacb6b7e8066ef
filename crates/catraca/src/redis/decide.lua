-- The Redis twin of the rules: one script, one call, one batch, all or nothing.
--
-- The script is this file followed by bucket.lua, entry.lua, window.lua, block.lua and check.lua,
-- joined in that order. Its rules are those of catraca-core's `run`; a differential test keeps the
-- two equal. It must not know policies, subjects or names: docs/batch.md is all it speaks.
--
-- KEYS     two per row, in the order of the rows: the row's counter, then the row's block. All of
--          them carry the same hash tag. Values are strings made by this script alone.
-- ARGV[1]  the batch, packed little-endian without padding. `d` is a double that holds an integer.
--            B  operation: 1 = check
--            B  flags: 1 = peek, 2 = veto
--          and per row
--            B  algorithm: 0 = none, 1 = bucket, 2 = window
--            B  flags: 1 = shadow, 2 = count_denied, 4 = a penalty follows
--            d  held units
--            dddd  penalty, if flagged: first, factor, max, forget (microseconds; factor a number)
--            dddI4  bucket: size, tokens per period, period, tag of the refill
--            B (dd)*  window: how many, then limit and span of each
-- ARGV[2]  the instant in microseconds, decimal. For tests only: without it the server's clock is
--          used. With it nothing gets a TTL, since the server's time is then another one.
--
-- Reply: one string, packed alike: `dB` now, passed (1 or 0); then per row `BdddddddBBI2`:
--   verdict (0 fits, 1 blocked, 2 too costly, 3 over limit), at, charged, limit (-1: none), free,
--   fits_at (-1: fits now), full_at, end of the block that stands (-1: none), its origin
--   (0 excess, 1 ban, 2 operator, 3 upstream), started (1 or 0), bytes of its note; then the note,
--   which is opaque here.
--
-- Numbers are doubles, so each one is an integer of at most 2^53. `/` appears only inside `floor`,
-- or where the division is known to be exact.
--
-- Redis runs the whole text at every call, and making a function costs as much as calling it. So
-- what not every batch needs is made by a `make_…` function, when the first row asks for it.

local FOREVER = 9007199254740991
local EXACT_MAX = 9007199254740992
local NEVER = 4294967295
local SECOND = 1000000
-- Seconds that garbage is kept after it was forgotten: a clock set back must find it again.
local GRACE = 60
local FITS = 0

local floor, min, max = math.floor, math.min, math.max
local pack, unpack = struct.pack, struct.unpack
local byte, char, sub = string.byte, string.char, string.sub
local call = redis.call

-- Whether the server's clock is used, and with it the server's TTLs.
local timed = not ARGV[2]

local function read_clock()
  local time = call('TIME')
  return time[1] * SECOND + time[2]
end

local function after(at, span)
  return min(at + span, FOREVER)
end

-- Never adds to the numerator: it may already be 2^53.
local function ceil_div(numerator, denominator)
  local whole = floor(numerator / denominator)
  if whole * denominator < numerator then
    return whole + 1
  end
  return whole
end

local function second_after(at)
  return min(ceil_div(at, SECOND), NEVER)
end

local function is_forgotten(second, now)
  return now >= (second == NEVER and FOREVER or second * SECOND)
end

local function save(key, value, second)
  if timed and second < NEVER then
    call('SET', key, value, 'EXAT', second + GRACE .. '')
  else
    call('SET', key, value)
  end
end
