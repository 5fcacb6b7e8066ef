-- Writes rules that nodes share through Redis: of two acts about one rule, the newer one stays.
--
-- KEYS[1]  the hash of rules; a field is the name of a rule. A value is the stamp of the last act
--          about it, then the rule, which the script does not read; a removed rule has the stamp
--          alone. A stamp is 16 digits, the instant of the act in microseconds; `-`; 10 digits,
--          random; `:`.
-- KEYS[2]  the change counter of lists, facts and modes.
-- ARGV[1]  `merge`, or `purge` to delete what is left of removed rules
-- ARGV     then a name and a value for each rule
--
-- The parts of a stamp are compared as numbers: the order of strings depends on the server's
-- locale. A value without a stamp is older than any other.

local call = redis.call

local function is_newer(value, stored)
  local at, stored_at = tonumber(string.sub(value, 1, 16)), tonumber(string.sub(stored, 1, 16))
  local tie, stored_tie = tonumber(string.sub(value, 18, 27)), tonumber(string.sub(stored, 18, 27))
  if not (stored_at and stored_tie) then
    return true
  end
  return at > stored_at or (at == stored_at and tie > stored_tie)
end

for index = 2, #ARGV, 2 do
  local name, value = ARGV[index], ARGV[index + 1]
  local stored = call('HGET', KEYS[1], name)
  if ARGV[1] == 'purge' then
    if stored == value then
      call('HDEL', KEYS[1], name)
    end
  elseif not stored or is_newer(value, stored) then
    call('HSET', KEYS[1], name, value)
  end
end
if ARGV[1] == 'merge' then
  call('INCR', KEYS[2])
end
return ''
