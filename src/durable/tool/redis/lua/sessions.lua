-- SPDX-License-Identifier: MIT
-- Lists all sessions. ARGV: id. Returns for each session its number (8 bytes), its name, the microseconds until it
-- ends, and how many timers it has claimed.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local rows, result = call('HGETALL', SESSION), {}
for i = 1, #rows, 2 do
	local s, left = rows[i], (tonumber(call('ZSCORE', BEAT, rows[i]) or now)) - now
	result[#result + 1] = s
	result[#result + 1] = sub(rows[i + 1], 10)
	result[#result + 1] = string.format('%.0f', left)
	result[#result + 1] = call('ZLEXCOUNT', HELD, '[' .. s, '(' .. s .. string.rep('\255', 21))
end
return result
