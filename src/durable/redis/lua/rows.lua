-- SPDX-License-Identifier: MIT
-- Reads rows by their serials. ARGV: id, serials. Returns the timer, the run and the dead letter of each, or false
-- where there is none.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
if #ARGV == 1 then
	return {}
end
local result = {}
local values, runs = call('HMGET', TIMER, unpack(ARGV, 2)), call('HMGET', RUN, unpack(ARGV, 2))
for i = 1, #values do
	result[3 * i - 2], result[3 * i - 1] = values[i], runs[i]
	result[3 * i] = not values[i] and call('HGET', DEAD, ARGV[i + 1]) or false
end
return result
