-- Leases: how many are in flight, each freed at settle or at its own end.
-- A cell is the live leases, earliest end first: `<d` end and 8 bytes of id each. It must not keep
-- a lease beyond its end.

local LEASE = 16

local function make_leases()
  local function end_at(leases, from)
    return (unpack('<d', leases, from))
  end

  local function last_end(row)
    return end_at(row.leases, #row.leases - LEASE + 1)
  end

  return {
    -- Reads the terms; nothing is in flight until the cell is loaded.
    read = function(row)
      row.limit, row.hold, place = unpack('<dd', batch, place)
      row.id, row.need, row.free, row.leases = read_bytes(8), 1, row.limit, ''
    end,
    load = function(row, now)
      local cell, first = read_cell('GET', row.key), 1
      -- After its last end a cell is as good as none, but a clock set back finds it again.
      if not cell or end_at(cell, #cell - LEASE + 1) <= now then
        return
      end
      while end_at(cell, first) <= now do
        first = first + LEASE
      end
      row.leases, row.dirty = sub(cell, first), first > 1
      row.free = row.limit - #row.leases / LEASE
    end,
    charge = function(row)
      local ends, kept = after(row.now, row.hold), #row.leases
      while kept > 0 and end_at(row.leases, kept - LEASE + 1) > ends do
        kept = kept - LEASE
      end
      local lease = pack('<d', ends) .. row.id
      row.leases = sub(row.leases, 1, kept) .. lease .. sub(row.leases, kept + 1)
      row.free, row.dirty = row.free - 1, true
      return 1
    end,
    give_back = function(row)
      for from = #row.leases - LEASE + 1, 1, -LEASE do
        if sub(row.leases, from + 8, from + LEASE - 1) == row.id then
          row.leases = sub(row.leases, 1, from - 1) .. sub(row.leases, from + LEASE)
          row.free, row.dirty = row.free + 1, true
        end
      end
    end,
    figures = function(row)
      if row.leases == '' then
        return row.now, row.now
      end
      local from = -row.free * LEASE
      local inside = from >= 0 and from < #row.leases
      return inside and end_at(row.leases, from + 1) or row.now, last_end(row)
    end,
    finish = function(row)
      if not row.dirty then
        return
      elseif row.leases == '' then
        call('DEL', row.key)
      else
        save(row.key, row.leases, second_after(last_end(row)))
      end
    end,
  }
end
