-- Fast path for the most common checks: batches whose rows are all token buckets, and batches of
-- one row with a single sliding window.
--
-- Redis executes the whole script at every call, and creating a Lua function costs about as much
-- as calling one. So this file comes first and defines no function: a check that it can answer
-- returns before anything below is created. Everything else (a block in the way, a peek, a shadow
-- row, a check that remembers a reference, a bucket without enough tokens, ...) falls through to
-- the files below, which start again from the beginning. Hence this file must not write before it
-- is certain that it will return the answer.
--
-- The rules are the same as in bucket.lua and sliding_window.lua, written out inline; the test that
-- compares the script with core covers both copies. `x - x % 1` is `floor(x)` without a call.
--
-- KEYS and ARGV are described in prelude.lua. The reply is `<dB`: now, flags (1: passed), then per
-- row `Bddd`: 4 (the short form of "fits"), the row's instant, free units, full_at. The client
-- knows the other fields of a row that fits, so they are not sent.
--
-- Constants are written as literals, because they are defined only in prelude.lua:
--   9007199254740991  2^53 - 1, the instant that means forever (microseconds)
--   9007199254740992  2^53, the largest integer that is exact in a double
--   4294967295        2^32 - 1, the second that means "never forgotten"
--   64 and 124        TTLs move in steps of 64 s and end 60 to 124 s after `forget`, see
--                     `dropped_at` in prelude.lua
-- A cell whose TTL would not change is written with KEEPTTL, which is cheaper than setting a TTL.

-- `now` is used by all files below, too. `at` is only set when a test gives the instant.
local at, now = ARGV[3], tonumber(ARGV[3])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
  -- The call arrived after the caller's deadline (it was queued somewhere): the caller has given up
  -- and may have acted on that, so nothing may be applied any more. (`-` converts the text of
  -- ARGV[2] to a number; Lua's `<` would not.)
  if ARGV[2] - now < 0 then
    return redis.error_reply(string.format('LATE %.0f', now))
  end
end

-- A batch begins with operation (1: check) and flags (0: no peek, veto or reference); byte 3 is the
-- algorithm of the first row. A window must be alone: KEYS[3] would belong to a second row.
local kind = string.byte(ARGV[1], 3)
if (kind == 1 or (kind == 2 and not KEYS[3])) and string.sub(ARGV[1], 1, 2) == '\1\0' then
  local batch, call, keys = ARGV[1], redis.call, KEYS
  local read, write = struct.unpack, struct.pack
  -- All counters and blocks in one command. MGET answers nil for a key of another type. `unpack` is
  -- still Lua's own; prelude.lua gives the name to `struct.unpack`.
  local cells = call('MGET', unpack(keys))

  if kind == 1 then
    -- A row is `BBd` (algorithm, flags, held), 32 bytes of penalty if flag 4 is set, and the terms
    -- `dddI4` (size, tokens per period, period in microseconds, tag of the refill).
    -- Its keys are the counter and the block, so cells[row + 1] is the block: none may exist.
    -- `place` is the offset of the row in the batch, `row` the index of its counter in KEYS.
    local place, row, answer = 3, 1, nil
    while not cells[row + 1] and string.byte(batch, place) == 1 do
      local _, flags, held, size, gain, period, tag, after = read('<BBddddI4', batch, place)
      -- Flags 0: no penalty. Flags 4: the terms come after the penalty (what was read above as
      -- terms is part of the penalty). Others: not handled here. `after` is the offset behind the
      -- row.
      if flags == 4 then
        size, gain, period, tag, after = read('<dddI4', batch, place + 42)
      elseif flags ~= 0 then
        break
      end
      -- A row of 0 units is not charged, but needs one free unit (`need` in check.lua).
      if held < 1 then
        break
      end
      -- Without a live cell the bucket is full. `kept` is the 64 s step of the TTL that the key has
      -- now; it stays even if the cell itself is forgotten.
      local instant, free, rem, cell, kept = now, size, 0, cells[row], 0
      if cell then
        local written, tokens, left, cell_tag, forget = read('<dddI4I4', cell)
        kept = forget - forget % 64
        if now < forget * 1000000 or forget == 4294967295 then
          -- Time never goes backwards for a counter, even if the server's clock does.
          instant = now > written and now or written
          if tokens < 0 then
            -- Debt below this floor could not be refilled in exact arithmetic (`lowest` in
            -- bucket.lua).
            local lowest = size - (9007199254740992 / period - 9007199254740992 / period % 1)
            tokens = tokens > lowest and tokens or lowest
          end
          -- The remainder is a fraction of a token under the terms of the tag; other terms drop it.
          left = cell_tag == tag and left or 0
          -- Otherwise the bucket is full, as `free` and `rem` say already.
          if tokens < size then
            -- `missing` and `gained` are in units of 1/period tokens. The bucket is full once
            -- `elapsed` reaches ceil(missing / gain); only below that is `elapsed * gain` exact.
            local missing, elapsed = (size - tokens) * period - left, instant - written
            local wait = missing / gain
            wait = wait - wait % 1
            if elapsed < wait or (elapsed == wait and wait * gain < missing) then
              local gained = left + elapsed * gain
              local whole = gained / period
              whole = whole - whole % 1
              free, rem = tokens + whole, gained - whole * period
            end
          end
        end
      end
      -- Over limit: the full path decides about penalties and denied units, and computes when the
      -- row fits.
      if free < held then
        break
      end
      free = free - held
      local missing = (size - free) * period - rem
      local wait = missing / gain
      wait = wait - wait % 1
      -- Rounded up: the first microsecond at which the bucket is full again.
      local full = wait * gain < missing and instant + wait + 1 or instant + wait
      if full > 9007199254740991 then
        full = 9007199254740991
      end
      -- The first whole second at or after `full`.
      local forget = full / 1000000
      forget = forget - forget % 1
      if forget * 1000000 < full then
        forget = forget + 1
      end
      forget = forget < 4294967295 and forget or 4294967295
      -- Nothing is written until the last row is known to fit. Until then this row's places in
      -- `cells` hold the new value of the counter, and its `forget` if the TTL has to change.
      cells[row] = write('<dddI4I4', instant, free, rem, tag, forget)
      cells[row + 1] = forget - forget % 64 ~= kept and forget
      if answer then
        answer = answer .. write('<Bddd', 4, instant, free, full)
      else
        answer = write('<dBBddd', now, 1, 4, instant, free, full)
      end
      -- That was the last row, and all of them fit: write every counter and answer.
      if after > #batch then
        for index = 1, row, 2 do
          local ends = not at and cells[index + 1]
          if not ends then
            call('SET', keys[index], cells[index], 'KEEPTTL')
          elseif ends == 4294967295 then
            call('SET', keys[index], cells[index])
          else
            call('SET', keys[index], cells[index], 'EXAT', ends - ends % 64 + 124 .. '')
          end
        end
        return answer
      end
      place, row = after, row + 2
    end

  elseif not cells[2] then
    -- One row without a block: `BBd` (algorithm, flags, held), 32 bytes of penalty if flag 4 is
    -- set, `B` number of windows (must be 1), `dd` limit and span in microseconds.
    -- The layout of the cell is in sliding_window.lua: 49 bytes of head for one window, then the
    -- entries. `last` and `newest` are instant and units of the newest entry; `first`, `used`,
    -- `cut` and `head` belong to the window. `sound` becomes false when the full path takes over.
    local flags, held, count, limit, span = read('<BdBdd', batch, 4)
    if flags == 4 then
      count, limit, span = read('<Bdd', batch, 45)
    end
    local sound = (flags == 0 or flags == 4) and held >= 1 and count == 1
    local cell, changed, forget, last, newest, first, used, cut, head =
      cells[1] or '', false, 0, 0, 0, 0, 0, 0, 0
    -- As for buckets: the 64 s step of the TTL that the key has now.
    local kept = 0
    if sound and cell ~= '' then
      forget, count, last, newest, first, used, cut, head = read('<I4BdddddI4', cell)
      kept = forget - forget % 64
      if now >= (forget == 4294967295 and 9007199254740991 or forget * 1000000) then
        cell, last, newest, first, used, cut, head = '', 0, 0, 0, 0, 0, 0
      else
        -- This path reads and writes the whole cell. From 8 kB on the full path is cheaper: it
        -- writes only the head and the end.
        sound = count == 1 and #cell < 8192
      end
    end
    -- `length`, that of the body, is only used if `used` > 0, hence if there is a cell.
    local instant, length, byte = now, #cell - 49, string.byte
    if used > 0 then
      instant = last > now and last or now
      -- Even the newest entry has left the window: no entry has to be read.
      if instant - last >= span then
        used, changed = 0, true
      end
    end
    -- Drops the entries that have left the window, oldest first. Offset 50 is the first byte of the
    -- body; an entry is decoded as in window_entries.lua. At the end of the body the newest entry,
    -- which is in the head, is the oldest one left. Figures that do not add up end the fast path;
    -- the full path reports the damaged cell. `or 0` ends the loops where the body breaks off.
    while sound and used > 0 and instant - first >= span do
      local units, gap, next = newest - cut, 0, head
      if head < length then
        local part = byte(cell, 50 + head)
        local goes_on, counts, scale, more = part >= 128, part % 128 >= 64, 64, 128
        gap, units, next = part % 64, 1, head + 1
        while goes_on and more >= 128 do
          more = byte(cell, 50 + next) or 0
          gap, scale, next = gap + more % 128 * scale, scale * 128, next + 1
        end
        if counts then
          units, scale, more = 0, 1, 128
          while more >= 128 do
            more = byte(cell, 50 + next) or 0
            units, scale, next = units + more % 128 * scale, scale * 128, next + 1
          end
        end
        units = units - cut
      else
        sound = units == used
      end
      sound = sound and units > 0 and units <= used
      used, first, head, cut, changed = used - units, first + gap, next, 0, true
    end
    if sound and limit - used >= held then
      -- The row fits. A new instant moves the newest entry from the head to the end of the body
      -- (`tail`), as gap to `instant` and its units; the same instant adds to the newest entry.
      local body, tail = '', ''
      if used == 0 then
        first, cut, newest = instant, 0, 0
      else
        body = string.sub(cell, 50 + head)
        if instant > last then
          local gap, char = instant - last, string.char
          local low = gap % 64
          local rest = (gap - low) / 64
          -- Bit 6: the number of units follows the gap.
          if newest ~= 1 then
            low = low + 64
          end
          -- One to three bytes (gaps below 64 us, 8.2 ms and 1.05 s) are written without a loop.
          if rest == 0 then
            tail = char(low)
          elseif rest < 128 then
            tail = char(low + 128, rest)
          elseif rest < 16384 then
            tail = char(low + 128, rest % 128 + 128, (rest - rest % 128) / 128)
          else
            tail = char(low + 128)
            while rest >= 128 do
              tail, rest = tail .. char(rest % 128 + 128), (rest - rest % 128) / 128
            end
            tail = tail .. char(rest)
          end
          if newest ~= 1 then
            rest = newest
            while rest >= 128 do
              tail, rest = tail .. char(rest % 128 + 128), (rest - rest % 128) / 128
            end
            tail = tail .. char(rest)
          end
          newest = 0
        -- The newest entry is the oldest, too: units that were cut from it are dropped for good.
        elseif head >= length then
          newest, cut = newest - cut, 0
        end
      end
      used, newest = used + held, newest + held
      local full = instant + span < 9007199254740991 and instant + span or 9007199254740991
      forget = full / 1000000
      forget = forget - forget % 1
      if forget * 1000000 < full then
        forget = forget + 1
      end
      forget = forget < 4294967295 and forget or 4294967295
      -- `body` begins with the oldest live entry, so its offset becomes 0.
      cell = write('<I4BdddddI4', forget, 1, instant, newest, first, used, cut, 0) .. body .. tail
      if at or forget - forget % 64 == kept then
        call('SET', keys[1], cell, 'KEEPTTL')
      elseif forget == 4294967295 then
        call('SET', keys[1], cell)
      else
        call('SET', keys[1], cell, 'EXAT', forget - forget % 64 + 124 .. '')
      end
      return write('<dBBddd', now, 1, 4, instant, limit - used, full)
    elseif sound and not changed and flags == 0 and held == 1 and used == limit then
      -- The window is exactly full, one unit is wanted and nothing has to be written (no entries
      -- were dropped; flags 0: no penalty starts, and denied units are not counted): a denial
      -- (verdict 3, in the long form of check.lua). A unit fits again when the oldest one leaves.
      local fits = first + span < 9007199254740991 and first + span or 9007199254740991
      local full = last + span < 9007199254740991 and last + span or 9007199254740991
      fits, full = fits > instant and fits or instant, full > instant and full or instant
      return write('<dBBddddddBI4', now, 0, 3, instant, 0, limit, 0, fits, full, 0, 0)
    end
  end
end

