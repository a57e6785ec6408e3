-- SPDX-License-Identifier: MIT
-- A heartbeat, which renews a session. ARGV: id, session, how long the session lasts (microseconds). Returns the time,
-- and the server's maxmemory-policy ('' if it is unknown).
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
if not lives(ARGV[2]) then
	return refuse('TWOVER the session is over')
end
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:([%w-]+)') or ''
write_begin()
call('ZADD', BEAT, string.format('%.0f', now + ARGV[3]), ARGV[2])
return {string.format('%.0f', now), policy}
