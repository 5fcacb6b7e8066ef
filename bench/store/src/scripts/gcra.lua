-- The least that a token bucket in Redis can be: one key, one number, no block, no policies.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local step, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = tonumber(redis.call('GET', KEYS[1]) or now)
if full_at < now then
  full_at = now
end
local wait = full_at + step - room - now
if wait > 0 then
  return { 0, wait }
end
full_at = full_at + step
redis.call('SET', KEYS[1], string.format('%d', full_at), 'PX', math.ceil((full_at - now) / 1000))
return { 1, 0 }
