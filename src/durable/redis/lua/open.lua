-- SPDX-License-Identifier: MIT
-- Makes the missing data and kinds. ARGV: names of kinds. Returns the id of the server's data, and all kinds with their
-- numbers.
local refusal = unsound()
if refusal then
	return refusal
end
local version = call('HGET', META, 'version')
if version and version ~= '1' then
	return refuse('TWVERSION the timers here have the format ' .. version)
end
if not version then
	if call('EXISTS', unpack(KEYS)) ~= 0 then
		return refuse('TWFORM ' .. META .. ' has no version')
	end
	local time = redis.call('TIME')
	call('HSET', META, 'version', 1, 'id', time[1] .. '.' .. time[2], 'serial', 1, 'session', 0, 'kinds', 0)
end
for i = 1, #ARGV do
	if call('HEXISTS', KIND, ARGV[i]) == 0 then
		call('HSET', KIND, ARGV[i], call('HINCRBY', META, 'kinds', 1))
	end
end
return {call('HGET', META, 'id'), call('HGETALL', KIND)}
