-- The entries of a window's body: how an instant and its units become a few bytes.
-- It must not know limits or spans.

-- Bytes of a body that are read at once; more than the longest entry has.
local CHUNK = 1024

local function make_entries()
  local function varint(number)
    if number < 128 then
      return char(number)
    end
    local low = number % 128
    return char(low + 128) .. varint((number - low) / 128)
  end

  local function read_varint(bytes, place)
    local number, scale = 0, 1
    while true do
      local next = byte(bytes, place)
      place = place + 1
      if next < 128 then
        return number + next * scale, place
      end
      number, scale = number + (next - 128) * scale, scale * 128
    end
  end

  -- The first byte has six bits of the gap, then whether units follow, then whether the gap goes
  -- on. A gap below 2^52 and its units take at most 16 bytes.
  local function write(gap, units)
    local low = gap % 64
    local first = low + (units == 1 and 0 or 64)
    local rest = (gap - low) / 64
    local bytes = rest == 0 and char(first) or char(first + 128) .. varint(rest)
    return units == 1 and bytes or bytes .. varint(units)
  end

  -- The entry at a place of the body: its gap to the next, its units, the place of the next.
  local function read(row, place)
    if place < row.base or (not row.whole and place + 20 > row.base + #row.chunk) then
      local from = row.head_size + place
      row.chunk, row.base = call('GETRANGE', row.key, from, from + CHUNK - 1), place
    end
    local at = place - row.base + 1
    local first, gap, units = byte(row.chunk, at), 0, 1
    at = at + 1
    if first >= 128 then
      gap, at = read_varint(row.chunk, at)
      first = first - 128
    end
    if first >= 64 then
      units, at = read_varint(row.chunk, at)
      first = first - 64
    end
    return gap * 64 + first, units, at - 1 + row.base
  end

  return write, read
end
