-- The end of the script: calls the function of the operation. A check never comes here: it returns
-- at the end of check.lua.

-- Operation 7. Keys: everything to delete. Reply: `d` now.
local function reset(now)
  for _, key in ipairs(KEYS) do
    call('DEL', key)
  end
  return pack('<d', now)
end

-- Operation 8, see `reconcile` in bucket.lua.
local function reconcile_all(now)
  local reply = ''
  while place <= #batch do
    reply = reply .. meter_of(1).reconcile(now)
  end
  return reply
end

if operation == 2 then
  return make_settle()(now)
elseif operation == 3 then
  return recall(now)
elseif operation == 4 then
  return credit(now)
elseif operation == 5 then
  return block_all(now)
elseif operation == 6 then
  return unblock_all(now)
elseif operation == 7 then
  return reset(now)
elseif operation == 8 then
  return reconcile_all(now)
end
return redis.error_reply('CATRACA unknown operation ' .. operation)
