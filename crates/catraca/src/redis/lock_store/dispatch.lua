-- The end of the lock script: calls the function of the operation, stores KEYS[1], publishes freed
-- names.
--
-- The reply is `d` now, then what the function of the operation returned. Operation 3 counts the
-- conflict of a client that waited in vain; 15 is a sweep, whose reply is B 1 if more is left.

local operation, told = string.byte(asked), nil
if operation == 1 then
  told = acquire()
elseif operation == 2 then
  told = hold()
elseif operation == 3 then
  count(read_text(), 0, 1, 0, 0, 0, 0)
  told = ''
elseif operation == 4 then
  told = renew()
elseif operation == 5 then
  told = give_back(0)
elseif operation == 6 then
  told = give_back(1)
elseif operation == 7 then
  told = confirm()
elseif operation == 8 then
  told = relocate()
elseif operation == 9 then
  -- A look writes nothing, so KEYS[1] stays as it is.
  return pack('<d', now) .. look()
elseif operation == 10 then
  told = show()
elseif operation == 11 then
  told = list()
elseif operation == 12 then
  told = force()
elseif operation == 13 then
  told = clear()
elseif operation == 14 then
  told = undo()
elseif operation == 15 then
  told = pack('B', sweep() and 1 or 0)
elseif operation == 16 then
  told = tally()
else
  return redis.error_reply('CATRACA unknown operation ' .. tostring(operation))
end
-- KEYS[1] and the counts have no TTL. If KEYS[1] expired, a client that has used the namespace
-- before would take that for a loss of data.
call('SET', META, pack('<dddd', now, fence, kept, changed) .. known_as)
if #freed > 0 then
  call('PUBLISH', ARGV[2], table.concat(freed))
end
return pack('<d', now) .. told
