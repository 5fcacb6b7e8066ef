-- What is only looked at, and what operators do. It must not show a proof.

-- tenant, calendar, from, to, without? lease
local function look()
  local tenant, name = read('c16')[1], read_text()
  local f = read('ddBc16')
  local from, to, without = f[1], f[2], f[3] == 1 and f[4]
  local prefix = calendar(tenant, name)
  -- Disjoint, so only one that begins before can reach into the range.
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

-- proof
local function show()
  local proof = read_proof()
  sweep()
  local lease = proven(proof)
  return lease and pack('B', 1) .. shown(proof.key, lease) or pack('B', 0)
end

-- after, most
local function list()
  local f = read('dd')
  sweep()
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

-- number, tenant? tenant, cool-down
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
      -- Whoever waits is told all the same, to look how long.
      call('HSET', NAMES, mark, key)
    end
  end
  store(key, lease)
  return pack('B', 1) .. shown(key, lease)
end

-- tenant, after, up to? number, most
local function clear()
  local f = read('c16dBdd')
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

-- key
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

local function tally()
  local rows, all = {}, call('HGETALL', TALLY)
  for index = 1, #all, 2 do
    rows[#rows + 1] = text(all[index]) .. all[index + 1]
  end
  return pack('<I4', #rows) .. table.concat(rows)
end
