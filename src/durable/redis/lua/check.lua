-- SPDX-License-Identifier: MIT
-- Checks on a new connection whether the server does a write, and permits all commands of the scripts. A script that fails
-- after its first write is not taken back. So each command is tried here, the writing ones last, where it changes nothing.
-- ARGV: id.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
call('EXISTS', META)
call('HEXISTS', META, 'id')
call('HMGET', META, 'id')
call('HGETALL', KIND)
call('HKEYS', SESSION)
call('SMEMBERS', PAUSED)
call('ZCARD', ENDED)
call('ZLEXCOUNT', ENDED, '-', '-')
call('ZRANGE', ENDED, 0, 0)
call('ZRANGEBYLEX', FREE, '-', '+', 'LIMIT', 0, 1)
call('ZRANGEBYSCORE', BEAT, 0, 0, 'LIMIT', 0, 1)
call('ZSCORE', BEAT, '')
write_begin()
call('ZREM', FREE, '')
call('ZADD', FREE, 'XX', 0, '')
call('HINCRBY', META, 'serial', 0)
call('HSET', META, 'version', 1)
return 1
