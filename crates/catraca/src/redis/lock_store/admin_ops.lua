-- Operations 9 to 14 and 16: reading, what operators do, undo, counts.

-- Operation 9, the busy ranges of a calendar: tenant, calendar, from, to, without?, lease to leave
-- out. Reply: I4 count; per range `ddBdd` start, end, state, fence, free at; then `d` where to go
-- on if there are more than LOOKED ranges, else -1. Writes nothing, not even the instant.
local function look()
  local tenant, name = read('c16')[1], read_text()
  local f = read('ddBc16')
  local from, to, without = f[1], f[2], f[3] == 1 and f[4]
  local prefix = calendar(tenant, name)
  -- Ranges are disjoint, so at most one that begins before `from` can reach into the range.
  local first = call('ZREVRANGEBYLEX', CALENDARS, '(' .. prefix .. ordered(from + 1),
    '[' .. prefix, 'LIMIT', 0, 1)[1]
  local begin = first and unpack('>I8', first, #prefix + 1) or from
  local found = call('ZRANGEBYLEX', CALENDARS, '[' .. prefix .. ordered(begin),
    '(' .. prefix .. ordered(max(to, begin)), 'LIMIT', 0, LOOKED + 1)
  local busy, on = {}, -1
  for index, member in ipairs(found) do
    if index > LOOKED then
      on = max(unpack('>I8', member, #prefix + 1), from)
      break
    end
    local key = sub(member, -16)
    local lease = stored(key)
    -- A confirmed slot that `sweep` has not deleted yet, though it is due.
    local past = lease and lease.state == CONFIRMED and lease.due <= now
    if lease and not past and now < lease.expires and key ~= without then
      local start, finish = max(taken_from(lease), from), min(taken_to(lease), to)
      if start < finish then
        busy[#busy + 1] = pack('<ddBdd', start, finish, lease.state, lease.fence, lease.expires)
      end
    end
  end
  return pack('<I4', #busy) .. table.concat(busy) .. pack('<d', on)
end

-- Operation 10: proof. Reply: B 1 and the lease, or 0.
local function show()
  local proof = read_proof()
  sweep()
  local lease = proven(proof)
  return lease and pack('B', 1) .. shown(proof.key, lease) or pack('B', 0)
end

-- Operation 11, the leases in force by fence: after which fence, how many at most. Reply: I4 count,
-- the leases, `d` fence to go on after, or -1.
local function list()
  local f = read('dd')
  sweep()
  -- `%.0f` writes all digits of a fence; `..` would write only 14.
  local found = call('ZRANGEBYSCORE', LIVE, string.format('(%.0f', f[1]), '+inf', 'WITHSCORES',
    'LIMIT', 0, f[2] + 1)
  local leases, on = {}, -1
  for index = 1, #found, 2 do
    if index > 2 * f[2] then
      on = tonumber(found[index - 1])
      break
    end
    local key = found[index]
    local lease = stored(key)
    if lease and now < lease.expires then
      leases[#leases + 1] = shown(key, lease)
    end
  end
  return pack('<I4', #leases) .. table.concat(leases) .. pack('<d', on)
end

-- Operation 12, an operator ends a lease: fence, tenant?, tenant, cool-down. Reply: B 1 and the
-- lease, or 0. During the cool-down (at most until the lease would have expired) its names stay
-- taken: the holder may still work as if it had the lock. The server admits at most 60 s, which is
-- TOMBSTONE: the record lasts as long as the cool-down.
local function force()
  local f = read('dBc16d')
  sweep()
  local key = call('ZRANGEBYSCORE', LIVE, f[1], f[1], 'LIMIT', 0, 1)[1]
  local lease = key and current(key)
  local ours = lease and (f[2] == 0 or lease.tenant == f[3])
  if not ours or not is_live(lease) or now >= lease.expires then
    return pack('B', 0)
  end
  finish(key, lease, FORCED)
  lease.cool = min(after(now, f[4]), lease.expires)
  if lease.cool > now then
    for _, mark in ipairs(lease.marks) do
      -- `finish` has freed the name; take it again. It is published as free all the same, so that
      -- waiting clients ask again and learn when the cool-down ends.
      call('HSET', NAMES, mark, key)
    end
  end
  store(key, lease)
  return pack('B', 1) .. shown(key, lease)
end

-- Operation 13, an operator ends all locks and unconfirmed slots of a tenant, page by page: tenant,
-- after which fence, up to?, up to which fence, how many at most. Reply: I4 ended, `d` fence to go
-- on after (-1: done), `d` the upper bound, so that later pages do not end leases granted
-- meanwhile.
local function clear()
  local f = read('c16dBdd')
  -- The first page comes without an upper bound: it is the last fence so far.
  local tenant, upto, most = f[1], f[3] == 1 and f[4] or fence, f[5]
  sweep()
  local found = {}
  if f[2] < upto then
    found = call('ZRANGEBYLEX', TENANTS, '[' .. tenant .. ordered(f[2] + 1),
      '(' .. tenant .. ordered(upto + 1), 'LIMIT', 0, most)
  end
  local ended, on = 0, -1
  for index, member in ipairs(found) do
    local key = sub(member, -16)
    local lease = current(key)
    if lease and lease.state == HELD then
      finish(key, lease, FORCED)
      ended = ended + 1
    end
    if index == most then
      on = unpack('>I8', member, 17)
    end
  end
  return pack('<I4dd', ended, on, upto)
end

-- Operation 14, takes back a grant that was never delivered, or that too few replicas have: digest
-- of the proof. Reply: empty. The lease is counted as undone, not as a success.
local function undo()
  local key = read('c16')[1]
  sweep()
  local lease = stored(key)
  if lease and is_live(lease) then
    lower_versions(key, lease)
    free(key, lease)
    forget(key, lease)
    count(lease.row, -1, 0, -1, 0, 0, 0, 1)
  end
  return ''
end

-- Operation 16. Reply: I4 count; per row the text of tenant and kind, then its seven counts.
local function tally()
  local rows, all = {}, call('HGETALL', TALLY)
  for index = 1, #all, 2 do
    rows[#rows + 1] = text(all[index]) .. all[index + 1]
  end
  return pack('<I4', #rows) .. table.concat(rows)
end
