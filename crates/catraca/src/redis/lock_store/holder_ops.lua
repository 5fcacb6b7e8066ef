-- Operations 4 to 8, for the holder of a lease: renew, release, cancel, confirm, relocate. All of
-- them need the digest of the proof; the name alone is not enough.

-- Reads a proof: its digest, tenant?, tenant. With a tenant, the lease must belong to it.
local function read_proof()
  local proof = read('c16Bc16')
  return { key = proof[1], bound = proof[2] == 1, tenant = proof[3] }
end

-- The lease of a proof, or nil if there is none or it belongs to another tenant.
local function proven(proof)
  local lease = current(proof.key)
  if lease and (not proof.bound or lease.tenant == proof.tenant) then
    return lease
  end
  return nil
end

-- Operation 4: proof, ttl. Reply: 0 extended, 1 already at its longest, 2 ended (and how), 3 not
-- the holder. A renewal never shortens a lease, and never extends it beyond `hold_until`. A
-- confirmed slot does not expire, so it is at its longest.
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

-- Operations 5 (release a lock, slot is 0) and 6 (cancel a slot, slot is 1): proof. Reply: 0
-- released, 1 released before, 2 expired, 3 not the holder (also if an operator ended the lease).
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

-- Puts an expired slot whose range is still free in force again, with a new fence.
local function revive(key, lease)
  forget(key, lease)
  lease.fence, lease.acquired = next_fence(), now
  lease.state, lease.expires = CONFIRMED, FOREVER
  count(lease.row, 1, 0, 1, 0, 0, 0)
  insert(key, lease)
end

-- Operation 7: proof, again? (an expired slot may be revived), grace. Reply: 0 confirmed, 1 ended
-- (state, and whether the range is still free), 2 not the holder, 9 refused after a change of
-- server.
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
    -- The range is taken again, as by a new hold.
    local refused = careful(grace)
    if refused then
      return refused
    end
    revive(proof.key, lease)
    return pack('B', 0) .. shown(proof.key, lease)
  end
  return pack('BBB', 1, lease.state, free_still and 1 or 0)
end

-- Operation 8, moves a slot: proof, start, end, grace, other calendars?, calendars. Reply: 0 moved,
-- 1 conflict, 2 ended, 3 not the holder, 9 refused after a change of server.
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
  -- The slot must not conflict with itself, so its own range is removed first, and put back if the
  -- move is refused.
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
  -- A moved slot has a new fence, and the indexes are by fence.
  unnumber(key, lease)
  lease.fence = next_fence()
  number(key, lease)
  redate(key, lease)
  keep(lease.due, CALENDARS, LIVE, TENANTS)
  return pack('B', 0) .. shown(key, lease)
end
