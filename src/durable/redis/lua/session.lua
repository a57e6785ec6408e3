-- SPDX-License-Identifier: MIT
-- Begins a session. ARGV: id, how long it lasts (microseconds), name. Returns its number and the time, as texts.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local number_of = math.max(tonumber(call('HGET', META, 'session')) + 1, now)
write_begin()
local text = string.format('%.0f', number_of)
local s = pack('>I8', number_of)
call('HSET', META, 'session', text)
call('HSET', SESSION, s, pack('>I8B', 0, 0) .. ARGV[3])
call('ZADD', BEAT, string.format('%.0f', now + ARGV[2]), s)
return {text, string.format('%.0f', now)}
