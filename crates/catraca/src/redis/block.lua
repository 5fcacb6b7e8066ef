-- Blocks: the timed denial of one key of a policy, and the level of repeated offences.
--
-- A cell is `<ddI4BB`, 22 bytes: end (microseconds), forget (a span: how long after its end the
-- level is remembered), level, origin, shadow (1 or 0); then the bytes of the note, which the
-- script only copies. Nothing here moves an end earlier; only unblock_all in block_ops.lua does.

-- Origins; 2, an operator, is only copied.
local EXCESS, BAN, UPSTREAM = 0, 1, 3
local LEVEL_MAX = 4294967295
-- Bytes of a cell without its note.
local BLOCK = 22

-- The block of a key, or nil. With `acts` (block and unblock), a cell that is too short to be a
-- block counts as absent and may be overwritten. Otherwise nodes, which write their blocks again
-- before they use the store, could not use it at all. For checks and settles it is a damaged cell.
local function load_block(key, acts)
  local cell = read_cell('GET', key)
  if not cell or (acts and #cell < BLOCK) then
    return nil
  end
  local ends, forget, level, origin, shadow, note = unpack('<ddI4BB', cell)
  return {
    ends = ends, forget = forget, level = level, origin = origin, shadow = shadow == 1,
    note = sub(cell, note),
  }
end

-- Whether a block is in force for a row. Shadow rows see shadow blocks, enforcing rows do not.
local function stands(block, now, shadow)
  return block and now < block.ends and (shadow or not block.shadow)
end

local function pack_block(block)
  local shadow = block.shadow and 1 or 0
  return pack('<ddI4BB', block.ends, block.forget, block.level, block.origin, shadow) .. block.note
end

local function save_block(key, block)
  save(key, pack_block(block), second_after(after(block.ends, block.forget)))
end

local function read_penalty()
  local first, factor, longest, forget
  first, factor, longest, forget, place = unpack('<dddd', batch, place)
  return { first = first, factor = factor, max = longest, forget = forget }
end

-- Creates two functions:
--   change(row, act, now)   applies an act to the row's block; returns whether its end or its mode
--                           (shadow or enforcing) changed
--   remember(row, act, past, now)   sets the level of earlier offences, when a block is written
--                           again from the records
local function make_act()
  -- first * factor^level, at most max. Multiplied step by step, because the power would exceed
  -- 2^53.
  local function length(penalty, level)
    local span = min(penalty.first, penalty.max)
    for _ = 1, level do
      if penalty.factor == 1 or span == 0 or span >= penalty.max then
        break
      end
      span = min(span * penalty.factor, FOREVER, penalty.max)
    end
    return span
  end

  -- The block that an act starts where there is none. `forget` > 0 means that the penalty
  -- escalates: level 1 makes the next one longer.
  local function started(act, now)
    local penalty = act.penalty
    return {
      ends = after(now, length(penalty, 0)), forget = penalty.forget,
      level = penalty.forget > 0 and 1 or 0, origin = act.origin, shadow = act.shadow,
      note = act.note,
    }
  end

  -- An act on a live block. The later end wins, with its origin, mode and note. Only an escalating
  -- act (forget > 0) raises the level.
  local function merged(block, act, now)
    local ends, forget = after(now, length(act.penalty, block.level)), act.penalty.forget
    local later, escalates = ends > block.ends, forget > 0
    local winner = later and act or block
    return {
      ends = later and ends or block.ends,
      forget = escalates and forget or block.forget,
      level = escalates and min(block.level + 1, LEVEL_MAX) or block.level,
      origin = winner.origin, shadow = winner.shadow, note = winner.note,
    }
  end

  -- The block after an act, or nil if the act changes nothing: a shadow act while an enforcing
  -- block or its level is remembered, or an excess during a block that an excess started.
  local function next_block(block, act, now)
    if not block then
      return started(act, now)
    elseif act.shadow and not block.shadow then
      return nil
    elseif block.shadow and not act.shadow then
      return started(act, now)
    elseif act.origin == EXCESS and block.origin == EXCESS and now < block.ends then
      return nil
    end
    return merged(block, act, now)
  end

  -- The block, unless it is forgotten: `forget` after its end.
  local function live(block, now)
    return block and now < after(block.ends, block.forget) and block or nil
  end

  local function remember(row, act, past, now)
    local ended = max(now - past.since_end, 0)
    local block = live(row.block, now)
    if not block then
      block = started(act, now)
      -- An act of length zero: the block has ended, and its level is remembered from its true end.
      block.ends = block.ends > now and block.ends or ended
    end
    local ends = block.ends > now and block.ends or max(block.ends, ended)
    local longer = after(ends, past.forget) > after(block.ends, block.forget)
    local higher = past.level > block.level
    if block.shadow == act.shadow and (higher or past.level == block.level and longer) then
      block.ends, block.level, block.forget = ends, past.level, past.forget
      row.block = block
      save_block(row.block_key, block)
    end
  end

  local function change(row, act, now)
    local block = live(row.block, now)
    local next = next_block(block, act, now)
    if not next then
      return false
    end
    row.block = next
    save_block(row.block_key, next)
    return not block or next.ends ~= block.ends or next.shadow ~= block.shadow
  end

  return change, remember
end
