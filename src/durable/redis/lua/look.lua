-- SPDX-License-Identifier: MIT
-- Reads the last batch of a session. If the session is over, makes sure that it stays over, even if the clock goes
-- back. ARGV: id, session. Returns the number of the batch, whether it was a claim, whether the session lives, and the
-- outcomes. Returns an empty list if there is no such session.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local row = call('HGET', SESSION, ARGV[2])
if not row or #row < 9 then
	return {}
end
local alive = lives(ARGV[2])
if not alive then
	write_begin()
	call('ZADD', BEAT, 0, ARGV[2])
end
return {(number('>I8', row)), byte(row, 9), alive and 1 or 0, call('HGET', OUTCOMES, ARGV[2]) or ''}
