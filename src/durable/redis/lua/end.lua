-- SPDX-License-Identifier: MIT
-- Ends a session, and frees at most `most` of its rows. ARGV: id, session, most. Returns 1 if the session has more
-- rows, otherwise 0.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
write_begin()
call('ZADD', BEAT, 0, ARGV[2])
local freed, all = free_held(ARGV[2], tonumber(ARGV[3]))
if not freed then
	return refuse('TWFORM a row in ' .. RUN)
end
if not all then
	return 1
end
session_forget(ARGV[2])
return 0
