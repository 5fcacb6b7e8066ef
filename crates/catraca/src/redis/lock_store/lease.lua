-- Leases: the record, its indexes, the counts, and the clean-up of expired leases.
--
-- A record is HEAD; the marks of its names (16 bytes each; a slot has none); the texts of its names
-- or calendars; tenant and kind as one text (the key of its counts); then label and meta, which the
-- script only copies. The proof itself is never stored, only its digest, which is the hash field.

-- B state, B slot?; d each: fence, version, acquired at, expires at, hold until (the latest instant
-- up to which it may be renewed), ttl, due (when `sweep` looks at it), cool until (end of the
-- cool-down after it was forced); of a slot: start, end, before, after (buffers); c16 tenant;
-- B request?, c16 digest of the request id, c16 digest of its content; B number of names
local HEAD = '<BBddddddddddddc16Bc16c16B'

-- Cache of this call: digest -> lease, or false if there is none.
local known = {}

local function parse(record)
  local lease, at = {}, nil
  lease.state, lease.slot, lease.fence, lease.version, lease.acquired, lease.expires,
    lease.hold_until, lease.ttl, lease.due, lease.cool, lease.start, lease.finish, lease.before,
    lease.after, lease.tenant, lease.named, lease.request, lease.print, lease.count, at =
    unpack(HEAD, record)
  lease.marks, lease.texts = {}, {}
  if lease.slot == 0 then
    for index = 1, lease.count do
      lease.marks[index], at = unpack('c16', record, at)
    end
  end
  for index = 1, lease.count do
    lease.texts[index], at = unpack('<I4c0', record, at)
  end
  lease.row, at = unpack('<I4c0', record, at)
  lease.tail = sub(record, at)
  return lease
end

-- The inverse of `parse`.
local function record_of(lease)
  local texts = {}
  for index, one in ipairs(lease.texts) do
    texts[index] = text(one)
  end
  return pack(HEAD, lease.state, lease.slot, lease.fence, lease.version, lease.acquired,
    lease.expires, lease.hold_until, lease.ttl, lease.due, lease.cool, lease.start, lease.finish,
    lease.before, lease.after, lease.tenant, lease.named, lease.request, lease.print, lease.count)
    .. table.concat(lease.marks) .. table.concat(texts) .. text(lease.row) .. lease.tail
end

-- A lease as it is stored, or nil. It may have expired since; see `current`.
local function stored(key)
  local lease = known[key]
  if lease == nil then
    local record = call('HGET', LEASES, key)
    lease = record and parse(record) or false
    known[key] = lease
  end
  return lease or nil
end

local function store(key, lease)
  known[key] = lease
  call('HSET', LEASES, key, record_of(lease))
end

-- A lease in a reply: digest of its proof, length of its record, record.
local function shown(key, lease)
  return key .. text(record_of(lease))
end

local function is_live(lease)
  return lease.state <= CONFIRMED
end

-- The row that counts everything beyond ROWS_MAX: tenant (length plus one) and kind as texts.
local OTHERS = pack('<I4c0I4c0', 9, '(others)', 8, '(others)')

-- Adds to the counts of a tenant and kind: success, conflicts, active, released, expired, forced,
-- undone. Rows are never removed, so that a lease ends in the row in which it was granted.
local function count(row, ...)
  local counts = call('HGET', TALLY, row)
  if not counts and call('HLEN', TALLY) >= ROWS_MAX then
    row = OTHERS
    counts = call('HGET', TALLY, row)
  end
  local rows = counts and { unpack('<ddddddd', counts) } or { 0, 0, 0, 0, 0, 0, 0 }
  for index, more in ipairs({ ... }) do
    rows[index] = max(rows[index] + more, 0)
  end
  call('HSET', TALLY, row,
    pack('<ddddddd', rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]))
end

local function count_end(row, how)
  count(row, 0, 0, -1, how == RELEASED and 1 or 0, how == EXPIRED and 1 or 0,
    how == FORCED and 1 or 0)
end

-- The range that a slot takes, including the buffers before and after it.
local function taken_from(lease)
  return max(lease.start - lease.before, 0)
end

local function taken_to(lease)
  return after(lease.finish, lease.after)
end

-- The prefix of all members of one calendar. With the length, no calendar is a prefix of another.
local function calendar(tenant, name)
  return tenant .. pack('>I2', #name) .. name
end

local function occupy(key, lease)
  for _, name in ipairs(lease.texts) do
    call('ZADD', CALENDARS, 0, calendar(lease.tenant, name) .. ordered(taken_from(lease)) .. key)
  end
end

local function vacate(key, lease)
  for _, name in ipairs(lease.texts) do
    call('ZREM', CALENDARS, calendar(lease.tenant, name) .. ordered(taken_from(lease)) .. key)
  end
end

-- Adds a lease to the indexes by fence; `unnumber` removes it.
local function number(key, lease)
  call('ZADD', LIVE, lease.fence, key)
  call('ZADD', TENANTS, 0, lease.tenant .. ordered(lease.fence) .. key)
end

local function unnumber(key, lease)
  call('ZREM', LIVE, key)
  call('ZREM', TENANTS, lease.tenant .. ordered(lease.fence) .. key)
end

-- Stores a lease, with the instant at which `sweep` has to look at it: its expiry, or for a
-- confirmed slot (which does not expire) some days after its end.
local function redate(key, lease)
  lease.due = lease.expires
  if lease.slot == 1 and lease.state == CONFIRMED then
    lease.due = after(taken_to(lease), PAST_KEPT)
  end
  call('ZADD', DUE, lease.due, key)
  store(key, lease)
  keep(lease.due, LEASES, DUE)
end

-- Adds a new lease to all indexes.
local function insert(key, lease)
  if lease.named == 1 then
    call('HSET', REQUESTS, lease.request, lease.print .. key)
  end
  for _, mark in ipairs(lease.marks) do
    call('HSET', NAMES, mark, key)
  end
  if lease.slot == 1 then
    occupy(key, lease)
  end
  number(key, lease)
  redate(key, lease)
  keep(lease.due, lease.slot == 1 and CALENDARS or NAMES, LIVE, TENANTS, REQUESTS)
end

-- Frees names and ranges of a lease; the record stays.
local function free(key, lease)
  unnumber(key, lease)
  for _, mark in ipairs(lease.marks) do
    unname(mark, key)
  end
  if lease.slot == 1 then
    vacate(key, lease)
  end
end

-- Deletes the record. Its request id is freed only if no later lease uses it. After a cool-down its
-- names still belong to it, unless another lease has taken them.
local function forget(key, lease)
  known[key] = false
  call('HDEL', LEASES, key)
  call('ZREM', DUE, key)
  if lease.named == 1 then
    local owner = call('HGET', REQUESTS, lease.request)
    if owner and sub(owner, 17) == key then
      call('HDEL', REQUESTS, lease.request)
    end
  end
  for _, mark in ipairs(lease.marks) do
    unname(mark, key)
  end
end

-- Ends a lease. The record is kept for a while, so that the holder learns how it ended.
local function finish(key, lease, how)
  -- An expiry is noticed late: the lease ended when it expired. A confirmed slot has no expiry.
  local at = how == EXPIRED and min(lease.expires, now) or now
  free(key, lease)
  count_end(lease.row, how)
  lease.state = how
  lease.due = after(at, lease.slot == 1 and SLOT_TOMBSTONE or TOMBSTONE)
  call('ZADD', DUE, lease.due, key)
  store(key, lease)
end

-- A lease at `now`: one that has expired is ended first.
local function current(key)
  local lease = stored(key)
  if lease and lease.state == HELD and lease.expires <= now then
    finish(key, lease, EXPIRED)
  end
  return lease
end

-- Cleans up at most SWEEP versions and SWEEP leases that are due; returns whether more may be left.
-- Every operation that writes calls it, so garbage cannot pile up while a namespace is used. A
-- lease that expired long ago comes twice in one call: it ends, then its record is due at once.
local function sweep()
  for _, mark in ipairs(call('ZRANGEBYSCORE', RAISED, '-inf', now, 'LIMIT', 0, SWEEP)) do
    call('HDEL', VERSIONS, mark)
    call('ZREM', RAISED, mark)
  end
  local left = SWEEP
  while left > 0 do
    local due = call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, left)
    if #due == 0 then
      return false
    end
    for _, key in ipairs(due) do
      local lease = stored(key)
      if not lease then
        call('ZREM', DUE, key)
      -- A held lease expires now and is deleted later; an ended one is deleted. A confirmed slot
      -- is due long after its end: it is counted as expired and deleted at once.
      elseif lease.state == HELD then
        finish(key, lease, EXPIRED)
      else
        if lease.state == CONFIRMED then
          finish(key, lease, EXPIRED)
        end
        forget(key, lease)
      end
    end
    left = left - #due
  end
  return true
end
