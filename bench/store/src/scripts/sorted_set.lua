-- The common implementation of an exact window: a sorted set of instants and a key that blocks, as
-- one script.
local left = redis.call('PTTL', KEYS[2])
if left > 0 then
  return { 0, left }
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, window, block = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local count = redis.call('ZCARD', KEYS[1])
if count >= limit then
  if block > 0 then
    redis.call('SET', KEYS[2], '1', 'PX', block)
  end
  return { 0, block }
end
redis.call('ZADD', KEYS[1], now, string.format('%d-%d', now, count))
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return { 1, limit - count - 1 }
