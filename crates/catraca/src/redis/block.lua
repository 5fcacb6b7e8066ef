-- Blocks: the timed denial of one (policy, key), and the level of repeated offences.
-- A cell is `<ddI4BB`: end, forget, level, origin, shadow; then the note, opaque bytes.
-- An end never moves earlier here. It must not know why: origin and note are carried, not judged.

local EXCESS = 0
local LEVEL_MAX = 4294967295

local function block_load(key)
  local cell = call('GET', key)
  if not cell then
    return nil
  end
  local ends, forget, level, origin, shadow, note = unpack('<ddI4BB', cell)
  return {
    ends = ends, forget = forget, level = level, origin = origin, shadow = shadow == 1,
    note = sub(cell, note), changed = false,
  }
end

local function block_stands(block, now, shadow)
  return block and now < block.ends and (shadow or not block.shadow)
end

local function penalty_length(penalty, level)
  local span = min(penalty.first, penalty.max)
  for _ = 1, level do
    if penalty.factor == 1 or span >= penalty.max then
      break
    end
    span = min(span * penalty.factor, FOREVER, penalty.max)
  end
  return span
end

local function block_started(act, now)
  local penalty = act.penalty
  return {
    ends = after(now, penalty_length(penalty, 0)), forget = penalty.forget,
    level = penalty.forget > 0 and 1 or 0, origin = act.origin, shadow = act.shadow,
    note = act.note, changed = true,
  }
end

-- The later end wins and brings its origin and note; only an escalating act moves the level.
local function block_merged(block, act, now)
  local penalty = act.penalty
  local ends = after(now, penalty_length(penalty, block.level))
  if penalty.forget > 0 then
    block.level, block.forget = min(block.level + 1, LEVEL_MAX), penalty.forget
  end
  if ends > block.ends then
    block.ends, block.origin, block.shadow, block.note = ends, act.origin, act.shadow, act.note
  end
  block.changed = true
  return block
end

-- The block after an act, or nil when the act changes nothing.
local function block_after(block, act, now)
  if not block or now >= after(block.ends, block.forget) then
    return block_started(act, now)
  end
  if act.shadow and not block.shadow and now < block.ends then
    return nil
  end
  if block.shadow and not act.shadow then
    return block_started(act, now)
  end
  if act.origin == EXCESS and block.origin == EXCESS and now < block.ends then
    return nil
  end
  return block_merged(block, act, now)
end

local function block_save(key, block)
  local shadow = block.shadow and 1 or 0
  local cell = pack('<ddI4BB', block.ends, block.forget, block.level, block.origin, shadow)
  save(key, cell .. block.note, second_after(after(block.ends, block.forget)))
end
