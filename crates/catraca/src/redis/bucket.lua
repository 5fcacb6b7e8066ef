-- The token bucket: exact refill without rounding; debt is a negative balance.
--
-- Terms: `dddI4` size, tokens per period, period, tag of the refill. If tiers with other buckets
-- share this one: `B` how many, then `ddd` size, tokens per period and period of each.
-- A cell is `<dddI4I4`, 32 bytes: instant of the last write (microseconds), whole tokens, remainder
-- (the fraction of a token, in 1/period), tag of the refill terms, forget (second).
-- `row.gain` is the number of tokens per `row.period` microseconds.

local function make_bucket()
  -- The lowest balance from which the refill up to the size is exact: (size - tokens) * period must
  -- not exceed 2^53.
  local function lowest(row)
    return row.size - floor(EXACT_MAX / row.period)
  end

  -- When the balance reaches `tokens` if no more are taken.
  local function reaches(row, tokens)
    if row.free >= tokens then
      return row.now
    end
    local missing = (tokens - row.free) * row.period - row.rem
    return after(row.now, ceil_div(missing, row.gain))
  end

  -- Tokens and remainder after `elapsed` microseconds.
  local function refill(row, tokens, rem, elapsed)
    if tokens >= row.size then
      return row.size, 0
    end
    local missing = (row.size - tokens) * row.period - rem
    -- Compared by division first: after a long idle time `elapsed * gain` would exceed 2^53.
    if elapsed >= ceil_div(missing, row.gain) then
      return row.size, 0
    end
    local gained = rem + elapsed * row.gain
    local whole = floor(gained / row.period)
    return tokens + whole, gained - whole * row.period
  end

  -- Reads the terms from the batch. Until `load` finds a cell, the bucket is full.
  local function read(row)
    row.size, row.gain, row.period, row.tag, place = unpack('<dddI4', batch, place)
    row.limit, row.capacity, row.free, row.rem = row.size, row.size, row.size, 0
    local count = 0
    if row.shares then
      count, place = unpack('<B', batch, place)
      row.others = {}
    end
    for number = 1, count do
      local other = {}
      other.size, other.gain, other.period, place = unpack('<ddd', batch, place)
      row.others[number] = other
    end
  end

  -- Loads the cell and refills it up to `now`; returns the instant of its last write, or nil.
  local function load(row, now)
    local cell = read_cell('GET', row.key)
    if not cell then
      return nil
    end
    local at, tokens, rem, tag, forget = unpack('<dddI4I4', cell)
    if is_forgotten(forget, now) then
      return nil
    end
    -- Time never goes backwards for a counter.
    row.now = max(now, at)
    -- A debt made under other terms may be below the floor of these (docs/batch.md, section 4).
    tokens = max(tokens, lowest(row))
    -- The remainder is only valid under the terms that produced it. The time since `at` counts
    -- under the terms of this batch.
    row.free, row.rem = refill(row, tokens, tag == row.tag and rem or 0, row.now - at)
    return at
  end

  -- The second at which the bucket is full for all tiers that share it. The remainder counts under
  -- its own terms only.
  local function full_second(row)
    local full = reaches(row, row.size)
    for index = 1, row.others and #row.others or 0 do
      local other = row.others[index]
      local bucket = { now = row.now, rem = 0, gain = other.gain, period = other.period }
      bucket.free = max(row.free, lowest(other))
      full = max(full, reaches(bucket, other.size))
    end
    return second_after(full)
  end

  local function store(row)
    local forget = full_second(row)
    save(row.key, pack('<dddI4I4', row.now, row.free, row.rem, row.tag, forget), forget)
  end

  -- Takes units (a negative number gives tokens back); the balance stays between `lowest` and the
  -- size. Returns what was really taken.
  local function charge(row, units)
    local left = min(max(row.free - units, lowest(row)), row.size)
    local taken = row.free - left
    row.free = left
    if left >= row.size then
      row.rem = 0
    end
    if taken ~= 0 then
      store(row)
    end
    return taken
  end

  return {
    read = read,
    load = load,
    charge = charge,
    -- When the row's need fits (forever if it exceeds the size), and when the bucket is full.
    figures = function(row)
      local fits_at = row.need <= row.size and reaches(row, row.need) or FOREVER
      return fits_at, reaches(row, row.size)
    end,
    refund = function(row, _, units)
      return -charge(row, -units)
    end,
    -- Operation 8, called once per row. Batch: the terms with those of other tiers, `dd` tokens
    -- that an upstream reported, when it observed them. Key: the bucket. Reply: `dd` tokens before
    -- and after.
    -- The report replaces the balance if it is lower, or if it is higher and the bucket was not
    -- written after the observation: later charges are not in the report.
    reconcile = function(now)
      local row, available, observed = { key = next_key(), now = now, shares = true }, nil, nil
      read(row)
      available, observed, place = unpack('<dd', batch, place)
      -- Without a live cell the bucket is full, and no report can be higher.
      local written, before = load(row, now) or 0, row.free
      local seen = min(max(available, lowest(row)), row.size)
      -- Refilled from the observation to now; an observation in the future counts as one of now.
      local tokens, rem = refill(row, seen, 0, row.now - min(observed, row.now))
      local same = tokens == before and rem == row.rem
      local higher = tokens > before or (tokens == before and rem > row.rem)
      if not same and not (higher and written > observed) then
        row.free, row.rem = tokens, rem
        store(row)
      end
      return pack('<dd', before, row.free)
    end,
  }
end
