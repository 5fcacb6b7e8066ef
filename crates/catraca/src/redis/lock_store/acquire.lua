-- Operations 1 (acquire: locks) and 2 (hold: slots): take all names or ranges, or none. A request
-- with a request id may be repeated and gets the same lease.
--
-- The ranges of a calendar are always disjoint, those of expired holds included. So only the last
-- range that begins before the end of a new one can overlap it, and one lookup is enough. For this
-- to stay true, the range of an expired hold is removed before a new one is added.

local NOBODY = string.rep('\0', 16)
-- First byte of the reply: granted; granted before to the same request; taken by another lease;
-- version not higher than the last; request id used with other content; lease of this request has
-- ended; too many leases; version missing; too many versions; nothing granted after a change of
-- server.
local GRANTED, AGAIN, MET, STALE, OTHER_REQUEST, REQUEST_OVER, FULL, NO_VERSION, VERSIONS_FULL,
  CAREFUL = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9

-- Reads the fields that acquire and hold share: digest of the proof, slot?, ttl, longest hold,
-- grace after a failover, version?, version, tenant, request?, digest of the request id, digest of
-- its content; tenant and kind as a text; label and meta as a text. The names follow. `row` is the
-- field of the counts, `named` is 1 if there is a request id, `print` is the digest of its content.
local function read_wanted()
  local f = read('c16BdddBdc16Bc16c16')
  local wanted = {
    key = f[1], slot = f[2], ttl = f[3], hold = f[4], grace = f[5], has_version = f[6] == 1,
    version = f[7], tenant = f[8], named = f[9], request = f[10], print = f[11],
  }
  wanted.row, wanted.tail = read_text(), read_text()
  return wanted
end

local function read_texts(wanted)
  local texts = {}
  for index = 1, read('B')[1] do
    texts[index] = read_text()
  end
  wanted.texts, wanted.count = texts, #texts
end

-- The reply to a request id that was used before, or nil.
local function repeated(wanted)
  local before = wanted.named == 1 and call('HGET', REQUESTS, wanted.request)
  if not before then
    return nil
  end
  if sub(before, 1, 16) ~= wanted.print then
    return pack('B', OTHER_REQUEST)
  end
  local key = sub(before, 17)
  local lease = stored(key)
  if not lease then
    return nil
  end
  if is_live(lease) and now < lease.expires then
    return pack('B', AGAIN) .. shown(key, lease)
  end
  return pack('B', REQUEST_OVER)
end

-- The refusal while leases that another server granted, and that are missing here, may still be in
-- force: for `grace` after the change of server was noticed. Reply: how long that lasts.
local function careful(grace)
  local left = changed + grace - now
  if left > 0 then
    return pack('<Bd', CAREFUL, left)
  end
  return nil
end

-- Creates the lease and the reply. Without a version of its own, a lease has its fence as version.
-- `hold_until` bounds renewals, and is never before the first expiry.
local function grant(wanted)
  local own = next_fence()
  local lease = {
    state = HELD, slot = wanted.slot, fence = own,
    version = wanted.has_version and wanted.version or own,
    acquired = now, expires = after(now, wanted.ttl),
    hold_until = after(now, max(wanted.hold, wanted.ttl)), ttl = wanted.ttl, due = 0, cool = 0,
    start = wanted.start or 0, finish = wanted.finish or 0, before = wanted.before or 0,
    after = wanted.after or 0, tenant = wanted.tenant, named = wanted.named,
    request = wanted.request, print = wanted.print, count = wanted.count,
    marks = wanted.marks, texts = wanted.texts, row = wanted.row, tail = wanted.tail,
  }
  count(wanted.row, 1, 0, 1, 0, 0, 0)
  insert(wanted.key, lease)
  return pack('B', GRANTED) .. shown(wanted.key, lease)
end

-- The reply about a conflict: name, when it becomes free, the lease that has it.
local function met(name, key)
  local lease = stored(key)
  local free_at = lease.state == FORCED and lease.cool or lease.expires
  return text(name) .. pack('<d', free_at) .. shown(key, lease)
end

-- The lease that has a name, or nil. An expired one is ended; one that an operator forced keeps the
-- name until its cool-down is over.
local function holder(mark)
  local key = call('HGET', NAMES, mark)
  local lease = key and current(key)
  if not lease then
    return nil
  end
  if is_live(lease) or (lease.state == FORCED and now < lease.cool) then
    return key
  end
  if lease.state == FORCED then
    unname(mark, key)
  end
  return nil
end

-- Stores the highest version of a name; the rest is the lease that raised it and what to restore.
local function set_version(mark, version, until_instant, ...)
  call('HSET', VERSIONS, mark, pack('<ddc16Bdd', version, until_instant, ...))
  call('ZADD', RAISED, until_instant, mark)
end

-- Restores the versions that a grant raised, when the grant is undone. A name whose version a later
-- grant has raised again stays as it is.
local function lower_versions(key, lease)
  for _, mark in ipairs(lease.marks) do
    local last = call('HGET', VERSIONS, mark)
    if last then
      local _, _, by, is_before, version, until_instant = unpack('<ddc16Bdd', last)
      if by == key and is_before == 1 then
        -- No lease may lower it further: only the last grant can be undone.
        set_version(mark, version, until_instant, NOBODY, 0, 0, 0)
      elseif by == key then
        call('HDEL', VERSIONS, mark)
        call('ZREM', RAISED, mark)
      end
    end
  end
end

-- Raises the versions of all names of a request, or returns the refusal. All names are compared
-- before any is written.
local function raise(wanted)
  if not wanted.has_version then
    return pack('B', NO_VERSION)
  end
  for index, mark in ipairs(wanted.marks) do
    local before = call('HGET', VERSIONS, mark)
    if before then
      local highest, until_instant = unpack('<dd', before)
      if now < until_instant and wanted.version <= highest then
        return pack('B', STALE) .. text(wanted.texts[index]) .. pack('<d', highest)
      end
    end
  end
  if call('HLEN', VERSIONS) + wanted.count > VERSIONS_MAX then
    return pack('B', VERSIONS_FULL)
  end
  local until_instant = after(now, VERSION_KEPT)
  for _, mark in ipairs(wanted.marks) do
    local before = call('HGET', VERSIONS, mark)
    local highest, kept_until = 0, 0
    if before then
      highest, kept_until = unpack('<dd', before)
    end
    set_version(mark, wanted.version, until_instant, wanted.key, before and 1 or 0, highest,
      kept_until)
  end
  keep(until_instant, VERSIONS, RAISED)
  return nil
end

-- Operation 1: count a conflict?, versions must rise?, the shared fields, names as texts, their
-- marks. A conflict is counted only if it ends the attempt; a client that waits tries again.
local function acquire()
  local flags = read('BB')
  local wanted = read_wanted()
  read_texts(wanted)
  wanted.marks = {}
  for index = 1, wanted.count do
    wanted.marks[index] = read('c16')[1]
  end
  sweep()
  -- A repeated request takes nothing new, so it is answered even after a change of server.
  local before = repeated(wanted) or careful(wanted.grace)
  if before then
    return before
  end
  for index, mark in ipairs(wanted.marks) do
    local key = holder(mark)
    if key then
      if flags[1] == 1 then
        count(wanted.row, 0, 1, 0, 0, 0, 0)
      end
      return pack('B', MET) .. met(wanted.texts[index], key)
    end
  end
  if call('HLEN', LEASES) >= LEASES_MAX then
    return pack('B', FULL)
  end
  -- Last, because it writes: after it nothing refuses the grant.
  local stale = flags[2] == 1 and raise(wanted)
  if stale then
    if flags[1] == 1 and string.byte(stale) == STALE then
      count(wanted.row, 0, 1, 0, 0, 0, 0)
    end
    return stale
  end
  return grant(wanted)
end

-- The live lease that has part of a range in a calendar, or nil. Finds the last range that begins
-- before `to`: members that begin at `to` are longer than the bound and sort behind it.
local function overlapping(tenant, name, from, to)
  local prefix = calendar(tenant, name)
  while true do
    local found = call('ZREVRANGEBYLEX', CALENDARS, '(' .. prefix .. ordered(to), '[' .. prefix,
      'LIMIT', 0, 1)[1]
    local key = found and sub(found, -16)
    local lease = key and stored(key)
    if not lease or taken_to(lease) <= from then
      return nil
    end
    if is_live(current(key)) then
      return key
    end
    -- It had expired and is removed; the range before it may overlap, too.
    call('ZREM', CALENDARS, found)
  end
end

-- The reply about the first conflict in some calendars, or nil.
local function overlap(tenant, names, from, to)
  for _, name in ipairs(names) do
    local key = overlapping(tenant, name, from, to)
    if key then
      return met(name, key)
    end
  end
  return nil
end

-- Operation 2: the shared fields, start, end, buffer before, buffer after, calendars as texts.
local function hold()
  local wanted = read_wanted()
  local range = read('dddd')
  wanted.start, wanted.finish, wanted.before, wanted.after = range[1], range[2], range[3], range[4]
  read_texts(wanted)
  wanted.marks = {}
  sweep()
  local before = repeated(wanted) or careful(wanted.grace)
  if before then
    return before
  end
  local conflict = overlap(wanted.tenant, wanted.texts, taken_from(wanted), taken_to(wanted))
  if conflict then
    count(wanted.row, 0, 1, 0, 0, 0, 0)
    return pack('B', MET) .. conflict
  end
  if call('HLEN', LEASES) >= LEASES_MAX then
    return pack('B', FULL)
  end
  return grant(wanted)
end
