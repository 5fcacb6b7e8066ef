-- Constants, the batch reader and the time functions that all other files use.
--
-- The script applies one batch (docs/batch.md) in one call, all of it or nothing. It consists of
-- the files of this folder, joined in the order of script.rs: fast_path.lua, this file, then the
-- others. It is a second implementation of the rules of catraca-core's `run`; a test runs random
-- batches through both and compares every field. The script does not know policies or subjects.
--
-- KEYS     every key that the batch may touch, in the order in which the files below read them. All
--          have the same hash tag. Values are strings, written by this script only.
-- ARGV[1]  the batch: the operation in one byte, then the fields that the file of the operation
--          describes. Packed little-endian without padding.
--            1 check (check.lua)    2 settle (settle.lua)    3 recall, 4 credit (credit.lua)
--            5 block, 6 unblock (block_ops.lua)    7 reset (dispatch.lua)
--            8 reconcile (bucket.lua)
-- ARGV[2]  the latest instant at which the batch may be applied: microseconds of the server's
--          clock, in decimal. After it nothing is done, and the reply is the error `LATE` with the
--          server's clock, so that the client can correct its estimate of that clock.
-- ARGV[3]  for tests only: the instant to use instead of the server's clock. With it no call is
--          late and no key gets a TTL, because the server's clock shows a different time.
--
-- Formats are those of Redis' `struct`: B is 1 byte, I2 and I4 are unsigned integers of 2 and 4
-- bytes, d is a double that holds an integer, c16 is 16 raw bytes. Instants and spans are in
-- microseconds unless a comment says seconds. The reply is one string, packed in the same way.
-- A byte of flags is a sum of powers of two: flag f is set if `flags % (2 * f) >= f`.
--
-- Several operations contain these parts:
--   limit    B  algorithm: 0 none, else its number in algorithms.lua. It is the first byte of a
--            row; the terms come later in the row, as the file of the algorithm describes.
--            Key: the counter; none for algorithm 0.
--   penalty  dddd  first length, factor (a plain number), longest length, forget
--   act      BB penalty I4  origin (0 excess, 1 ban, 2 operator, 3 upstream), shadow (1 or 0),
--            penalty, length of the note; then the note, whose bytes the script does not read
--
-- Lua has only doubles, so every number must be an integer of at most 2^53. `/` appears only inside
-- `floor`, or where the division is exact. Strings are compared only for equality, because their
-- order depends on the server's locale.
--
-- Redis executes the whole script at every call, and creating a function costs as much as calling
-- it. So functions that not every batch needs are created by a `make_...` function, when the first
-- row needs them.

-- 2^53 - 1 microseconds: the instant and the span that mean forever.
local FOREVER = 9007199254740991
-- 2^53: the largest integer up to which all integers are exact in a double.
local EXACT_MAX = 9007199254740992
-- The second (32 bits) that means "never forgotten".
local NEVER = 4294967295
-- Microseconds per second.
local SECOND = 1000000
-- Seconds. A key outlives the instant at which its cell is forgotten by at least GRACE: if the
-- server's clock is set back, the cell must still be there. TTLs move in steps of STEP, so that
-- most writes of a busy key can keep the TTL that it has.
local GRACE, STEP = 60, 64
-- The verdict of a row that fits; check.lua has the others.
local FITS = 0

local floor, min, max = math.floor, math.min, math.max
local pack, unpack = struct.pack, struct.unpack
local byte, char, sub = string.byte, string.char, string.sub
local call = redis.call

-- True in production: the server's clock is used, and keys get TTLs.
local timed = not ARGV[3]
-- The batch, the offset of its next unread byte (1-based; byte 1 is the operation), and how many of
-- KEYS have been used.
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

-- Aborts the script: the bytes of a cell are not what this script wrote. The client recognises the
-- text.
local function damaged()
  error('CATRACA damaged cell', 0)
end

-- The value of a key, or false. A key of another type (a list or set written by another program)
-- counts as absent, as it does for MGET in fast_path.lua; the next write replaces it. `pcall`
-- returns an error as a table; any other error is raised by calling again without `pcall`.
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

-- Exact for numerators up to 2^53. The common `floor((a + b - 1) / b)` is not: the sum may exceed
-- 2^53.
local function ceil_div(numerator, denominator)
  local whole = floor(numerator / denominator)
  if whole * denominator < numerator then
    return whole + 1
  end
  return whole
end

-- The first whole second at or after an instant. `forget` is rounded up to it in all stores, so
-- that it fits in 32 bits (docs/adr/0006).
local function second_after(at)
  return min(ceil_div(at, SECOND), NEVER)
end

-- Whether a cell with this `forget` counts as absent at `now`.
local function is_forgotten(second, now)
  return now >= (second == NEVER and FOREVER or second * SECOND)
end

-- The EXAT (in seconds) of a key whose cell is forgotten at `second`. fast_path.lua computes the
-- same value inline.
local function dropped_at(second)
  return second - second % STEP + STEP + GRACE .. ''
end

-- Writes a cell that is forgotten at `second`. SET without EXAT also removes a TTL of the key.
local function save(key, value, second)
  if timed and second < NEVER then
    call('SET', key, value, 'EXAT', dropped_at(second))
  else
    call('SET', key, value)
  end
end
