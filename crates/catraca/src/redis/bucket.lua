-- The token bucket: exact refill without rounding, debt as a negative balance.
-- A cell is `<dddI4I4`: at, tokens, rem, tag, forget. It must not know prices or blocks.

-- The lowest balance whose way back to the size is still exact arithmetic.
local function bucket_floor(row)
  return row.size - floor(EXACT_MAX / row.period)
end

local function bucket_refill(row, tokens, rem, elapsed)
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

local function bucket_load(row, now)
  row.tokens, row.rem = row.size, 0
  local cell = call('GET', row.key)
  if cell then
    local at, tokens, rem, tag, forget = unpack('<dddI4I4', cell)
    if not is_forgotten(forget, now) then
      row.now = max(now, at)
      tokens = max(tokens, bucket_floor(row))
      row.tokens, row.rem = bucket_refill(row, tokens, tag == row.tag and rem or 0, row.now - at)
    end
  end
  row.free, row.limit = row.tokens, row.size
end

-- When `tokens` are there, if nobody takes any.
local function bucket_reaches(row, tokens)
  if row.tokens >= tokens then
    return row.now
  end
  local missing = (tokens - row.tokens) * row.period - row.rem
  return after(row.now, ceil_div(missing, row.gain))
end

-- Takes units, never above the size nor below the floor; returns what was taken.
local function bucket_take(row, units)
  local left = min(max(row.tokens - units, bucket_floor(row)), row.size)
  local taken = row.tokens - left
  row.tokens, row.free = left, left
  if left >= row.size then
    row.rem = 0
  end
  if taken ~= 0 then
    local forget = second_after(bucket_reaches(row, row.size))
    save(row.key, pack('<dddI4I4', row.now, left, row.rem, row.tag, forget), forget)
  end
  return taken
end

local function bucket_figures(row)
  local fits_at = row.need <= row.size and bucket_reaches(row, row.need) or FOREVER
  return fits_at, bucket_reaches(row, row.size)
end
