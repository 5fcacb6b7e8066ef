-- The Redis twin of the rules: one script, one call, one batch, all or nothing.
--
-- The script is this file followed by the others of its folder, joined in the order that
-- script.rs gives. Its rules are those of catraca-core's `run`; a differential test keeps the two
-- equal. It must not know policies, subjects or names: docs/batch.md is all it speaks.
--
-- KEYS     every key that the batch may touch, in the order in which it is read below. All of
--          them carry the same hash tag. Values are strings made by this script alone.
-- ARGV[1]  the batch: its operation in a byte, then what the file of that operation says. Packed
--          little-endian without padding; `d` is a double that holds an integer.
--            1 check (check.lua)    2 settle (settle.lua)    3 recall, 4 credit (credit.lua)
--            5 block, 6 unblock (act.lua)    7 reset (apply.lua)    8 reconcile (bucket.lua)
-- ARGV[2]  the latest instant at which it may be done, in microseconds, decimal. After it nothing is
--          done, and the answer is the error `LATE` with the server's clock.
-- ARGV[3]  the instant, likewise. For tests only: without it the server's clock is used. With it
--          nothing is late, and nothing gets a TTL, since the server's time is then another one.
--
-- The reply is one string, packed alike. Several files share these:
--   limit    B  algorithm: 0 none, 1 bucket, 2 window, 3 fixed, 4 in flight; then, after what
--               else the row opens with,
--            dddI4  bucket: size, tokens per period, period, tag of the refill
--            B (dd)*  window: how many, then limit and span of each
--            ddB  fixed: limit, span, whether it is aligned to the clock
--            ddc8  in flight: limit, hold, the lease's id
--            Key: the counter, unless there is none to count in.
--   penalty  dddd  first, factor, max, forget (microseconds; factor a number)
--   act      BB penalty I4  origin (0 excess, 1 ban, 2 operator, 3 upstream), shadow, penalty,
--            bytes of the note; then the note, which is opaque here
--
-- Numbers are doubles, so each one is an integer of at most 2^53. `/` appears only inside `floor`,
-- or where the division is known to be exact. Strings are compared for equality alone: their order
-- is a matter of the server's locale.
--
-- Redis runs the whole text at every call, and making a function costs as much as calling it. So
-- what not every batch needs is made by a `make_…` function, when the first row asks for it.

local FOREVER = 9007199254740991
local EXACT_MAX = 9007199254740992
local NEVER = 4294967295
local SECOND = 1000000
-- Seconds that garbage is kept at least after it was forgotten: a clock set back must find it
-- again. TTLs move in steps, so that what is written often mostly keeps the one it has.
local GRACE, STEP = 60, 64
local FITS = 0

local floor, min, max = math.floor, math.min, math.max
local pack, unpack = struct.pack, struct.unpack
local byte, char, sub = string.byte, string.char, string.sub
local call = redis.call

-- Whether the server's clock is used, and with it the server's TTLs.
local timed = not ARGV[3]
-- The batch, and how much of it and of its keys has been read.
local batch, place, named = ARGV[1], 2, 0

local function next_key()
  named = named + 1
  return KEYS[named]
end

local function read_bytes(length)
  local bytes = sub(batch, place, place + length - 1)
  place = place + length
  return bytes
end

-- Ends the script: a cell is not what this script wrote.
local function damaged()
  error('CATRACA damaged cell', 0)
end

-- What a key holds. One that somebody made a list or a set of holds nothing: reading many keys at
-- once, as quick.lua does, has it so, and whatever is written next is written over it.
local function read_cell(command, key, ...)
  local cell = redis.pcall(command, key, ...)
  if type(cell) ~= 'table' then
    return cell
  elseif sub(cell.err, 1, 9) == 'WRONGTYPE' then
    return false
  end
  return call(command, key, ...)
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

-- When the server may drop what is forgotten at a second: quick.lua has the same figures.
local function dropped_at(second)
  return second - second % STEP + STEP + GRACE .. ''
end

local function save(key, value, second)
  if timed and second < NEVER then
    call('SET', key, value, 'EXAT', dropped_at(second))
  else
    call('SET', key, value)
  end
end
