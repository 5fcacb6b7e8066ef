-- The check: judge every row, then charge all or none, then start the blocks that are due.
-- It must not charge anything when an enforcing row does not fit.

local FITS, BLOCKED, TOO_COSTLY, OVER_LIMIT = 0, 1, 2, 3
local NONE, BUCKET, WINDOW = 0, 1, 2

-- Reads one row of the batch; returns it and the place of the next.
local function read_row(batch, place, index)
  local kind, flags, held
  kind, flags, held, place = unpack('<BBd', batch, place)
  local row = {
    kind = kind, held = held, need = max(1, held), key = KEYS[2 * index - 1],
    block_key = KEYS[2 * index], shadow = flags % 2 == 1, count_denied = flags % 4 >= 2,
    penalty = false, block = false, now = 0, free = 0, limit = -1, verdict = FITS, charged = 0,
    started = 0,
  }
  if flags >= 4 then
    local first, factor, longest, forget
    first, factor, longest, forget, place = unpack('<dddd', batch, place)
    row.penalty = { first = first, factor = factor, max = longest, forget = forget }
  end
  if kind == BUCKET then
    row.size, row.gain, row.period, row.tag, place = unpack('<dddI4', batch, place)
  elseif kind == WINDOW then
    local count
    count, place = unpack('<B', batch, place)
    row.windows = {}
    for number = 1, count do
      local limit, span
      limit, span, place = unpack('<dd', batch, place)
      row.windows[number] = { limit = limit, span = span, first = 0, used = 0, cut = 0, head = 0 }
    end
  else
    row.need = 1
  end
  return row, place
end

local function capacity(row)
  if row.kind == BUCKET then
    return row.size
  end
  local smallest = FOREVER
  for _, window in ipairs(row.windows or {}) do
    smallest = min(smallest, window.limit)
  end
  return smallest
end

local function judge(row, now)
  row.now = now
  if row.kind == BUCKET then
    bucket_load(row, now)
  elseif row.kind == WINDOW then
    window_load(row, now)
  end
  row.block = block_load(row.block_key)
  if block_stands(row.block, now, row.shadow) then
    return BLOCKED
  elseif row.kind == NONE then
    return FITS
  elseif row.need > capacity(row) then
    return TOO_COSTLY
  end
  return row.free < row.need and OVER_LIMIT or FITS
end

local function charge(row)
  if row.held > 0 and row.kind == BUCKET then
    row.charged = bucket_take(row, row.held)
  elseif row.held > 0 and row.kind == WINDOW then
    window_charge(row, row.held, false)
    row.charged = row.held
  end
end

local function exceed(row)
  if row.count_denied and row.kind == WINDOW and row.held > 0 then
    window_charge(row, row.held, true)
  end
  if not row.penalty then
    return
  end
  local act = { penalty = row.penalty, origin = EXCESS, shadow = row.shadow, note = '' }
  local block = block_after(row.block, act, row.now)
  if block then
    row.block, row.started = block, 1
    block_save(row.block_key, block)
  end
end

local function answer(row, reply)
  local fits_at, full_at = row.now, row.now
  if row.kind == BUCKET then
    fits_at, full_at = bucket_figures(row)
  elseif row.kind == WINDOW then
    fits_at, full_at = window_figures(row)
    window_save(row)
  end
  local ends, origin, note = -1, 0, ''
  if block_stands(row.block, row.now, row.shadow) then
    ends, origin, note = row.block.ends, row.block.origin, row.block.note
  end
  fits_at = row.verdict == FITS and -1 or max(fits_at, ends)
  local last = #reply
  reply[last + 1], reply[last + 2], reply[last + 3] = row.verdict, row.now, row.charged
  reply[last + 4], reply[last + 5], reply[last + 6] = row.limit, row.free, fits_at
  reply[last + 7], reply[last + 8], reply[last + 9] = max(full_at, ends), ends, origin
  reply[last + 10], reply[last + 11] = row.started, note
end

local function check(batch, flags, place, now)
  local peek, passed, rows = flags % 2 == 1, flags < 2, {}
  for index = 1, #KEYS / 2 do
    local row
    row, place = read_row(batch, place, index)
    row.verdict = judge(row, now)
    passed = passed and (row.verdict == FITS or row.shadow)
    rows[index] = row
  end
  for _, row in ipairs(peek and {} or rows) do
    if row.verdict == FITS and passed then
      charge(row)
    elseif row.verdict == OVER_LIMIT then
      exceed(row)
    end
  end
  local reply = { now, passed and 1 or 0 }
  for _, row in ipairs(rows) do
    answer(row, reply)
  end
  return reply
end

local operation, flags, place = unpack('<BB', ARGV[1])
if operation ~= 1 then
  return redis.error_reply('CATRACA unknown operation ' .. operation)
end
return check(ARGV[1], flags, place, timed and read_clock() or tonumber(ARGV[2]))
