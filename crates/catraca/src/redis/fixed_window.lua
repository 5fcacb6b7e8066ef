-- The fixed window: opens at its first charged unit, or (aligned) at a multiple of its span since
-- the epoch, and is empty again at its end.
--
-- Terms: `ddB` limit, span, 1 if it is aligned to the clock.
-- A cell is `<ddI4`, 20 bytes: start (microseconds), used units, forget (second).

local function make_fixed()
  -- Adds units; a negative number gives them back. Opens a window if none is open.
  local function use(row, units)
    if not row.start then
      row.start = row.aligned and row.now - row.now % row.span or row.now
    end
    -- Beyond 2^53 units would not be counted exactly (docs/batch.md, section 4).
    row.used = min(max(row.used + units, 0), EXACT_MAX)
    row.free = row.limit - row.used
    -- When the window ends, all units are free again.
    local forget = second_after(after(row.start, row.span))
    save(row.key, pack('<ddI4', row.start, row.used, forget), forget)
    return units
  end

  return {
    -- Reads the terms from the batch. Until `load` finds a cell, no window is open.
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
      -- Time never goes backwards for a counter. A window whose span has passed, under the terms of
      -- this batch, is not open any more.
      row.now = max(now, start)
      if row.now < after(start, row.span) then
        row.start, row.used, row.free = start, used, row.limit - used
      end
    end,
    charge = use,
    -- When the need fits (forever if it exceeds the limit), and when the window is empty.
    figures = function(row)
      local ends = row.used > 0 and after(row.start, row.span) or row.now
      if row.need > row.limit then
        return FOREVER, ends
      end
      return row.free >= row.need and row.now or ends, ends
    end,
    -- Denied units use up what is still free, and no more.
    count_denied = function(row)
      local units = min(max(row.free, 0), row.held)
      if units > 0 then
        use(row, units)
      end
    end,
    -- Units are given back only to the window in which the check charged them.
    refund = function(row, at, units)
      units = row.start and at >= row.start and min(units, row.used) or 0
      if units > 0 then
        use(row, -units)
      end
      return units
    end,
  }
end
