-- Requests in flight: one lease per request, which ends at the settle or after `hold`.
--
-- Terms: `ddc8` limit, hold (the longest that a lease lasts), id of the lease.
-- A cell is a list of leases, earliest end first: `<dc8` each, 16 bytes: end (microseconds), id. It
-- has no `forget`: the last end is the instant at which the cell is forgotten.

-- Bytes of one lease.
local LEASE = 16

local function make_leases()
  -- The end of the lease at offset `from` (1-based).
  local function end_at(leases, from)
    return (unpack('<d', leases, from))
  end

  local function last_end(row)
    return end_at(row.leases, #row.leases - LEASE + 1)
  end

  return {
    -- Reads the terms from the batch. Until `load` finds a cell, nothing is in flight. A lease
    -- takes one place at any price of the request, so the need is 1, and no row is too costly.
    read = function(row)
      row.limit, row.hold, place = unpack('<dd', batch, place)
      row.id, row.need, row.free, row.leases = read_bytes(8), 1, row.limit, ''
    end,
    load = function(row, now)
      local cell, first = read_cell('GET', row.key), 1
      -- A cell whose last lease has ended counts as absent. It is not rewritten, so that it is
      -- still there if the clock is set back.
      if not cell or end_at(cell, #cell - LEASE + 1) <= now then
        return
      end
      -- Stops at the last lease at the latest, which was tested above.
      while end_at(cell, first) <= now do
        first = first + LEASE
      end
      row.leases, row.dirty = sub(cell, first), first > 1
      row.free = row.limit - #row.leases / LEASE
    end,
    -- Inserts a lease behind all that end earlier or at the same time. (Core sorts equal ends by
    -- id; no reply depends on their order.)
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
    -- Removes the lease with the row's id, at the settle.
    give_back = function(row)
      for from = #row.leases - LEASE + 1, 1, -LEASE do
        if sub(row.leases, from + 8, from + LEASE - 1) == row.id then
          row.leases = sub(row.leases, 1, from - 1) .. sub(row.leases, from + LEASE)
          row.free, row.dirty = row.free + 1, true
        end
      end
    end,
    -- When a place is free: when as many leases have ended as exceed the limit, plus one. And when
    -- nothing is in flight.
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
