-- SPDX-License-Identifier: MIT
-- Counts the free timers of a kind whose deadline is not before one time, but before another. ARGV: id, kind (4 bytes),
-- the two times (8 bytes each, as in a row). Returns the number, and the deadline of the first free timer that is not
-- due before the second time, or '' if there is none.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local from, to = ARGV[2] .. ARGV[3], ARGV[2] .. ARGV[4]
local later = call('ZRANGEBYLEX', FREE, '[' .. to, '[' .. ARGV[2] .. string.rep('\255', 21), 'LIMIT', 0, 1)
return {call('ZLEXCOUNT', FREE, '[' .. from, '(' .. to), later[1] and sub(later[1], 5, 12) or ''}
