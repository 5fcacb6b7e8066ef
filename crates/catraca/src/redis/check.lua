-- Operation 1, the check: judges every row, then charges all rows or none, then starts the blocks
-- of the rows that are over their limit.
--
-- Batch: B  flags: 1 = peek (charge nothing), 2 = veto (the check is denied already), 4 = remember
--        a reference. With flag 4: `dc16I4` how long the reference lasts, its owner, length of the
--        ticket; then the ticket. Key: the reference. Then per row
--          B  algorithm
--          B  flags: 1 = shadow, 2 = count denied units, 4 = a penalty follows, 8 = other tiers
--             share the counter
--          d  units to charge; the penalty; the terms of the limit. Keys: the counter, the block
-- Reply: `dB` now, flags (1 = passed, 2 = remembered); then per row `BddddddBI4`:
--   verdict: 0 fits, 1 blocked, 2 too costly (never fits), 3 over limit; 4 is the short form of
--     "fits" in fast_path.lua
--   the row's instant, charged units, limit (-1: none), free units, fits_at (-1: fits now),
--   full_at, 1 if this check started the block, length of the block in force (0: none); then the
--   block as in its cell; then for a row with several windows the figures of each
--   (sliding_window.lua).

local BLOCKED, TOO_COSTLY, OVER_LIMIT = 1, 2, 3

-- Reads one row of the batch. `need` units must be free for the row to fit, and it can never fit if
-- `need` exceeds `capacity`. `now` becomes the row's instant when its counter is loaded.
local function read_row(now)
  local kind, flags, held
  kind, flags, held, place = unpack('<BBd', batch, place)
  local row = {
    held = held, need = 1, key = false, block_key = false, shadow = flags % 2 == 1,
    count_denied = flags % 4 >= 2, penalty = flags % 8 >= 4 and read_penalty(), meter = false,
    shares = flags >= 8,
    now = now, free = 0, limit = -1, capacity = FOREVER, verdict = FITS, charged = 0, started = 0,
  }
  if kind > 0 then
    row.need, row.meter, row.key = max(1, held), meter_of(kind), next_key()
    row.meter.read(row)
  end
  row.block_key = next_key()
  return row
end

-- Loads counter and block of a row; returns the verdict. Writes nothing: expired entries that it
-- dropped are saved by `finish`, but not by a peek (docs/batch.md, section 2).
local function judge(row, now)
  if row.meter then
    row.meter.load(row, now)
  end
  row.block = load_block(row.block_key)
  -- At the instant of the batch; everything later happens at the row's instant, `row.now`.
  if stands(row.block, now, row.shadow) then
    return BLOCKED
  elseif not row.meter then
    return FITS
  elseif row.need > row.capacity then
    return TOO_COSTLY
  end
  return row.free < row.need and OVER_LIMIT or FITS
end

-- A row over its limit: counts the denied units and starts the penalty, if the policy says so.
local function exceed(row)
  if row.count_denied and row.meter.count_denied and row.held > 0 then
    row.meter.count_denied(row)
  end
  if row.penalty then
    local act = { penalty = row.penalty, origin = EXCESS, shadow = row.shadow, note = '' }
    row.started = make_act()(row, act, row.now) and 1 or 0
  end
end

-- The row's part of the reply. The figures are computed after all writes of the check. A peek
-- writes nothing, not even the entries that are left.
local function answer(row, peek)
  local fits_at, full_at, windows = row.now, row.now, nil
  if row.meter then
    fits_at, full_at, windows = row.meter.figures(row)
    if row.meter.finish and not peek then
      row.meter.finish(row)
    end
  end
  local ends, block = -1, ''
  if stands(row.block, row.now, row.shadow) then
    ends, block = row.block.ends, pack_block(row.block)
  end
  fits_at = row.verdict == FITS and -1 or max(fits_at, ends)
  return pack('<BddddddBI4', row.verdict, row.now, row.charged, row.limit, row.free, fits_at,
    max(full_at, ends), row.started, #block) .. block .. (windows or '')
end

-- What a check that is not a peek does to a row. Only rows with leases are charged for 0 units: the
-- request itself takes a place.
local function act_on(row, passed)
  if row.verdict == OVER_LIMIT then
    exceed(row)
  elseif row.verdict == FITS and passed and row.meter then
    if row.held > 0 or row.meter.give_back then
      row.charged = row.meter.charge(row, row.held)
    end
  end
end

local function check(now)
  local flags, remember
  flags, place = unpack('<B', batch, place)
  if flags >= 4 then
    remember = make_remember()
  end
  local peek, passed, rows = flags % 2 == 1, flags % 4 < 2, {}
  -- All rows are judged before any row is charged: the check passes only if every enforcing row
  -- fits.
  while place <= #batch do
    local row = read_row(now)
    row.verdict = judge(row, now)
    passed = passed and (row.verdict == FITS or row.shadow)
    rows[#rows + 1] = row
  end
  for index = 1, peek and 0 or #rows do
    act_on(rows[index], passed)
  end
  local remembered = remember and passed and not peek and remember(rows, now)
  local reply = pack('<dB', now, (passed and 1 or 0) + (remembered and 2 or 0))
  for index = 1, #rows do
    reply = reply .. answer(rows[index], peek)
  end
  return reply
end

-- Most batches are checks. They return here, before the functions of the other operations are
-- created.
local operation = byte(batch)
if operation == 1 then
  return check(now)
end
