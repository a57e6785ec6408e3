-- SPDX-License-Identifier: MIT
-- Lists the serials that a session has claimed but not started, in the order of deadlines. ARGV: id, session, the
-- position behind which the list begins (due, place, serial; '': at the first one), most. Returns the position for the
-- next call ('': there are no more), and the serials.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local s, most = ARGV[2], tonumber(ARGV[4])
local from = ARGV[3] == '' and '[' .. s or '(' .. s .. ARGV[3]
local members = call('ZRANGEBYLEX', HELD, from, '(' .. s .. string.rep('\255', 21), 'LIMIT', 0, most)
local serials, result = {}, {#members == most and sub(members[#members], 9) or ''}
for i = 1, #members do
	serials[i] = sub(members[i], 21)
end
local runs = #members > 0 and call('HMGET', RUN, unpack(serials)) or {}
for i = 1, #runs do
	if runs[i] and byte(runs[i], 41) % 2 == 0 then
		result[#result + 1] = serials[i]
	end
end
return result
