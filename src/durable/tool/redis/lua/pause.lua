-- SPDX-License-Identifier: MIT
-- Pauses or resumes a kind. ARGV: id, kind, '1' to pause. Returns 0 if it was done, 1 if there is no such kind.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
if call('HEXISTS', KIND, ARGV[2]) == 0 then
	return 1
end
call(ARGV[3] == '1' and 'SADD' or 'SREM', PAUSED, ARGV[2])
return 0
