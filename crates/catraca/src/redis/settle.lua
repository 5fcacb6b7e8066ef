-- Operation 2, the settle: the units that a check reserved become the real price, once; then bans
-- and watched ratios are judged.
--
-- Batch: `dB` expires (of the ticket), flags (1 = a reference follows). With flag 1: `I4c16` status
--        (0: none) and owner. Keys: the mark, the reference if flagged. Then per row
--          B  algorithm
--          B  flags: 1 = shadow, 2 = debt (may charge more than is free), 4 = a penalty follows,
--             8 = a block that the upstream asked for follows, 16 = same policy as the row before,
--             32 = a watched ratio follows, 64 = drain (charge all that is free), 128 = other tiers
--             share the counter
--          Bddd  index in the ticket, units held by the check, instant of the check, price in units
--          the penalty; `d` span of the upstream's block; the terms of the limit;
--          B  number of bans, and for each: `BB` rule, flags (1 = only after some strikes); with
--             flag 1 `dd` number of strikes and their span; then the act of the ban
--          the watched ratio: `Bddd` 1 if the outcome is in the part, span, threshold in hundredths
--             of a percent, least number of outcomes; then its act
--          Acts and ratio are only in the first row of a policy: if one key of a policy earns a
--          ban, all of them get it.
--        Keys per row: the counter, the block, the strikes of each ban with flag 1, the watched
--        ratio if the policy has one.
-- Reply: `dB` now, state (0 settled, 1 settled before, 2 expired). With state 0 `I2` number of the
--   blocks that this settle started or extended (by a shadow ban too), and for each `BI4` index
--   in the ticket and length, then the block as in its cell. Then per row `BBdddBB`: index in the
--   ticket, 1 if free is known, charged units, free units, end of the block in force (-1: none),
--   origin and ban rule of the last act that moved the end (255: none).
-- A mark says that a ticket was settled: `<d` expires, then the rows of the reply. A repeated
-- settle gets the same rows and changes nothing.

-- No origin, no rule.
local UNTOLD = 255

-- Reads an act (see prelude.lua).
local function read_act()
  local origin, shadow, length
  origin, shadow, place = unpack('<BB', batch, place)
  local penalty = read_penalty()
  length, place = unpack('<I4', batch, place)
  return {
    origin = origin, shadow = shadow == 1, penalty = penalty, note = read_bytes(length),
  }
end

local function make_settle()
  local act, watches = make_act(), nil

  -- Reads the bans of a row; only the first row of a policy contains their acts.
  local function read_bans(row)
    local count
    count, place = unpack('<B', batch, place)
    for number = 1, count do
      local ban, flags = {}, nil
      ban.rule, flags, place = unpack('<BB', batch, place)
      if flags == 1 then
        ban.after, ban.per, place = unpack('<dd', batch, place)
        ban.key = next_key()
      end
      ban.act = not row.follows and read_act()
      row.bans[number] = ban
    end
  end

  -- Reads one row; `last` is the row before, whose watched ratio it shares within a policy.
  local function read_row(now, last)
    local kind, flags, ticket, held, at, price
    kind, flags, ticket, held, at, price, place = unpack('<BBBddd', batch, place)
    local row = {
      place = ticket, held = held, at = at, price = price, drain = flags % 128 >= 64, now = now,
      shares = flags >= 128,
      shadow = flags % 2 == 1, debt = flags % 4 >= 2, penalty = flags % 8 >= 4 and read_penalty(),
      follows = flags % 32 >= 16, meter = false, bans = {}, charged = held, started = UNTOLD,
      rule = UNTOLD, free = 0, limit = -1, upstream = false, watch = false, moved = false,
    }
    if flags % 16 >= 8 then
      row.upstream, place = unpack('<d', batch, place)
    end
    if kind > 0 then
      row.meter, row.key = meter_of(kind), next_key()
      row.meter.read(row)
    end
    row.block_key = next_key()
    read_bans(row)
    if flags % 64 >= 32 then
      local watch = {}
      watch.in_part, watch.per, watch.above, watch.min, place = unpack('<Bddd', batch, place)
      watch.act, row.watch = read_act(), watch
    elseif row.follows then
      row.watch = last.watch
    end
    row.watch_key = row.watch and next_key()
    return row
  end

  -- Stores the last act that moved the end of the row's block, for the reply.
  local function note(row, moved, origin, rule)
    if moved then
      row.started, row.rule, row.moved = origin, rule, true
    end
  end

  -- A price that exceeds what is free starts the penalty, as a check over the limit does.
  local function cross(row, extra)
    if extra > 0 and extra > row.free and row.penalty then
      local excess = { penalty = row.penalty, origin = EXCESS, shadow = row.shadow, note = '' }
      note(row, act(row, excess, row.now), EXCESS, UNTOLD)
    end
  end

  local function charge(row, units)
    return units > 0 and row.meter.charge(row, units) or 0
  end

  -- Charges or refunds the difference between price and held units; returns what was charged on top
  -- of the held units (negative for a refund).
  local function difference(row)
    if not row.meter then
      return 0
    elseif row.meter.give_back then
      row.meter.give_back(row)
      return 0
    elseif row.drain then
      return charge(row, row.free)
    elseif row.price < row.held then
      return -row.meter.refund(row, row.at, row.held - row.price)
    end
    local extra = row.price - row.held
    cross(row, extra)
    -- Without debt only what is free; a negative `row.free` charges nothing.
    return charge(row, row.debt and extra or min(extra, row.free))
  end

  -- Everything that a row does at its own instant: the price, then the upstream's block.
  local function pay(row, now)
    row.block = load_block(row.block_key)
    if row.meter then
      row.meter.load(row, now)
    end
    -- The sum may exceed 2^53, which the reply cannot represent (docs/batch.md, section 4).
    row.charged = min(row.held + difference(row), EXACT_MAX)
    if row.upstream then
      local span = row.upstream
      -- A block of this length that does not escalate.
      local penalty = { first = span, factor = 1, max = span, forget = 0 }
      local asked = { penalty = penalty, origin = UPSTREAM, shadow = row.shadow, note = '' }
      note(row, act(row, asked, row.now), UPSTREAM, UNTOLD)
    end
  end

  -- Counts a strike against one key; returns whether it starts the ban. While a block is in force
  -- strikes are not counted.
  local function strikes_out(row, ban, now)
    if not ban.after then
      return true
    elseif stands(row.block, now, row.shadow) then
      return false
    end
    return meter_of(2).strike(ban.key, ban.after, ban.per, now)
  end

  -- Counts the outcome in the row's watched ratio, unless a block is in force; returns whether the
  -- ratio is too high.
  local function exceeds(row, watch, now)
    if stands(row.block, now, row.shadow) then
      return false
    end
    watches = watches or make_watch()
    return watches(row.watch_key, watch, now)
  end

  -- Applies a ban to all rows of a policy. A shadow ban is not reported, but its block is replied.
  local function ban_all(rows, from, to, ban, rule, now)
    for index = from, to do
      local moved = act(rows[index], ban, now)
      rows[index].moved = rows[index].moved or moved
      note(rows[index], moved and not ban.shadow, BAN, rule)
    end
  end

  -- Judges the outcome for the rows of one policy, `from` to `to`. Every row counts its strike,
  -- even if an earlier one has started the ban.
  local function judge_policy(rows, from, to, now)
    for number, ban in ipairs(rows[from].bans) do
      local out = false
      for index = from, to do
        local own = rows[index].bans[number]
        out = own and strikes_out(rows[index], own, now) or out
      end
      if out then
        ban_all(rows, from, to, ban.act, ban.rule, now)
      end
    end
    local watch, high = rows[from].watch, false
    for index = from, watch and to or 0 do
      high = exceeds(rows[index], watch, now) or high
    end
    if high then
      ban_all(rows, from, to, watch.act, UNTOLD, now)
    end
  end

  local function judge_all(rows, now)
    local from = 1
    for index = 1, #rows do
      if index == #rows or not rows[index + 1].follows then
        judge_policy(rows, from, index, now)
        from = index + 1
      end
    end
  end

  -- The row's part of the reply, after all writes, and its block if an act moved the end.
  local function show(row, now)
    if row.meter and row.meter.finish then
      row.meter.finish(row)
    end
    -- Free units are reported only where there is a capacity, hence not for requests in flight.
    local counts = row.meter and not row.meter.give_back
    local in_force = stands(row.block, now, row.shadow)
    local moved = row.moved and stands(row.block, now, true) and pack_block(row.block)
    return pack('<BBdddBB', row.place, counts and 1 or 0, row.charged, row.free,
      in_force and row.block.ends or -1, row.started, row.rule), moved
  end

  -- Unlike a check, a settle denies nothing, so each row pays as soon as it is read.
  local function pay_all(now)
    local rows, results, count, blocks = {}, '', 0, ''
    while place <= #batch do
      local row = read_row(now, rows[#rows])
      pay(row, now)
      rows[#rows + 1] = row
    end
    judge_all(rows, now)
    for index = 1, #rows do
      local result, block = show(rows[index], now)
      results = results .. result
      if block then
        count, blocks = count + 1, blocks .. pack('<BI4', rows[index].place, #block) .. block
      end
    end
    return results, pack('<I2', count) .. blocks
  end

  return function(now)
    local key, expires, flags = next_key(), nil, nil
    expires, flags, place = unpack('<dB', batch, place)
    local reference, status, owner
    if flags == 1 then
      reference, status, place = next_key(), unpack('<I4', batch, place)
      owner = read_bytes(OWNER)
    end
    if now >= expires then
      return pack('<dB', now, 2)
    end
    local mark = read_cell('GET', key)
    if mark and now < unpack('<d', mark) then
      return pack('<dB', now, 1) .. sub(mark, 9)
    end
    local results, blocks = pay_all(now)
    save(key, pack('<d', expires) .. results, second_after(expires))
    if reference then
      tell_reference(reference, owner, status, now)
    end
    return pack('<dB', now, 0) .. blocks .. results
  end
end
