-- References: a caller's own name for a check, by which later events (credits) find it.
--
-- A cell is `<dI4c16I2`, 30 bytes: expires (microseconds), status of the settle plus one (0: not
-- settled), owner (16 bytes that identify the check), number of rows; then `d` per row: the instant
-- of its charge (-1: none); `I4` and the ticket; then `I2` and the text of every event that was
-- credited. A reference belongs to the first check that used it: it does not make checks
-- idempotent.

-- Bytes of the owner.
local OWNER = 16

-- The cell of a reference, or false if there is none or it has expired.
local function load_reference(key, now)
  local cell = read_cell('GET', key)
  return cell and now < unpack('<d', cell) and cell
end

-- Reads the reference's part of the batch (see check.lua). Returns a function that writes the
-- reference and returns true, or returns false if another check owns it.
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
