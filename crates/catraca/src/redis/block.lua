-- Blocks: the timed denial of one (policy, key), and the level of repeated offences.
-- A cell is `<ddI4BB`: end, forget, level, origin, shadow; then the note, opaque bytes.
-- An end never moves earlier here. It must not know why: origin and note are carried, not judged.

local EXCESS = 0
local LEVEL_MAX = 4294967295

local function load_block(key)
  local cell = call('GET', key)
  if not cell then
    return nil
  end
  local ends, forget, level, origin, shadow, note = unpack('<ddI4BB', cell)
  return {
    ends = ends, forget = forget, level = level, origin = origin, shadow = shadow == 1,
    note = sub(cell, note),
  }
end

local function stands(block, now, shadow)
  return block and now < block.ends and (shadow or not block.shadow)
end

-- Gives `act(key, block, act, now)`: the block after an act, or nil when it changes nothing.
local function make_act()
  local function length(penalty, level)
    local span = min(penalty.first, penalty.max)
    for _ = 1, level do
      if penalty.factor == 1 or span >= penalty.max then
        break
      end
      span = min(span * penalty.factor, FOREVER, penalty.max)
    end
    return span
  end

  local function started(act, now)
    local penalty = act.penalty
    return {
      ends = after(now, length(penalty, 0)), forget = penalty.forget,
      level = penalty.forget > 0 and 1 or 0, origin = act.origin, shadow = act.shadow,
      note = act.note,
    }
  end

  -- The later end wins and brings its origin and note; only an escalating act moves the level.
  local function merged(block, act, now)
    local penalty = act.penalty
    local ends = after(now, length(penalty, block.level))
    if penalty.forget > 0 then
      block.level, block.forget = min(block.level + 1, LEVEL_MAX), penalty.forget
    end
    if ends > block.ends then
      block.ends, block.origin, block.shadow, block.note = ends, act.origin, act.shadow, act.note
    end
    return block
  end

  local function next_block(block, act, now)
    if not block or now >= after(block.ends, block.forget) then
      return started(act, now)
    elseif act.shadow and not block.shadow and now < block.ends then
      return nil
    elseif block.shadow and not act.shadow then
      return started(act, now)
    elseif act.origin == EXCESS and block.origin == EXCESS and now < block.ends then
      return nil
    end
    return merged(block, act, now)
  end

  return function(key, block, act, now)
    local next = next_block(block, act, now)
    if next then
      local shadow = next.shadow and 1 or 0
      local cell = pack('<ddI4BB', next.ends, next.forget, next.level, next.origin, shadow)
      save(key, cell .. next.note, second_after(after(next.ends, next.forget)))
    end
    return next
  end
end
