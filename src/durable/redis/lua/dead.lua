-- SPDX-License-Identifier: MIT
-- Lists dead letters in the order of place and serial. ARGV: id, the place and serial behind which the list begins ('':
-- at the first one), most. Returns the serial and the dead letter of each.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local members = call('ZRANGEBYLEX', BURIED, ARGV[2] == '' and '-' or '(' .. ARGV[2], '+', 'LIMIT', 0, ARGV[3])
local result = {}
for i = 1, #members do
	local serial = sub(members[i], 5)
	result[2 * i - 1], result[2 * i] = serial, call('HGET', DEAD, serial)
end
return result
