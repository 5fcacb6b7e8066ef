-- Operations on references: the settle stores its status, operation 3 (recall) reads a reference,
-- operation 4 (credit) gives tokens back for an event. Each event is credited once. Blocks are not
-- touched.

-- Stores the status of a settle in the reference, unless the reference expired meanwhile and
-- belongs to another check now. Bytes 13 to 28 are the owner; the status is at offset 8.
local function tell_reference(key, owner, status, now)
  local cell = load_reference(key, now)
  if cell and sub(cell, 13, 12 + OWNER) == owner then
    call('SETRANGE', key, 8, pack('<I4', status + 1))
  end
end

-- Operation 3. Key: the reference. Reply: empty if there is none, else its cell without `expires`
-- and owner.
local function recall(now)
  local cell = load_reference(next_key(), now)
  return cell and sub(cell, 9, 12) .. sub(cell, 13 + OWNER) or ''
end

-- Operation 4. Batch: `I2` and the event, then per row the terms of the bucket with those of other
-- tiers, and `d` tokens to give back. Keys: the reference, one bucket per row. Reply: B  0 applied,
-- 1 duplicate (the event was credited before), 2 unknown reference; if applied `d` per row, the
-- tokens that the bucket took.
local function credit(now)
  -- Whether the reference lists the event: it skips head, instants and ticket, then reads events.
  local function was_credited(cell, event)
    local rows, place = unpack('<I2', cell, 13 + OWNER)
    local length
    length, place = unpack('<I4', cell, place + 8 * rows)
    place = place + length
    while place <= #cell do
      length, place = unpack('<I2', cell, place)
      if sub(cell, place, place + length - 1) == event then
        return true
      end
      place = place + length
    end
    return false
  end

  local key, length = next_key(), nil
  length, place = unpack('<I2', batch, place)
  local event, cell = read_bytes(length), load_reference(key, now)
  if not cell then
    return char(2)
  elseif was_credited(cell, event) then
    return char(1)
  end
  -- APPEND keeps the TTL of the reference.
  call('APPEND', key, pack('<I2', length) .. event)
  local meter, reply = meter_of(1), char(0)
  while place <= #batch do
    local row, amount = { key = next_key(), now = now, shares = true }, nil
    meter.read(row)
    amount, place = unpack('<d', batch, place)
    -- A bucket without a live cell is full and takes nothing. A charge of a negative number gives
    -- tokens back and returns a negative number.
    reply = reply .. pack('<d', meter.load(row, now) and -meter.charge(row, -amount) or 0)
  end
  return reply
end
