-- The exact sliding window: every unit with its own instant, a few bytes each.
--
-- A cell is a head and a body. The head is `<I4Bdd`: forget, how many windows, the newest entry's
-- instant and units; then per window `<dddI4`: the oldest live instant, units, units already cut
-- from the oldest entry, and where that entry starts in the body. The body holds all entries but
-- the newest, oldest first, once for all windows: the units of a shorter window are the last ones
-- of a longer. An entry is its gap to the next one and its units, as in entry.lua.
-- Short cells are rewritten whole; of long ones only the head and the end, so that a check costs
-- the same whether the window holds ten units or ten thousand. It must not approximate.

local function make_window()
  local write_entry, read_entry = make_entries()

  -- The units of the oldest entry at a place, the gap to the next one, and where that starts.
  -- What is counted must be there: a damaged cell ends the script, or it would never end.
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

  local function pop(row, window)
    local units, gap, next = oldest(row, window.head, window.cut, window.used)
    window.used, window.first = window.used - units, window.first + gap
    window.head, window.cut, row.dirty = next, 0, true
  end

  local function prune(row, window)
    if window.used > 0 and row.now - row.last >= window.span then
      window.used, row.dirty = 0, true
    end
    while window.used > 0 and row.now - window.first >= window.span do
      pop(row, window)
    end
  end

  -- Forgets the oldest units above the limit.
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

  -- Shows the window with the least free units, the first of equals.
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

  local function full_at(row, from)
    for _, window in ipairs(row.windows) do
      if window.used > 0 then
        from = max(from, after(row.last, window.span))
      end
    end
    return from
  end

  local function decode(row, cell)
    local _, place
    row.forget, _, row.last, row.newest, place = unpack('<I4Bdd', cell)
    for _, window in ipairs(row.windows) do
      window.first, window.used, window.cut, window.head, place = unpack('<dddI4', cell, place)
      if window.used > 0 then
        row.now = max(row.now, row.last)
      end
    end
    row.chunk = sub(cell, place)
    row.whole = #cell < row.head_size + CHUNK
    row.length = row.whole and #row.chunk or call('STRLEN', row.key) - row.head_size
  end

  -- Reads the cell as it is; returns whether there is one.
  local function open(row, now)
    local cell = read_cell('GETRANGE', row.key, 0, row.head_size + CHUNK - 1)
    if not cell or cell == '' then
      return false
    end
    local forget, count = unpack('<I4B', cell)
    if is_forgotten(forget, now) then
      return false
    elseif count ~= #row.windows then
      -- Another number of windows: the log starts empty, even for who only looks.
      row.dirty = true
      return false
    end
    decode(row, cell)
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

  -- Forgets the units of the newest entry that every window has cut: they must not add up with
  -- what comes at the same instant beyond what is exact.
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

  -- Makes room for a newer entry: the newest one goes to the body, unless nothing counts any more.
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
        call('APPEND', row.key, bytes)
        row.chunk = ''
      end
      row.length, row.newest = row.length + #bytes, 0
    else
      drop_uncounted(row)
    end
  end

  local function push(row, units)
    make_room(row)
    for _, window in ipairs(row.windows) do
      if window.used == 0 then
        window.first, window.head, window.cut = row.now, row.length, row.newest
      end
      window.used = window.used + units
    end
    row.last, row.newest = row.now, row.newest + units
  end

  local function reckon(row)
    row.dirty, row.forget = true, second_after(full_at(row, 0))
    measure(row)
  end

  -- What the fullest window could still count.
  local function countable(row)
    local most = 0
    for _, window in ipairs(row.windows) do
      most = max(most, window.used)
    end
    return EXACT_MAX - most
  end

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

  -- When the row's need fits in one window.
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

  local function encode(row, start)
    local head = pack('<I4Bdd', row.forget, #row.windows, row.last, row.newest)
    for _, window in ipairs(row.windows) do
      local place = window.used > 0 and window.head - start or 0
      head = head .. pack('<dddI4', window.first, window.used, window.cut, place)
    end
    return head
  end

  -- Rewrites a cell: whole, or without what has left, or only its head.
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

  -- An empty log of so many windows, until its cell is opened.
  local function begin(row, windows)
    row.windows, row.head_size, row.dirty = windows, 21 + 28 * #windows, false
    row.forget, row.last, row.newest, row.length = 0, 0, 0, 0
    row.chunk, row.base, row.whole = '', 0, true
    measure(row)
  end

  local function untouched(limit, span)
    return { limit = limit, span = span, first = 0, used = 0, cut = 0, head = 0 }
  end

  -- Reads the terms; the row is an empty log until its cell is loaded.
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
    figures = function(row)
      local instant = row.now
      for _, window in ipairs(row.verdict == FITS and {} or row.windows) do
        instant = max(instant, fits_at(row, window))
      end
      return instant, full_at(row, row.now)
    end,
    count_denied = function(row)
      charge(row, row.held, true)
    end,
    refund = function(row, at, units)
      local refunded = make_refund(read_entry, write_entry)(row, at, units)
      -- What changes nothing writes nothing: the last write still says when to forget.
      if refunded > 0 then
        reckon(row)
      end
      return refunded
    end,
    -- Adds a unit to a log of its own; at the limit that log is spent, and the answer is true.
    strike = function(key, limit, span, now)
      local log, window = { key = key, now = now }, untouched(limit, span)
      begin(log, { window })
      if open(log, now) then
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
    -- Called last, when the figures have been read.
    finish = function(row)
      if row.dirty then
        store(row)
      end
    end,
  }
end
