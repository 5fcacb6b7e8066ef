-- References: which check a later event speaks of.
-- A cell is `<dI4c16I2`: expires, the settled status plus one (0: not settled), owner, rows; then
-- `d` per row, the instant of its charge (-1: none); `I4` and the ticket; `I2` and the text of each
-- event that was applied. It must not be an idempotency key for checks: the first one owns it.

local OWNER = 16

local function load_reference(key, now)
  local cell = read_cell('GET', key)
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
