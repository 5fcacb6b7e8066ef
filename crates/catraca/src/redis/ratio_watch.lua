-- A watched ratio: the share of certain outcomes among all, counted in 24 slices of time. The
-- oldest slice is dropped as a whole.
--
-- A cell is `<dd`: length of a slice (microseconds), number of the newest slice (instant / length);
-- then 24 times `I4I4`: outcomes in the part, all outcomes. Slice n is at index n modulo 24.
-- It is forgotten when the newest slice has left.

local SLICES = 24
local COUNT_MAX = 4294967295

-- Creates a function (key, watch, now) that counts one outcome and returns whether the ratio is too
-- high. If it is, the counts are deleted, so that the same outcomes do not start a second ban.
local function make_watch()
  local layout = '<dd' .. string.rep('I4', 2 * SLICES)

  -- The instant at which the newest slice has left.
  local function ends(newest, slice)
    return min((newest + SLICES) * slice, FOREVER)
  end

  -- The counts as a list: slice length, newest slice, then part and whole of each slice. Starts
  -- empty if there are none, if they have expired, or if the slice length has changed.
  local function load(key, slice, now)
    local cell = read_cell('GET', key)
    local counts = cell and { unpack(layout, cell) }
    if counts and counts[1] == slice and now < ends(counts[2], slice) then
      -- A larger number would make the loop in `count` endless.
      if not (counts[2] < FOREVER) then
        damaged()
      end
      return counts
    end
    -- The slices are numbered from the epoch on.
    counts = { slice, floor(now / slice) }
    for index = 3, 2 + 2 * SLICES do
      counts[index] = 0
    end
    return counts
  end

  -- The index in `counts` at which a slice begins.
  local function index(number)
    return 3 + 2 * (number % SLICES)
  end

  -- Counts one outcome at `now`, and clears the slices between the newest one and now.
  local function count(counts, in_part, now)
    local newest = counts[2]
    local present = max(floor(now / counts[1]), newest)
    for number = max(newest + 1, present - SLICES + 1), present do
      counts[index(number)], counts[index(number) + 1] = 0, 0
    end
    local at = index(present)
    counts[2], counts[at] = present, min(counts[at] + in_part, COUNT_MAX)
    counts[at + 1] = min(counts[at + 1] + 1, COUNT_MAX)
  end

  return function(key, watch, now)
    local counts, part, whole = load(key, max(1, floor(watch.per / SLICES)), now), 0, 0
    count(counts, watch.in_part, now)
    for at = 3, 1 + 2 * SLICES, 2 do
      part, whole = part + counts[at], whole + counts[at + 1]
    end
    -- `above` is in hundredths of a percent, so 10000 is 100 %.
    if whole >= watch.min and part * 10000 > whole * watch.above then
      call('DEL', key)
      return true
    end
    local bytes = pack('<dd', counts[1], counts[2])
    for at = 3, 1 + 2 * SLICES, 2 do
      bytes = bytes .. pack('<I4I4', counts[at], counts[at + 1])
    end
    save(key, bytes, second_after(ends(counts[2], counts[1])))
    return false
  end
end
