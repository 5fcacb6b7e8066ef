-- The token bucket: exact refill without rounding, debt as a negative balance.
-- A cell is `<dddI4I4`: at, tokens, rem, tag, forget. It must not know prices or blocks.

local function make_bucket()
  -- The lowest balance whose way back to the size is still exact arithmetic.
  local function lowest(row)
    return row.size - floor(EXACT_MAX / row.period)
  end

  -- When `tokens` are there, if nobody takes any.
  local function reaches(row, tokens)
    if row.free >= tokens then
      return row.now
    end
    local missing = (tokens - row.free) * row.period - row.rem
    return after(row.now, ceil_div(missing, row.gain))
  end

  local function refill(row, tokens, rem, elapsed)
    if tokens >= row.size then
      return row.size, 0
    end
    local missing = (row.size - tokens) * row.period - rem
    -- Compared by division first: an idle century must not leave the exact range.
    if elapsed >= ceil_div(missing, row.gain) then
      return row.size, 0
    end
    local gained = rem + elapsed * row.gain
    local whole = floor(gained / row.period)
    return tokens + whole, gained - whole * row.period
  end

  -- Reads the terms; the row is a full bucket until its cell is loaded.
  local function read(row)
    row.size, row.gain, row.period, row.tag, place = unpack('<dddI4', batch, place)
    row.limit, row.capacity, row.free, row.rem = row.size, row.size, row.size, 0
  end

  -- Brings the cell to `now`; returns when it was written, if there is one.
  local function load(row, now)
    local cell = read_cell('GET', row.key)
    if not cell then
      return nil
    end
    local at, tokens, rem, tag, forget = unpack('<dddI4I4', cell)
    if is_forgotten(forget, now) then
      return nil
    end
    row.now = max(now, at)
    tokens = max(tokens, lowest(row))
    row.free, row.rem = refill(row, tokens, tag == row.tag and rem or 0, row.now - at)
    return at
  end

  local function store(row)
    local forget = second_after(reaches(row, row.size))
    save(row.key, pack('<dddI4I4', row.now, row.free, row.rem, row.tag, forget), forget)
  end

  -- Takes units, never above the size nor below the lowest; returns what was taken.
  local function charge(row, units)
    local left = min(max(row.free - units, lowest(row)), row.size)
    local taken = row.free - left
    row.free = left
    if left >= row.size then
      row.rem = 0
    end
    if taken ~= 0 then
      store(row)
    end
    return taken
  end

  return {
    read = read,
    load = load,
    charge = charge,
    figures = function(row)
      local fits_at = row.need <= row.size and reaches(row, row.need) or FOREVER
      return fits_at, reaches(row, row.size)
    end,
    refund = function(row, _, units)
      return -charge(row, -units)
    end,
    -- Per row `dddI4dd`: terms, tokens an upstream saw, when; answers `dd`: tokens before, after.
    -- A lower view wins, a higher one only if nothing was written since.
    reconcile = function(now)
      local row, available, observed = { key = next_key(), now = now }, nil, nil
      read(row)
      available, observed, place = unpack('<dd', batch, place)
      local written, before = load(row, now) or 0, row.free
      local seen = min(max(available, lowest(row)), row.size)
      local tokens, rem = refill(row, seen, 0, row.now - min(observed, row.now))
      local same = tokens == before and rem == row.rem
      local higher = tokens > before or (tokens == before and rem > row.rem)
      if not same and not (higher and written > observed) then
        row.free, row.rem = tokens, rem
        store(row)
      end
      return pack('<dd', before, row.free)
    end,
  }
end
