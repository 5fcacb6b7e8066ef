-- References: which check a later event speaks of, and what that event gives back.
-- A cell is `<dI4c16I2`: expires, the settled status plus one (0: not settled), owner, rows; then
-- `d` per row, the instant of its charge (-1: none); `I4` and the ticket; `I2` and the text of each
-- event that was applied. It must not be an idempotency key for checks: the first one owns it.

local OWNER = 16

local function load_reference(key, now)
  local cell = call('GET', key)
  return cell and now < unpack('<d', cell) and cell
end

-- Reads what to remember; gives the function that keeps it, unless another check owns it.
local function make_remember()
  local span, length
  span, place = unpack('<d', batch, place)
  local owner = read_bytes(OWNER)
  length, place = unpack('<I4', batch, place)
  local ticket, key = read_bytes(length), next_key()
  return function(rows, now)
    if load_reference(key, now) then
      return false
    end
    local expires, instants = after(now, span), ''
    for _, row in ipairs(rows) do
      instants = instants .. pack('<d', row.verdict == FITS and row.now or -1)
    end
    local head = pack('<dI4', expires, 0) .. owner .. pack('<I2', #rows) .. instants
    save(key, head .. pack('<I4', length) .. ticket, second_after(expires))
    return true
  end
end

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
