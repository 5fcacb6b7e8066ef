-- Operations 5 (block) and 6 (unblock): what operators do to keys, and nodes that write blocks
-- again after the store lost them.

-- Operation 5. Batch: per row an act, then `ddd` level, `forget` and time since the end of earlier
-- offences (level 0: none). Key: the block. Reply: per row `BI4`: 1 if the end of the block moved;
-- length of the block in force (0: none); then the block as in its cell.
local function block_all(now)
  local act, remember = make_act()
  local reply = ''
  while place <= #batch do
    local row, order = { block_key = next_key() }, read_act()
    local past = {}
    past.level, past.forget, past.since_end, place = unpack('<ddd', batch, place)
    row.block = load_block(row.block_key, true)
    -- A penalty of length zero with a level only restores the level of a block that has ended.
    local is_over = past.level > 0 and min(order.penalty.first, order.penalty.max) == 0
    local moved = not is_over and act(row, order, now) and 1 or 0
    if past.level > 0 then
      remember(row, order, past, now)
    end
    -- `true`: shadow blocks are reported, too. The same in `unblock_all`.
    local block = stands(row.block, now, true) and pack_block(row.block) or ''
    reply = reply .. pack('<BI4', moved, #block) .. block
  end
  return reply
end

-- Operation 6. Batch: per key `d`: releases only a block with this end, up to `SAME_END` (0: with
-- any), because a block that was written again after a loss ends a little later. Keys: the blocks.
-- Reply: per key B: 1 if a block was in force and is released. The block ends now; its level stays.
local function unblock_all(now)
  local SAME_END = 10000000
  local reply = ''
  for _, key in ipairs(KEYS) do
    local only_until
    only_until, place = unpack('<d', batch, place)
    local block = load_block(key, true)
    local is_wanted = only_until == 0
      or block and max(only_until, block.ends) - min(only_until, block.ends) <= SAME_END
    local stood = stands(block, now, true) and is_wanted
    if stood then
      block.ends = now
      save_block(key, block)
    end
    reply = reply .. char(stood and 1 or 0)
  end
  return reply
end
