-- What comes after the check of a reference: its settle is told, it is recalled, events give back.
-- It must not lift a block, nor give twice for one event.

-- Tells the reference of a settle, unless it was forgotten and taken by another check.
local function tell_reference(key, owner, status, now)
  local cell = load_reference(key, now)
  if cell and sub(cell, 13, 12 + OWNER) == owner then
    call('SETRANGE', key, 8, pack('<I4', status + 1))
  end
end

-- Key: the reference. Reply: nothing if there is none, else its cell without expiry and owner.
local function recall(now)
  local cell = load_reference(next_key(), now)
  return cell and sub(cell, 9, 12) .. sub(cell, 13 + OWNER) or ''
end

-- Batch: `I2` and the event, then per row `dddI4d`: terms, amount. Keys: the reference, a bucket
-- per row. Reply: B  0 applied, 1 duplicate, 2 unknown; if applied `d` per row, what it took.
local function credit(now)
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
  call('APPEND', key, pack('<I2', length) .. event)
  local meter, reply = meter_of(1), char(0)
  while place <= #batch do
    local row, amount = { key = next_key(), now = now }, nil
    meter.read(row)
    amount, place = unpack('<d', batch, place)
    -- A bucket that was forgotten is full: there is nothing to give back to.
    reply = reply .. pack('<d', meter.load(row, now) and -meter.charge(row, -amount) or 0)
  end
  return reply
end
