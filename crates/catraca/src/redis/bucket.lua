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

  local function load(row, now)
    local cell = call('GET', row.key)
    if not cell then
      return
    end
    local at, tokens, rem, tag, forget = unpack('<dddI4I4', cell)
    if not is_forgotten(forget, now) then
      row.now = max(now, at)
      tokens = max(tokens, lowest(row))
      row.free, row.rem = refill(row, tokens, tag == row.tag and rem or 0, row.now - at)
    end
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
      local forget = second_after(reaches(row, row.size))
      save(row.key, pack('<dddI4I4', row.now, left, row.rem, row.tag, forget), forget)
    end
    return taken
  end

  return {
    -- Reads the terms; the row is a full bucket until its cell is loaded.
    read = function(row, batch, place)
      row.size, row.gain, row.period, row.tag, place = unpack('<dddI4', batch, place)
      row.limit, row.capacity, row.free, row.rem = row.size, row.size, row.size, 0
      return place
    end,
    load = load,
    charge = charge,
    figures = function(row)
      local fits_at = row.need <= row.size and reaches(row, row.need) or FOREVER
      return fits_at, reaches(row, row.size)
    end,
  }
end
