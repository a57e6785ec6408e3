-- SPDX-License-Identifier: MIT
-- The text with which each script begins. docs/internals/durable-shared.md has the protocol, and what each key holds.
--
-- Lua's numbers are exact up to 2^53. So a number of 64 bits is a text of eight bytes, big-endian. A signed number has
-- its highest bit inverted, so that the order of the texts is the order of the numbers.
--
--     timer: due 8, place 4, kind 4, version 4, bytes of the key 1, key, payload
--     run:   due 8, place 4, kind 4, session 8, fence 8, attempt 8, marks 1
--
-- A timer has a `run` if it was ever claimed or moved. Then the due of the `run` counts, not the due of the `timer`.
local META, SESSION, BEAT, OUTCOMES, TIMER, RUN, FREE, HELD, KEY, DEAD, BURIED, ENDED, KIND, PAUSED =
	KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local TYPES = {'hash', 'hash', 'zset', 'hash', 'hash', 'hash', 'zset', 'zset', 'hash', 'hash', 'zset', 'zset', 'hash', 'set'}
local STARTED, OPEN, KEYED = 1, 2, 4
local NONE = '\0\0\0\0\0\0\0\0'
local RUN_BYTES, HEAD_BYTES = 41, 21
local call, pack, number = redis.call, struct.pack, struct.unpack
local byte, sub, floor = string.byte, string.sub, math.floor
local now = now_us()

local function refuse(text)
	return redis.error_reply(text)
end

-- Returns a refusal if a key has the wrong type, or the data is not that of `id`. Each script checks this before it
-- writes, because Redis does not roll back a script.
local function unsound(id)
	for i = 1, #KEYS do
		local type = call('TYPE', KEYS[i]).ok
		if type ~= TYPES[i] and type ~= 'none' then
			return refuse('TWFORM ' .. KEYS[i] .. ' is a ' .. type)
		end
	end
	if id and call('HGET', META, 'id') ~= id then
		return refuse('TWGONE the timers that this process has opened are gone: the server was emptied')
	end
end

-- Returns microseconds as nanoseconds, in eight bytes with the highest bit inverted.
local function ns_of(us)
	local high = floor(us / 4294967296)
	local low = (us - high * 4294967296) * 1000
	local carry = floor(low / 4294967296)
	return pack('>I4I4', high * 1000 + carry + 2147483648, low - carry * 4294967296)
end

-- Returns whether the deadline of a head has passed.
local now_high, now_low = number('>I4I4', ns_of(now))
local function is_due(head)
	local high, low = number('>I4I4', head)
	return high < now_high or (high == now_high and low <= now_low)
end

local known_lives = {}
local function lives(session)
	local known = known_lives[session]
	if known == nil then
		local expires = call('ZSCORE', BEAT, session)
		known = expires ~= false and tonumber(expires) > now
		known_lives[session] = known
	end
	return known
end

-- A server without memory refuses only the first write of a script. So a script that makes no timer begins with a write
-- that is never refused.
local function write_begin()
	call('HDEL', META, '')
end

-- Checks whether batch n of a session may begin. Returns the session's row, or nil and a refusal.
local function batch_look(s, n)
	local row = call('HGET', SESSION, s)
	if not row or #row < 9 or not lives(s) or number('>I8', row) ~= n - 1 then
		return nil, refuse('TWOVER the session is over, or has this batch already')
	end
	return row
end

local function batch_begin(s, n, row, claim)
	call('HSET', SESSION, s, pack('>I8B', n, claim) .. sub(row, 10))
end

-- Returns the member of a timer in FREE or HELD. `head` begins with due, place and kind.
local function member_of(session, head, serial)
	if session == NONE then
		return sub(head, 13, 16) .. sub(head, 1, 12) .. serial
	end
	return session .. sub(head, 1, 12) .. serial
end

-- Runs a command with a long list of arguments, by several calls, because Lua's stack is limited.
local function call_many(command, key, list)
	for i = 1, #list, 4000 do
		call(command, key, unpack(list, i, math.min(i + 3999, #list)))
	end
end

-- Frees at most `most` rows that a session has claimed. Returns how many, and whether these were all. Returns nil if a
-- row has the wrong form.
local function free_held(session, most)
	local members = call('ZRANGEBYLEX', HELD, '[' .. session, '(' .. session .. string.rep('\255', 21), 'LIMIT', 0, most)
	if #members == 0 then
		return 0, true
	end
	local serials, free, runs = {}, {}, {}
	for i = 1, #members do
		serials[i] = sub(members[i], 21)
	end
	local rows = call('HMGET', RUN, unpack(serials))
	for i = 1, #members do
		local run = rows[i]
		if not run or #run ~= RUN_BYTES then
			return nil
		end
		free[2 * i - 1], free[2 * i] = 0, member_of(NONE, run, serials[i])
		runs[2 * i - 1] = serials[i]
		runs[2 * i] = sub(run, 1, 16) .. NONE .. sub(run, 25, 40) .. string.char(byte(run, 41) - byte(run, 41) % 2)
	end
	call_many('ZREM', HELD, members)
	call_many('ZADD', FREE, free)
	call_many('HSET', RUN, runs)
	return #members, #members < most
end

local function session_forget(session)
	call('HDEL', SESSION, session)
	call('ZREM', BEAT, session)
	call('HDEL', OUTCOMES, session)
end

-- Moves a source to its next member. Reads the source's members from the server in parts. Returns false if there is
-- none left.
local function source_step(source, part)
	source.at = source.at + 1
	if source.at > #source.members and source.more then
		source.members, source.at = call('ZRANGEBYLEX', source.key, source.from, source.to, 'LIMIT', 0, part), 1
		source.more = #source.members == part
		source.from = '(' .. (source.members[part] or '')
	end
	local member = source.members[source.at]
	if member then
		source.high, source.low = number('>I4I4', member, #member - 19)
	end
	return member ~= nil
end

local function source_before(a, b)
	return a.high < b.high or (a.high == b.high and a.low < b.low)
end

-- Moves the i-th source of a heap down to its place.
local function source_sink(heap, i)
	local count = #heap
	while 2 * i <= count do
		local child = 2 * i
		if child < count and source_before(heap[child + 1], heap[child]) then
			child = child + 1
		end
		if not source_before(heap[child], heap[i]) then
			return
		end
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	end
end

-- Returns the oldest members of several ranges of FREE and HELD, by deadline. A source is {key, from, to}. However
-- many sources there are, not many more members are read than are returned. If `equals`, also returns all members
-- that have the deadline of the last one.
local function oldest(sources, most, equals)
	if #sources == 1 and not equals then
		return call('ZRANGEBYLEX', sources[1].key, sources[1].from, sources[1].to, 'LIMIT', 0, most)
	end
	local part = math.min(most, math.max(10, math.ceil(most / math.max(1, #sources))))
	local heap, found, last = {}, {}, {}
	for i = 1, #sources do
		local source = sources[i]
		source.members, source.at, source.more = {}, 0, true
		if source_step(source, part) then
			heap[#heap + 1] = source
		end
	end
	for i = floor(#heap / 2), 1, -1 do
		source_sink(heap, i)
	end
	while heap[1] and (#found < most or (equals and not source_before(last, heap[1]))) do
		local source = heap[1]
		found[#found + 1] = source.members[source.at]
		last.high, last.low = source.high, source.low
		if not source_step(source, part) then
			heap[1] = heap[#heap]
			heap[#heap] = nil
		end
		source_sink(heap, 1)
	end
	return found
end
