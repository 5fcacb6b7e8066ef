-- Encoding of the entries of a sliding window: the gap to the next entry and the units, in 1 to 16
-- bytes.
--
-- First byte: bits 0-5 are the low bits of the gap (microseconds), bit 6 says that the number of
-- units follows (else it is 1), bit 7 says that the rest of the gap follows. Then the rest of the
-- gap and the units, each as a varint: 7 bits per byte, low bits first, bit 7 set if more follow.

-- How many bytes of a body are read at once (measurements: docs/adr/0003). Must be larger than the
-- longest entry.
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

  -- The bytes of one entry: at most 16 for a gap below 2^52.
  local function write(gap, units)
    local low = gap % 64
    local first = low + (units == 1 and 0 or 64)
    local rest = (gap - low) / 64
    local bytes = rest == 0 and char(first) or char(first + 128) .. varint(rest)
    return units == 1 and bytes or bytes .. varint(units)
  end

  -- Decodes the entry at offset `place` of the body: gap to the next entry, units, offset of the
  -- next entry. `row.chunk` is the part of the body that was read last, beginning at `row.base`;
  -- another part is read if the entry (at most 16 bytes; 20 are demanded) may not be inside it.
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
