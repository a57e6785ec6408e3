-- SPDX-License-Identifier: MIT
-- Reserves serials. ARGV: id, count. Returns the first serial after them, as a text. A serial is at least the clock's
-- time, so that no serial is assigned twice after the server lost its last writes in a crash.
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
