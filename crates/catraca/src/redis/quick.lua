-- The quick way through the commonest checks: gates of buckets alone, and of one window alone.
--
-- Redis runs the whole text at every call, so this comes first and makes no function: what it can
-- answer is answered before anything below exists. It must write nothing before it knows that it
-- will answer; whatever is unusual is left to the files below, which begin anew. The rules are
-- theirs, and the same comparison with core judges both. `x - x % 1` is `floor` without a call.
--
-- Its rows are answered by `Bddd`: 4, at, free, full_at; what else such a row says is known to who
-- asked. A cell whose TTL would be the one it has (see `dropped_at`) keeps it: that is cheaper.

local at, now = ARGV[3], tonumber(ARGV[3])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
  -- Who asked has given up: it stood somewhere on its way.
  if ARGV[2] - now < 0 then
    return redis.error_reply(string.format('LATE %.0f', now))
  end
end

local kind = string.byte(ARGV[1], 3)
if (kind == 1 or (kind == 2 and not KEYS[3])) and string.sub(ARGV[1], 1, 2) == '\1\0' then
  local batch, call, keys = ARGV[1], redis.call, KEYS
  local read, write = struct.unpack, struct.pack
  local cells = call('MGET', unpack(keys))

  if kind == 1 then
    -- Rows are `BBd`, the penalty if one is flagged, `dddI4`; keys are the counter and the block.
    local place, row, answer = 3, 1, nil
    while not cells[row + 1] and string.byte(batch, place) == 1 do
      local _, flags, held, size, gain, period, tag, after = read('<BBddddI4', batch, place)
      if flags == 4 then
        size, gain, period, tag, after = read('<dddI4', batch, place + 42)
      elseif flags ~= 0 then
        break
      end
      if held < 1 then
        break
      end
      local instant, free, rem, cell, kept = now, size, 0, cells[row], 0
      if cell then
        local written, tokens, left, cell_tag, forget = read('<dddI4I4', cell)
        kept = forget - forget % 64
        if now < forget * 1000000 or forget == 4294967295 then
          instant = now > written and now or written
          if tokens < 0 then
            local lowest = size - (9007199254740992 / period - 9007199254740992 / period % 1)
            tokens = tokens > lowest and tokens or lowest
          end
          left = cell_tag == tag and left or 0
          if tokens < size then
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
      if free < held then
        break
      end
      free = free - held
      local missing = (size - free) * period - rem
      local wait = missing / gain
      wait = wait - wait % 1
      local full = wait * gain < missing and instant + wait + 1 or instant + wait
      if full > 9007199254740991 then
        full = 9007199254740991
      end
      local forget = full / 1000000
      forget = forget - forget % 1
      if forget * 1000000 < full then
        forget = forget + 1
      end
      forget = forget < 4294967295 and forget or 4294967295
      -- From here on the table of cells holds what is to be written: a cell, and when it ends.
      cells[row] = write('<dddI4I4', instant, free, rem, tag, forget)
      cells[row + 1] = forget - forget % 64 ~= kept and forget
      if answer then
        answer = answer .. write('<Bddd', 4, instant, free, full)
      else
        answer = write('<dBBddd', now, 1, 4, instant, free, full)
      end
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
    -- One row: `BBd`, the penalty if one is flagged, then `B` windows, each `dd`.
    local flags, held, count, limit, span = read('<BdBdd', batch, 4)
    if flags == 4 then
      count, limit, span = read('<Bdd', batch, 45)
    end
    local sound = (flags == 0 or flags == 4) and held >= 1 and count == 1
    local cell, changed, forget, last, newest, first, used, cut, head =
      cells[1] or '', false, 0, 0, 0, 0, 0, 0, 0
    local kept = 0
    if sound and cell ~= '' then
      forget, count, last, newest, first, used, cut, head = read('<I4BdddddI4', cell)
      kept = forget - forget % 64
      if now >= (forget == 4294967295 and 9007199254740991 or forget * 1000000) then
        cell, last, newest, first, used, cut, head = '', 0, 0, 0, 0, 0, 0
      else
        -- Beyond that window.lua is cheaper: it writes the head and the end alone.
        sound = count == 1 and #cell < 8192
      end
    end
    local instant, length, byte = now, #cell - 49, string.byte
    if used > 0 then
      instant = last > now and last or now
      if instant - last >= span then
        used, changed = 0, true
      end
    end
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
      local body, tail = '', ''
      if used == 0 then
        first, cut, newest = instant, 0, 0
      else
        body = string.sub(cell, 50 + head)
        if instant > last then
          local gap, char = instant - last, string.char
          local low = gap % 64
          local rest = (gap - low) / 64
          if newest ~= 1 then
            low = low + 64
          end
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
      -- The oldest unit is the next to leave.
      local fits = first + span < 9007199254740991 and first + span or 9007199254740991
      local full = last + span < 9007199254740991 and last + span or 9007199254740991
      fits, full = fits > instant and fits or instant, full > instant and full or instant
      return write('<dBBdddddddBBI4', now, 0, 3, instant, 0, limit, 0, fits, full, -1, 0, 0, 0)
    end
  end
end

