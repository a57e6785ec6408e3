-- SPDX-License-Identifier: MIT
-- Claims timers that are due soon, oldest first. ARGV: id, session, batch, how far ahead (microseconds), most, and for
-- each kind its number (4 bytes) and its name. Returns 1 if another claim should follow at once, otherwise 0, and for
-- each row its serial, its timer and its run.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local s, n, most = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local row
row, refusal = batch_look(s, n)
if not row then
	return refusal
end

-- Frees rows of sessions that are over. Returns 0, 1 if there are more, or nil if a row has the wrong form.
local function reap()
	local over = call('ZRANGEBYSCORE', BEAT, '-inf', string.format('%.0f', now), 'LIMIT', 0, 100)
	for i = 1, #over do
		-- A late heartbeat then finds the session over, even if the clock went back.
		call('ZADD', BEAT, 0, over[i])
		local freed, all = free_held(over[i], most)
		if not freed then
			return nil
		end
		most = most - freed
		if not all then
			return 1
		end
		session_forget(over[i])
	end
	return 0
end

-- Returns the members of FREE that are due soon, oldest first: kind 4, due 8, place 4, serial 8.
local function soon()
	local paused, sources = {}, {}
	local until_ns = ns_of(now + ARGV[4])
	for _, name in ipairs(call('SMEMBERS', PAUSED)) do
		paused[name] = true
	end
	for i = 6, #ARGV do
		local kind = sub(ARGV[i], 1, 4)
		if not paused[sub(ARGV[i], 5)] then
			sources[#sources + 1] = {key = FREE, from = '[' .. kind, to = '[' .. kind .. until_ns .. string.rep('\255', 12)}
		end
	end
	return oldest(sources, most, false)
end

write_begin()
local more = reap()
if not more then
	return refuse('TWFORM a row in ' .. RUN)
end
local found = most > 0 and soon() or {}
local held, runs, result, bytes = {}, {}, {more}, 0

-- Prepares the claim of some of the members found. Returns false if a row has the wrong form.
local function take(first, last)
	local serials = {}
	for i = first, last do
		serials[#serials + 1] = sub(found[i], 17)
	end
	local values, before = call('HMGET', TIMER, unpack(serials)), call('HMGET', RUN, unpack(serials))
	for i = first, last do
		local serial, value, run = serials[i - first + 1], values[i - first + 1], before[i - first + 1]
		if not value or #value < HEAD_BYTES or (run and #run ~= RUN_BYTES) then
			return false
		end
		if run then
			run = sub(run, 1, 16) .. s .. sub(run, 25)
		else
			run = sub(value, 1, 16) .. s .. NONE .. NONE .. string.char(byte(value, 21) > 0 and KEYED or 0)
		end
		held[2 * i - 1], held[2 * i] = 0, s .. sub(found[i], 5)
		runs[2 * i - 1], runs[2 * i] = serial, run
		result[3 * i - 1], result[3 * i], result[3 * i + 1] = serial, value, run
		bytes = bytes + #value
	end
	return true
end

-- Timers may be large. After 4 MB the rest waits for the next claim.
local count = #found
for first = 1, count, 50 do
	if bytes > 4000000 then
		result[1] = 1
		for i = first, count do
			found[i] = nil
		end
		break
	end
	if not take(first, math.min(first + 49, count)) then
		return refuse('TWFORM a row in ' .. TIMER .. ' or ' .. RUN)
	end
end
batch_begin(s, n, row, 1)
if #found > 0 then
	call_many('ZREM', FREE, found)
	call_many('ZADD', HELD, held)
	call_many('HSET', RUN, runs)
end
return result
