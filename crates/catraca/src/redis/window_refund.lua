-- The refund of a sliding window: removes units from the entry at exactly the instant of the check,
-- which is the instant of its row that the ticket stores (docs/adr/0002).
--
-- Entries store only the gap to the next one, so the instant of an entry is known only by reading
-- all entries from the oldest on. An entry that loses all its units is removed, and its gap is
-- added to the entry before it, so that the instants of the others do not change.

local function make_refund(read_entry, write_entry)
  -- Reads the whole body, since the refund may change any part of it.
  local function load_body(row)
    if not row.whole then
      row.chunk, row.base, row.whole = call('GETRANGE', row.key, row.head_size, -1), 0, true
    end
  end

  -- Offset and instant of the oldest entry that any window still counts.
  local function oldest(row)
    local place, instant
    for _, window in ipairs(row.windows) do
      if window.used > 0 and window.head < (place or FOREVER) then
        place, instant = window.head, window.first
      end
    end
    return place, instant
  end

  -- The offset of the entry at an instant, or false; then offset, gap and units of the entry before
  -- it. The offset of the newest entry, which is in the head of the cell, is the end of the body.
  local function find(row, at)
    local before, before_gap, before_units
    local place, instant = oldest(row)
    while place and place < row.length and instant < at do
      local gap, units, next = read_entry(row, place)
      before, before_gap, before_units = place, gap, units
      place, instant = next, instant + gap
    end
    return instant == at and place, before, before_gap, before_units
  end

  -- Subtracts the units from every window that counts the entry; returns the most that any of them
  -- subtracted. A window whose oldest entry is gone begins with the next one. `window.cut` units of
  -- its oldest entry are not counted by a window. `held` is what the entry has, `seen` what the
  -- window counts of it.
  local function take(row, place, held, units, gap, next)
    local most = 0
    for _, window in ipairs(row.windows) do
      local is_oldest = window.head == place
      if window.used > 0 and window.head <= place then
        local seen = is_oldest and held - window.cut or held
        local back = min(seen, units)
        window.used, most = window.used - back, max(most, back)
        if is_oldest and back == seen then
          window.first, window.head, window.cut = window.first + gap, next, 0
        end
      end
    end
    return most
  end

  -- Replaces the bytes from offset `from` to `to` of the body, and moves the windows behind them.
  local function splice(row, from, to, bytes)
    local shift = from + #bytes - to
    row.chunk = sub(row.chunk, 1, from) .. bytes .. sub(row.chunk, to + 1)
    row.length = row.length + shift
    for _, window in ipairs(row.windows) do
      if window.head >= to then
        window.head = window.head + shift
      end
    end
  end

  -- Refund of the newest entry. If it loses all its units, the entry before it becomes the newest
  -- one and moves from the body to the head. Without an entry before it, no window counts anything
  -- any more, and `store` deletes the cell.
  local function refund_newest(row, at, units, before, gap, before_units)
    local held, place = row.newest, row.length
    local most = take(row, place, held, units, 0, place)
    if held > units then
      row.newest = held - units
    elseif before then
      row.newest, row.last = before_units, at - gap
      splice(row, before, place, '')
    end
    return most
  end

  return function(row, at, units)
    -- Part of the newest entry remains: the body need not be read.
    if at == row.last and units < row.newest then
      return refund_newest(row, at, units)
    end
    load_body(row)
    local place, before, before_gap, before_units = find(row, at)
    if not place then
      return 0
    elseif place >= row.length then
      return refund_newest(row, at, units, before, before_gap, before_units)
    end
    local gap, held, next = read_entry(row, place)
    local most = take(row, place, held, units, gap, next)
    if held > units then
      splice(row, place, next, write_entry(gap, held - units))
    -- Without an entry before it, no window begins here any more, and `store` drops the bytes.
    elseif before then
      splice(row, before, next, write_entry(before_gap + gap, before_units))
    end
    return most
  end
end
