-- The check: judge every row, then charge all or none, then start the blocks that are due.
-- It must not charge anything when an enforcing row does not fit.

local BLOCKED, TOO_COSTLY, OVER_LIMIT = 1, 2, 3

-- How each algorithm reads its terms, loads its cell, charges and shows figures.
local bucket, window

local function meter_of(kind)
  if kind == 1 then
    bucket = bucket or make_bucket()
    return bucket
  end
  window = window or make_window()
  return window
end

-- Reads one row of the batch; returns it and the place of the next.
local function read_row(batch, place, index)
  local kind, flags, held
  kind, flags, held, place = unpack('<BBd', batch, place)
  local row = {
    held = held, need = 1, key = KEYS[2 * index - 1], block_key = KEYS[2 * index],
    shadow = flags % 2 == 1, count_denied = flags % 4 >= 2, penalty = false, meter = false,
    now = 0, free = 0, limit = -1, capacity = FOREVER, verdict = FITS, charged = 0, started = 0,
  }
  if flags >= 4 then
    local first, factor, longest, forget
    first, factor, longest, forget, place = unpack('<dddd', batch, place)
    row.penalty = { first = first, factor = factor, max = longest, forget = forget }
  end
  if kind > 0 then
    row.need, row.meter = max(1, held), meter_of(kind)
    place = row.meter.read(row, batch, place)
  end
  return row, place
end

local function judge(row, now)
  row.now = now
  if row.meter then
    row.meter.load(row, now)
  end
  row.block = load_block(row.block_key)
  if stands(row.block, now, row.shadow) then
    return BLOCKED
  elseif not row.meter then
    return FITS
  elseif row.need > row.capacity then
    return TOO_COSTLY
  end
  return row.free < row.need and OVER_LIMIT or FITS
end

local function exceed(row)
  if row.count_denied and row.meter.count_denied and row.held > 0 then
    row.meter.count_denied(row)
  end
  if row.penalty then
    local act = { penalty = row.penalty, origin = EXCESS, shadow = row.shadow, note = '' }
    local block = make_act()(row.block_key, row.block, act, row.now)
    row.block, row.started = block or row.block, block and 1 or 0
  end
end

local function answer(row)
  local fits_at, full_at = row.now, row.now
  if row.meter then
    fits_at, full_at = row.meter.figures(row)
    if row.meter.finish then
      row.meter.finish(row)
    end
  end
  local ends, origin, note = -1, 0, ''
  if stands(row.block, row.now, row.shadow) then
    ends, origin, note = row.block.ends, row.block.origin, row.block.note
  end
  fits_at = row.verdict == FITS and -1 or max(fits_at, ends)
  return pack('<BdddddddBBI2', row.verdict, row.now, row.charged, row.limit, row.free, fits_at,
    max(full_at, ends), ends, origin, row.started, #note) .. note
end

local function act(row, passed)
  if row.verdict == OVER_LIMIT then
    exceed(row)
  elseif row.verdict == FITS and passed and row.meter and row.held > 0 then
    row.charged = row.meter.charge(row, row.held)
  end
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
  for index = 1, peek and 0 or #rows do
    act(rows[index], passed)
  end
  local reply = pack('<dB', now, passed and 1 or 0)
  for index = 1, #rows do
    reply = reply .. answer(rows[index])
  end
  return reply
end

local operation, flags, place = unpack('<BB', ARGV[1])
if operation ~= 1 then
  return redis.error_reply('CATRACA unknown operation ' .. operation)
end
return check(ARGV[1], flags, place, timed and read_clock() or tonumber(ARGV[2]))
