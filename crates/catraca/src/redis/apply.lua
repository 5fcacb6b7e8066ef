-- The end of the script: which operation it is, if it is not a check.
-- It must not do what an operation's own file does.

-- Keys: all that is to be forgotten. Reply: `d` now.
local function reset(now)
  for _, key in ipairs(KEYS) do
    call('DEL', key)
  end
  return pack('<d', now)
end

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
