-- SPDX-License-Identifier: MIT
-- Timers in the order of their deadlines: for each kind and each session at most so many. ARGV: id, place behind which they are
-- (due, place, serial, or ''), deadline up to which, most, kinds. Returns due, place and serial of each, in no order.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local most, result = tonumber(ARGV[4]), {}

local function walk(key, first, from)
	local members = call('ZRANGEBYLEX', key, ARGV[2] == '' and '[' .. first or '(' .. first .. ARGV[2],
		'[' .. first .. ARGV[3] .. string.rep('\255', 12), 'LIMIT', 0, most)
	for i = 1, #members do
		result[#result + 1] = sub(members[i], from)
	end
end

for i = 5, #ARGV do
	walk(FREE, ARGV[i], 5)
end
for _, session in ipairs(call('HKEYS', SESSION)) do
	walk(HELD, session, 9)
end
return result
