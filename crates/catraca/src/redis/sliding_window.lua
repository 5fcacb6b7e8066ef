-- The exact sliding window: every unit is stored with its instant, in a few bytes. Nothing is
-- approximated. A policy may have several windows (10 per second and 100 per minute); strikes of
-- bans use a window of their own.
--
-- Terms: `B` how many windows, then `dd` limit and span of each.
-- A cell is a head and a body.
--   head  `<I4Bdd`: forget (second), number of windows, instant and units of the newest entry; then
--         per window `<dddI4`: instant of its oldest live entry, units in the window, units that
--         were cut from that entry (not counted any more), offset of that entry in the body.
--         21 + 28 * windows bytes.
--   body  all entries except the newest, oldest first (window_entries.lua). It is shared by all
--         windows: the units of a shorter window are the last ones of a longer window.
-- The newest entry is in the head, because further units of the same instant are added to it.
--
-- A body below CHUNK bytes is read and written as a whole. Of a longer one only the head and the
-- end are written, so that a check of a window with 10,000 units costs as much as one with 10.
--
-- In a row: `whole` says that `chunk` is the complete body, `length` is the length of the body,
-- `last` and `newest` are instant and units of the newest entry, `dirty` asks `finish` to write.
-- In a window: `first`, `used`, `cut` and `head` are the four fields of the cell's head. If `used`
-- is 0, the other three mean nothing.

local function make_window()
  local write_entry, read_entry = make_entries()

  -- Counted units of the oldest entry of a window, its gap to the next entry, and the offset of
  -- that one. A cell whose figures do not add up is damaged: without these tests the loops below
  -- might never end. At the end of the body the newest entry is the oldest one left, and all that
  -- the window counts must be in it.
  local function oldest(row, place, cut, used)
    local units, gap, next = row.newest - cut, 0, place
    if place < row.length then
      gap, units, next = read_entry(row, place)
      units = units - cut
    elseif units ~= used then
      damaged()
    end
    if not (units > 0 and units <= used) then
      damaged()
    end
    return units, gap, next
  end

  -- Removes the oldest entry from a window.
  local function pop(row, window)
    local units, gap, next = oldest(row, window.head, window.cut, window.used)
    window.used, window.first = window.used - units, window.first + gap
    window.head, window.cut, row.dirty = next, 0, true
  end

  -- Removes the entries that have left the window at `row.now`.
  local function prune(row, window)
    -- The newest entry has left: the others need not be read.
    if window.used > 0 and row.now - row.last >= window.span then
      window.used, row.dirty = 0, true
    end
    while window.used > 0 and row.now - window.first >= window.span do
      pop(row, window)
    end
  end

  -- Removes the oldest units above the limit (after denied units were counted); part of an entry is
  -- removed by `cut`.
  local function trim(row, window)
    while window.used > window.limit do
      local units = oldest(row, window.head, window.cut, window.used)
      local excess = window.used - window.limit
      if units <= excess then
        pop(row, window)
      else
        window.cut, window.used = window.cut + excess, window.limit
      end
    end
  end

  -- Sets limit and free units of the row to those of the tightest window, the first if several are
  -- equal.
  local function measure(row)
    local windows = row.windows
    row.limit, row.free = windows[1].limit, windows[1].limit - windows[1].used
    for index = 2, #windows do
      local free = windows[index].limit - windows[index].used
      if free < row.free then
        row.limit, row.free = windows[index].limit, free
      end
    end
  end

  -- When all windows are empty, at least `from`.
  local function full_at(row, from)
    for _, window in ipairs(row.windows) do
      if window.used > 0 then
        from = max(from, after(row.last, window.span))
      end
    end
    return from
  end

  -- Reads the head, and the body as far as it is in `cell`.
  local function decode(row, cell)
    local _, place
    row.forget, _, row.last, row.newest, place = unpack('<I4Bdd', cell)
    for _, window in ipairs(row.windows) do
      window.first, window.used, window.cut, window.head, place = unpack('<dddI4', cell, place)
      -- Time never goes backwards for a counter that is not empty.
      if window.used > 0 then
        row.now = max(row.now, row.last)
      end
    end
    row.chunk = sub(cell, place)
    -- `open` read CHUNK bytes of the body at most: if it got fewer, there are no more.
    row.whole = #cell < row.head_size + CHUNK
    row.length = row.whole and #row.chunk or call('STRLEN', row.key) - row.head_size
  end

  -- Reads a cell that was written with another number of windows. The window with the most units
  -- contains those of the others, so each of the row's windows begins with them.
  local function convert(row, count)
    local cell, most, _, place = call('GET', row.key), nil, nil, nil
    row.forget, _, row.last, row.newest, place = unpack('<I4Bdd', cell)
    for _ = 1, count do
      local window = {}
      window.first, window.used, window.cut, window.head, place = unpack('<dddI4', cell, place)
      if not most or window.used > most.used then
        most = window
      end
    end
    for _, window in ipairs(most and row.windows or damaged()) do
      window.first, window.used = most.first, most.used
      window.cut, window.head = most.cut, most.head
    end
    if most.used > 0 then
      row.now = max(row.now, row.last)
    end
    row.chunk, row.dirty = sub(cell, place), true
    row.length = #row.chunk
  end

  -- Reads the cell without removing expired entries; returns whether there is a live one.
  local function open(row, now)
    local cell = read_cell('GETRANGE', row.key, 0, row.head_size + CHUNK - 1)
    -- GETRANGE answers an empty string for a missing key.
    if not cell or cell == '' then
      return false
    end
    local forget, count = unpack('<I4B', cell)
    if is_forgotten(forget, now) then
      return false
    elseif count ~= #row.windows then
      convert(row, count)
    else
      decode(row, cell)
    end
    return true
  end

  local function load(row, now)
    if not open(row, now) then
      return
    end
    for _, window in ipairs(row.windows) do
      prune(row, window)
    end
    measure(row)
  end

  -- Removes the units of the newest entry that every window has cut. Otherwise units of the same
  -- instant would add up beyond 2^53. At least one window counts something here (`make_room`).
  local function drop_uncounted(row)
    local least = FOREVER
    for _, window in ipairs(row.windows) do
      if window.used > 0 then
        least = min(least, window.head >= row.length and window.cut or 0)
      end
    end
    row.newest = row.newest - least
    for _, window in ipairs(row.windows) do
      if least > 0 and window.used > 0 then
        window.cut = window.cut - least
      end
    end
  end

  -- Makes the newest entry one of the row's instant: the previous one moves to the end of the body,
  -- or everything is dropped if no window counts anything.
  local function make_room(row)
    local empty = true
    for _, window in ipairs(row.windows) do
      empty = empty and window.used == 0
    end
    if empty then
      row.chunk, row.base, row.whole, row.length, row.newest = '', 0, true, 0, 0
    elseif row.now > row.last then
      local bytes = write_entry(row.now - row.last, row.newest)
      if row.whole then
        row.chunk = row.chunk .. bytes
      else
        -- The bytes that were read are not needed any more; `read_entry` reads again if they are.
        call('APPEND', row.key, bytes)
        row.chunk = ''
      end
      row.length, row.newest = row.length + #bytes, 0
    else
      drop_uncounted(row)
    end
  end

  -- Adds units at the row's instant.
  local function push(row, units)
    make_room(row)
    for _, window in ipairs(row.windows) do
      -- The window begins at the newest entry, but does not count the units already in it.
      if window.used == 0 then
        window.first, window.head, window.cut = row.now, row.length, row.newest
      end
      window.used = window.used + units
    end
    row.last, row.newest = row.now, row.newest + units
  end

  -- Recomputes `forget` and the figures after a write.
  local function reckon(row)
    row.dirty, row.forget = true, second_after(full_at(row, 0))
    measure(row)
  end

  -- How many units can be added before the fullest window exceeds 2^53.
  local function countable(row)
    local most = 0
    for _, window in ipairs(row.windows) do
      most = max(most, window.used)
    end
    return EXACT_MAX - most
  end

  -- Adds units to all windows. With `trimmed`, the oldest units above each limit are removed. All
  -- windows count the same number of units, because they share the entries.
  local function charge(row, units, trimmed)
    local counted = min(units, countable(row))
    if counted > 0 then
      push(row, counted)
    end
    for _, window in ipairs(trimmed and row.windows or {}) do
      trim(row, window)
    end
    reckon(row)
    return units
  end

  -- When the row's need fits in one window: when enough of the oldest entries have left.
  local function fits_at(row, window)
    local used, at, place, cut = window.used, window.first, window.head, window.cut
    local instant = row.need <= window.limit and row.now or FOREVER
    while used > window.limit - row.need and instant < FOREVER do
      local units, gap, next = oldest(row, place, cut, used)
      used, instant = used - units, max(row.now, after(at, window.span))
      at, place, cut = at + gap, next, 0
    end
    return instant
  end

  -- The head of a cell whose body begins at offset `start` of the present body.
  local function encode(row, start)
    local head = pack('<I4Bdd', row.forget, #row.windows, row.last, row.newest)
    for _, window in ipairs(row.windows) do
      local place = window.used > 0 and window.head - start or 0
      head = head .. pack('<dddI4', window.first, window.used, window.cut, place)
    end
    return head
  end

  -- Writes a cell. A short one is written as a whole. A long one is compacted when more than half
  -- of its body has left all windows; otherwise only its head is written (APPEND wrote the end), so
  -- that replicas and the append-only file do not get the whole window at each check.
  local function rewrite(row, start)
    if row.whole then
      save(row.key, encode(row, start) .. sub(row.chunk, start + 1), row.forget)
    elseif start > row.length / 2 then
      local body = call('GETRANGE', row.key, row.head_size + start, -1)
      save(row.key, encode(row, start) .. body, row.forget)
    else
      call('SETRANGE', row.key, 0, encode(row, 0))
      if timed and row.forget < NEVER then
        call('EXPIREAT', row.key, dropped_at(row.forget))
      end
    end
  end

  -- Writes the cell, or deletes it if no window counts anything. `start` is the offset of the
  -- oldest entry that is still counted.
  local function store(row)
    local start
    for _, window in ipairs(row.windows) do
      if window.used > 0 then
        start = min(start or window.head, window.head)
      end
    end
    if start then
      rewrite(row, start)
    else
      call('DEL', row.key)
    end
  end

  -- Initialises a row with empty windows.
  local function begin(row, windows)
    row.windows, row.head_size, row.dirty = windows, 21 + 28 * #windows, false
    row.forget, row.last, row.newest, row.length = 0, 0, 0, 0
    row.chunk, row.base, row.whole = '', 0, true
    measure(row)
  end

  local function untouched(limit, span)
    return { limit = limit, span = span, first = 0, used = 0, cut = 0, head = 0 }
  end

  -- Reads the terms from the batch. Until `load` finds a cell, the windows are empty.
  local function read(row)
    local count, windows = nil, {}
    count, place = unpack('<B', batch, place)
    row.capacity = FOREVER
    for number = 1, count do
      local limit, span
      limit, span, place = unpack('<dd', batch, place)
      windows[number] = untouched(limit, span)
      row.capacity = min(row.capacity, limit)
    end
    begin(row, windows)
  end

  return {
    read = read,
    load = load,
    charge = charge,
    -- When the need fits in all windows, and when all are empty. For several windows also the
    -- figures of each, `<ddd`: free units, when the need fits (-1: it fits), when it is empty. One
    -- window that fits needs no figures.
    figures = function(row)
      local instant, each = row.now, ''
      local is_plain = #row.windows == 1 and row.verdict == FITS
      for _, window in ipairs(is_plain and {} or row.windows) do
        local free, full = window.limit - window.used, row.now
        local fits = free >= row.need and -1 or fits_at(row, window)
        if window.used > 0 then
          full = max(full, after(row.last, window.span))
        end
        instant, each = max(instant, fits), each .. pack('<ddd', free, fits, full)
      end
      return instant, full_at(row, row.now), #row.windows > 1 and each or ''
    end,
    count_denied = function(row)
      charge(row, row.held, true)
    end,
    refund = function(row, at, units)
      local refunded = make_refund(read_entry, write_entry)(row, at, units)
      -- A refund that found nothing writes nothing, so `forget` stays that of the last write.
      if refunded > 0 then
        reckon(row)
      end
      return refunded
    end,
    -- Adds one strike to the window of a ban rule. At the limit the strikes are deleted, and the
    -- result is true: the ban starts.
    strike = function(key, limit, span, now)
      local log, window = { key = key, now = now }, untouched(limit, span)
      begin(log, { window })
      if open(log, now) then
        -- Unlike a counter, strikes are pruned at `now` itself (docs/batch.md, section 3).
        log.now = now
        prune(log, window)
        log.now = window.used > 0 and max(now, log.last) or now
      end
      charge(log, 1)
      if log.free <= 0 then
        call('DEL', key)
      else
        store(log)
      end
      return log.free <= 0
    end,
    -- Called after the figures were computed, which may still read entries.
    finish = function(row)
      if row.dirty then
        store(row)
      end
    end,
  }
end
