-- The fixed window: opens at its first charged unit, or at the clock, and is gone at its end.
-- A cell is `<ddI4`: start, used, forget. It must not slide: that is what window.lua is for.

local function make_fixed()
  -- Uses units, or with a negative amount returns them.
  local function use(row, units)
    if not row.start then
      row.start = row.aligned and row.now - row.now % row.span or row.now
    end
    row.used = min(max(row.used + units, 0), EXACT_MAX)
    row.free = row.limit - row.used
    local forget = second_after(after(row.start, row.span))
    save(row.key, pack('<ddI4', row.start, row.used, forget), forget)
    return units
  end

  return {
    -- Reads the terms; no window is open until the cell is loaded.
    read = function(row)
      local aligned
      row.limit, row.span, aligned, place = unpack('<ddB', batch, place)
      row.aligned, row.capacity, row.free = aligned == 1, row.limit, row.limit
      row.start, row.used = false, 0
    end,
    load = function(row, now)
      local cell = read_cell('GET', row.key)
      if not cell then
        return
      end
      local start, used, forget = unpack('<ddI4', cell)
      if is_forgotten(forget, now) then
        return
      end
      row.now = max(now, start)
      if row.now < after(start, row.span) then
        row.start, row.used, row.free = start, used, row.limit - used
      end
    end,
    charge = use,
    figures = function(row)
      local ends = row.used > 0 and after(row.start, row.span) or row.now
      if row.need > row.limit then
        return FOREVER, ends
      end
      return row.free >= row.need and row.now or ends, ends
    end,
    count_denied = function(row)
      local units = min(max(row.free, 0), row.held)
      if units > 0 then
        use(row, units)
      end
    end,
    -- Only into the window of the check.
    refund = function(row, at, units)
      units = row.start and at >= row.start and min(units, row.used) or 0
      if units > 0 then
        use(row, -units)
      end
      return units
    end,
  }
end
