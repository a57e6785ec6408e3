-- SPDX-License-Identifier: MIT
-- Reserves serials. ARGV: id, count. Returns the first serial after them, as a text. A serial is at least 1,024 times
-- the time in microseconds. So no serial is assigned twice, even if the server loses its last writes in a crash.
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
