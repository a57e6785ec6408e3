-- SPDX-License-Identifier: MIT
-- Finds the timer that has a key. ARGV: id, key. Returns its serial, its timer and its run, or an empty list.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local serial = call('HGET', KEY, ARGV[2])
if not serial then
	return {}
end
return {serial, call('HGET', TIMER, serial), call('HGET', RUN, serial)}
