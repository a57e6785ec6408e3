-- SPDX-License-Identifier: MIT
-- Removes the oldest dead letters, at most `most`. ARGV: id, how many may stay, a time (8 bytes; letters that ended
-- earlier are removed), most. Returns how many were removed.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local keep, most = tonumber(ARGV[2]), tonumber(ARGV[4])
local gone = math.max(call('ZLEXCOUNT', ENDED, '-', '(' .. ARGV[3]), call('ZCARD', ENDED) - keep)
local members = gone > 0 and call('ZRANGE', ENDED, 0, math.min(gone, most) - 1) or {}
for i = 1, #members do
	local serial = sub(members[i], 9)
	local letter = call('HGET', DEAD, serial)
	call('ZREM', ENDED, members[i])
	call('HDEL', DEAD, serial)
	if letter then
		call('ZREM', BURIED, sub(letter, 25, 28) .. serial)
	end
end
return #members
