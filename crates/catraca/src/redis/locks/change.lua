-- What the holder of a lease may do with it. It must not do anything for a name alone.

-- key, tenant? tenant
local function read_proof()
  local proof = read('c16Bc16')
  return { key = proof[1], bound = proof[2] == 1, tenant = proof[3] }
end

-- The lease whose proof was shown, if the caller may touch it.
local function proven(proof)
  local lease = current(proof.key)
  if lease and (not proof.bound or lease.tenant == proof.tenant) then
    return lease
  end
  return nil
end

-- proof, ttl
local function renew()
  local proof, ttl = read_proof(), read('d')[1]
  sweep()
  local lease = proven(proof)
  if not lease then
    return pack('B', 3)
  end
  if not is_live(lease) then
    return pack('BB', 2, lease.state)
  end
  local wanted = min(after(now, ttl), lease.hold_until)
  local at_most = wanted <= lease.expires and lease.expires >= lease.hold_until
  if lease.state == CONFIRMED or at_most then
    return pack('B', 1) .. shown(proof.key, lease)
  end
  lease.expires = max(lease.expires, wanted)
  lease.ttl = max(ttl, lease.expires - now)
  redate(proof.key, lease)
  return pack('B', 0) .. shown(proof.key, lease)
end

-- proof
local function give_back(slot)
  local proof = read_proof()
  sweep()
  local lease = proven(proof)
  if not lease or lease.slot ~= slot or lease.state == FORCED then
    return pack('B', 3)
  end
  if is_live(lease) then
    finish(proof.key, lease, RELEASED)
    return pack('B', 0)
  end
  return pack('B', lease.state == RELEASED and 1 or 2)
end

-- An expired hold whose time nobody took, in force again with a new number.
local function revive(key, lease)
  forget(key, lease)
  lease.fence, lease.acquired = next_fence(), now
  lease.state, lease.expires = CONFIRMED, FOREVER
  count(lease.row, 1, 0, 1, 0, 0, 0)
  insert(key, lease)
end

-- proof, again?, grace
local function confirm()
  local proof, flags = read_proof(), read('Bd')
  local again, grace = flags[1] == 1, flags[2]
  sweep()
  local lease = proven(proof)
  if not lease or lease.slot == 0 then
    return pack('B', 2)
  end
  if is_live(lease) then
    lease.state, lease.expires = CONFIRMED, FOREVER
    redate(proof.key, lease)
    return pack('B', 0) .. shown(proof.key, lease)
  end
  local free_still = not overlap(lease.tenant, lease.texts, taken_from(lease), taken_to(lease))
  if lease.state == EXPIRED and again and free_still then
    local refused = careful(grace)
    if refused then
      return refused
    end
    revive(proof.key, lease)
    return pack('B', 0) .. shown(proof.key, lease)
  end
  return pack('BBB', 1, lease.state, free_still and 1 or 0)
end

-- proof, start, end, grace, other calendars? calendars
local function relocate()
  local proof = read_proof()
  local key, range, there = proof.key, read('dddB'), {}
  read_texts(there)
  sweep()
  local lease = proven(proof)
  if not lease or lease.slot == 0 then
    return pack('B', 3)
  end
  if not is_live(lease) then
    return pack('BB', 2, lease.state)
  end
  local texts = range[4] == 1 and there.texts or lease.texts
  local to = { start = range[1], finish = range[2], before = lease.before, after = lease.after }
  vacate(key, lease)
  local conflict = overlap(lease.tenant, texts, taken_from(to), taken_to(to))
  if conflict then
    occupy(key, lease)
    return pack('B', 1) .. conflict
  end
  local refused = careful(range[3])
  if refused then
    occupy(key, lease)
    return refused
  end
  lease.texts, lease.count, lease.start, lease.finish = texts, #texts, range[1], range[2]
  occupy(key, lease)
  unnumber(key, lease)
  lease.fence = next_fence()
  number(key, lease)
  redate(key, lease)
  keep(lease.due, CALENDARS, LIVE, TENANTS)
  return pack('B', 0) .. shown(key, lease)
end
