-- SPDX-License-Identifier: MIT
-- Cancels a timer or dead letter, or revives a dead letter, for an operator. ARGV: id, change ('cancel' or 'revive'),
-- serial, place. Returns 0 if it was done, 1 if there is no such timer or dead letter, 2 if the timer runs now. Makes
-- the same writes as commit.lua, but needs no session.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local serial, place = ARGV[3], ARGV[4]
local value, run, letter = call('HGET', TIMER, serial), call('HGET', RUN, serial), call('HGET', DEAD, serial)
if (value and #value < HEAD_BYTES) or (run and #run ~= RUN_BYTES) or (letter and #letter < 16 + HEAD_BYTES) then
	return refuse('TWFORM a row in ' .. TIMER .. ', ' .. RUN .. ' or ' .. DEAD)
end

local function timer_remove()
	local session = run and sub(run, 17, 24) or NONE
	if run and byte(run, 41) % 2 == STARTED and lives(session) then
		return 2
	end
	local key = sub(value, 22, 21 + byte(value, 21))
	write_begin()
	if key ~= '' and call('HGET', KEY, key) == serial then
		call('HDEL', KEY, key)
	end
	call('ZREM', session == NONE and FREE or HELD, member_of(session, run or value, serial))
	call('HDEL', RUN, serial)
	call('HDEL', TIMER, serial)
	return 0
end

local function letter_remove()
	call('ZREM', BURIED, sub(letter, 25, 28) .. serial)
	call('ZREM', ENDED, sub(letter, 1, 8) .. serial)
	call('HDEL', DEAD, serial)
end

local is_timer = value and sub(run or value, 9, 12) == place
local is_letter = letter and sub(letter, 25, 28) == place
if ARGV[2] == 'cancel' then
	if is_timer then
		return timer_remove()
	end
	if is_letter then
		write_begin()
		letter_remove()
		return 0
	end
elseif is_letter and not value then
	-- If the server has no memory, it refuses the first write, and nothing is changed. The revived timer has no
	-- key, because another timer may have the key by now.
	value = ns_of(now) .. sub(letter, 25, 36) .. '\0' .. sub(letter, 38 + byte(letter, 37))
	call('HSET', TIMER, serial, value)
	call('ZADD', FREE, 0, member_of(NONE, value, serial))
	letter_remove()
	return 0
end
return 1
