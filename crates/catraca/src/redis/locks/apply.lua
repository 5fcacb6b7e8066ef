-- The end of the script: which operation it is, and what is told of it.
--
-- The reply is `d` now, then what the operation returned. An operation's fields are in the line
-- above its function; a proof is `c16Bc16`. It must not do what an operation's own file does.

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
  -- A look changes nothing.
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
call('SET', META, pack('<dddd', now, fence, kept, changed) .. ARGV[3])
if #freed > 0 then
  call('PUBLISH', ARGV[2], table.concat(freed))
end
return pack('<d', now) .. told
