-- Adds the message of a node, and returns those of all nodes, in one step: while a cluster moves
-- the keys to another server, either all of it is done or none of it.
--
-- KEYS[1]  the hash of live nodes: ids and what they say about themselves
-- KEYS[2]  the stream of notices; an entry has one field, `n`
-- ARGV     the id of the node, what it says about itself, the first id of the stream to return, how
--          many entries to return, the number of nodes that are gone; then their ids; then the
--          notices to add
--
-- The reply is the length of the stream, the fields of the hash, and the entries.

local call = redis.call
local gone = tonumber(ARGV[5])

call('HSET', KEYS[1], ARGV[1], ARGV[2])
for index = 6, 5 + gone do
  call('HDEL', KEYS[1], ARGV[index])
end
for index = 6 + gone, #ARGV do
  call('XADD', KEYS[2], '*', 'n', ARGV[index])
end
return {
  call('XLEN', KEYS[2]),
  call('HGETALL', KEYS[1]),
  call('XRANGE', KEYS[2], ARGV[3], '+', 'COUNT', ARGV[4]),
}
