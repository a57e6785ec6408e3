-- SPDX-License-Identifier: MIT
-- Pauses a kind, or takes that back. ARGV: id, kind, '1': pause. Returns 1: there is no such kind.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
if call('HEXISTS', KIND, ARGV[2]) == 0 then
	return 1
end
call(ARGV[3] == '1' and 'SADD' or 'SREM', PAUSED, ARGV[2])
return 0
