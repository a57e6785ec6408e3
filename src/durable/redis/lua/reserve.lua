-- SPDX-License-Identifier: MIT
-- Reserves serials. ARGV: id, count. Returns the first one after them, as a text. They go on from the clock at least: so those
-- that a crash of the server has taken back are not given again.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local least = now * 1024
write_begin()
if tonumber(call('HGET', META, 'serial')) < least then
	call('HSET', META, 'serial', string.format('%.0f', least))
end
call('HINCRBY', META, 'serial', ARGV[2])
return call('HGET', META, 'serial')
