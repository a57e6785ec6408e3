-- SPDX-License-Identifier: MIT
-- Lists the next timers, at most `most` of each kind and of each session. ARGV: id, the position behind which the list
-- begins (due, place, serial; '': at the first one), the last deadline, most, kinds. Returns due, place and serial of
-- each timer. The caller sorts them.
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
