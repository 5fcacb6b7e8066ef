-- The exact sliding window: every unit with its own instant, a few bytes each.
--
-- A cell is a head and a body. The head is `<I4Bdd`: forget, how many windows, the newest entry's
-- instant and units; then per window `<dddI4`: the oldest live instant, units, units already cut
-- from the oldest entry, and where that entry starts in the body. The body holds all entries but
-- the newest, oldest first, once for all windows: the units of a shorter window are the last ones
-- of a longer. An entry is its gap to the next one and its units, as in entry.lua.
-- Short cells are rewritten whole; of long ones only the head and the end, so that a check costs
-- the same whether the window holds ten units or ten thousand. It must not approximate.

-- The units of a window's oldest entry, the gap to the next one, and where that starts.
local function window_oldest(row, window, place, cut)
  if place >= row.length then
    return row.newest - cut, 0, place
  end
  local gap, units, next = window_read(row, place)
  return units - cut, gap, next
end

local function window_pop(row, window)
  local units, gap, next = window_oldest(row, window, window.head, window.cut)
  window.used, window.first = window.used - units, window.first + gap
  window.head, window.cut, row.dirty = next, 0, true
end

local function window_prune(row, window)
  if window.used > 0 and row.now - row.last >= window.span then
    window.used, row.dirty = 0, true
  end
  while window.used > 0 and row.now - window.first >= window.span do
    window_pop(row, window)
  end
end

local function window_decode(row, cell)
  local _, place
  row.forget, _, row.last, row.newest, place = unpack('<I4Bdd', cell)
  for _, window in ipairs(row.windows) do
    window.first, window.used, window.cut, window.head, place = unpack('<dddI4', cell, place)
    if window.used > 0 then
      row.now = max(row.now, row.last)
    end
  end
  row.chunk = sub(cell, place)
  row.whole = #cell < window_head_size(row) + CHUNK
  row.length = row.whole and #row.chunk or call('STRLEN', row.key) - place + 1
end

-- The window with the least free units, the first of equals.
local function window_measure(row)
  row.free = nil
  for _, window in ipairs(row.windows) do
    local free = window.limit - window.used
    if not row.free or free < row.free then
      row.free, row.limit = free, window.limit
    end
  end
end

local function window_load(row, now)
  row.forget, row.last, row.newest, row.length = 0, 0, 0, 0
  row.chunk, row.base, row.whole, row.dirty = '', 0, true, false
  for _, window in ipairs(row.windows) do
    window.first, window.used, window.cut, window.head = 0, 0, 0, 0
  end
  local cell = call('GETRANGE', row.key, 0, window_head_size(row) + CHUNK - 1)
  if cell ~= '' then
    local forget, count = unpack('<I4B', cell)
    if count ~= #row.windows then
      -- Another number of windows: the log starts empty, even for who only looks.
      row.dirty = not is_forgotten(forget, now)
    elseif not is_forgotten(forget, now) then
      window_decode(row, cell)
    end
  end
  for _, window in ipairs(row.windows) do
    window_prune(row, window)
  end
  window_measure(row)
end

-- Room for the next entry: the newest one goes to the body.
local function window_append(row, gap)
  local bytes = window_write(gap, row.newest)
  if row.whole then
    row.chunk = row.chunk .. bytes
  else
    call('APPEND', row.key, bytes)
    row.chunk = ''
  end
  row.length = row.length + #bytes
end

local function window_push(row, units)
  local empty = true
  for _, window in ipairs(row.windows) do
    empty = empty and window.used == 0
  end
  if empty then
    row.chunk, row.base, row.whole, row.length, row.newest = '', 0, true, 0, 0
  elseif row.now > row.last then
    window_append(row, row.now - row.last)
    row.newest = 0
  end
  for _, window in ipairs(row.windows) do
    if window.used == 0 then
      window.first, window.head, window.cut = row.now, row.length, row.newest
    end
    window.used = window.used + units
  end
  row.last, row.newest, row.dirty = row.now, row.newest + units, true
end

-- Forgets the oldest units above the limit.
local function window_trim(row, window)
  while window.used > window.limit do
    local units = window_oldest(row, window, window.head, window.cut)
    local excess = window.used - window.limit
    if units <= excess then
      window_pop(row, window)
    else
      window.cut, window.used = window.cut + excess, window.limit
    end
  end
end

local function window_full_at(row, from)
  for _, window in ipairs(row.windows) do
    if window.used > 0 then
      from = max(from, after(row.last, window.span))
    end
  end
  return from
end

local function window_charge(row, units, trimmed)
  window_push(row, units)
  for _, window in ipairs(row.windows) do
    if trimmed then
      window_trim(row, window)
    end
  end
  row.forget = second_after(window_full_at(row, 0))
  window_measure(row)
end

-- When `need` units fit in one window.
local function window_fits_at(row, window)
  local used, at, place, cut = window.used, window.first, window.head, window.cut
  local fits_at = row.now
  while used > window.limit - row.need do
    local units, gap, next = window_oldest(row, window, place, cut)
    used, fits_at = used - units, max(row.now, after(at, window.span))
    at, place, cut = at + gap, next, 0
  end
  return fits_at
end

local function window_figures(row)
  local fits_at = row.now
  for _, window in ipairs(row.windows) do
    if row.need > window.limit then
      fits_at = FOREVER
    elseif row.verdict ~= 0 then
      fits_at = max(fits_at, window_fits_at(row, window))
    end
  end
  return fits_at, window_full_at(row, row.now)
end

-- The place of the oldest entry that any window still counts, or nil if none does.
local function window_start(row)
  local start
  for _, window in ipairs(row.windows) do
    if window.used > 0 then
      start = min(start or window.head, window.head)
    end
  end
  return start
end

local function window_encode(row, start)
  local head = pack('<I4Bdd', row.forget, #row.windows, row.last, row.newest)
  for _, window in ipairs(row.windows) do
    local place = window.used > 0 and window.head - start or 0
    head = head .. pack('<dddI4', window.first, window.used, window.cut, place)
  end
  return head
end

local function window_save(row)
  if not row.dirty then
    return
  end
  local start = window_start(row)
  if not start then
    call('DEL', row.key)
  elseif row.whole then
    save(row.key, window_encode(row, start) .. sub(row.chunk, start + 1), row.forget)
  elseif start > row.length / 2 then
    local body = call('GETRANGE', row.key, window_head_size(row) + start, -1)
    save(row.key, window_encode(row, start) .. body, row.forget)
  else
    call('SETRANGE', row.key, 0, window_encode(row, 0))
    if timed and row.forget < NEVER then
      call('EXPIREAT', row.key, row.forget + GRACE)
    end
  end
end
