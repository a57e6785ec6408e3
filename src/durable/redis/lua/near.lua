-- SPDX-License-Identifier: MIT
-- Lists the next timers. ARGV: id, the position behind which the list begins (due, place, serial; '': at the first
-- one), the last deadline, how many, kinds. Returns due, place and serial of each timer, by deadline. If more timers
-- have the deadline of the last one, returns these, too: the script orders timers only by deadline, and the caller
-- orders those with equal deadlines.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local sources, result = {}, {}

local function range(key, first)
	sources[#sources + 1] = {
		key = key, from = ARGV[2] == '' and '[' .. first or '(' .. first .. ARGV[2],
		to = '[' .. first .. ARGV[3] .. string.rep('\255', 12),
	}
end

for i = 5, #ARGV do
	range(FREE, ARGV[i])
end
for _, session in ipairs(call('HKEYS', SESSION)) do
	range(HELD, session)
end
for i, member in ipairs(oldest(sources, tonumber(ARGV[4]), true)) do
	result[i] = sub(member, -20)
end
return result
