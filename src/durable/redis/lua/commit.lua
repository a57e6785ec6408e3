-- SPDX-License-Identifier: MIT
-- Does operations in their order, at most 1,000. The writes are prepared completely before the first one is done.
--
-- ARGV: id, session, batch, first (1: the first part of a commit), grows (1: the commit has new timers), number of the
-- first operation, and the operations. An operation is: type 1, flags 1 (1: it ends an own run; 2: this session claims
-- the timer; 4: the timer runs), serial 8, attempt 8, fence 8, and a timer as in TIMER, or only its due and place.
--
-- Returns the time, and the operations with an unusual outcome: number 4, outcome 4, place 4, serial 8 of each.
local PUT, DELETE, MOVE, START, BURY, REVIVE, DROP = 1, 2, 3, 4, 5, 6, 7
local PRESENT, RUNNING, ATTEMPTED, ABSENT, FENCE = 2, 3, 4, 5, 4294967295
local OPS = 6
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local s, n = ARGV[2], tonumber(ARGV[3])
local session_row
session_row, refusal = batch_look(s, n)
if not session_row then
	return refusal
end

-- keys: for each key the serial that has it, or false. key_writes: the keys that change.
local rows, deads, keys, key_writes = {}, {}, {}, {}
local bad = false

-- Makes a row of the server's values. `set` is the sorted set that lists the row, and `member` its member there.
local function row_read(serial, value, run)
	local row = {value = value, had_run = run and true or false}
	if run then
		bad = bad or #run ~= RUN_BYTES
		row.head, row.session, row.fence, row.attempt = sub(run, 1, 16), sub(run, 17, 24), sub(run, 25, 32), sub(run, 33, 40)
		row.marks = byte(run, 41) or 0
	else
		bad = bad or #value < HEAD_BYTES
		row.head, row.session, row.fence, row.attempt = sub(value, 1, 16), NONE, NONE, NONE
		row.marks = (byte(value, 21) or 0) > 0 and KEYED or 0
	end
	row.set = row.session == NONE and FREE or HELD
	row.member = member_of(row.session, row.head, serial)
	rows[serial] = row
	return row
end

local function rows_read()
	local serials, seen, plain = {}, {}, {}
	for i = OPS + 1, #ARGV do
		local serial = sub(ARGV[i], 3, 10)
		if not seen[serial] then
			seen[serial] = true
			serials[#serials + 1] = serial
		end
	end
	local runs = call('HMGET', RUN, unpack(serials))
	for i = 1, #serials do
		if runs[i] then
			row_read(serials[i], nil, runs[i])
		else
			plain[#plain + 1] = serials[i]
		end
	end
	local values = #plain > 0 and call('HMGET', TIMER, unpack(plain)) or {}
	for i = 1, #plain do
		if values[i] then
			row_read(plain[i], values[i], nil)
		end
	end
end

-- Returns the row that an operation names by its id, or nil.
local function row_of(serial, place)
	local row = rows[serial]
	return row and not row.gone and sub(row.head, 9, 12) == place and row or nil
end

local function value_of(serial, row)
	row.value = row.value or call('HGET', TIMER, serial) or ''
	bad = bad or #row.value < HEAD_BYTES
	return row.value
end

local function key_of(value)
	return sub(value, 22, 21 + (byte(value, 21) or 0))
end

-- Returns the serial that has a key, or false.
local function holder(key)
	if keys[key] == nil then
		local serial = call('HGET', KEY, key)
		if serial and not rows[serial] then
			local value, run = call('HGET', TIMER, serial), call('HGET', RUN, serial)
			if value then
				row_read(serial, value, run)
			end
		end
		keys[key] = serial and rows[serial] and serial or false
	end
	return keys[key]
end

local function remove(serial, row)
	if row.marks >= KEYED then
		local key = key_of(value_of(serial, row))
		keys[key], key_writes[key] = false, false
	end
	row.gone, row.changed = true, true
end

-- Returns whether an operation may change a row. It may if the session `fence` has claimed the row. An operation that
-- is not strict may also change the row if the timer does not run, or runs in a session that is over.
local function may(row, fence, strict)
	return (fence ~= NONE and row.session == fence) or (not strict and not (row.marks % 2 == STARTED and lives(row.session)))
end

local unusual = {}
local function note(number_of, outcome, place, serial)
	unusual[#unusual + 1] = pack('>I4I4', number_of, outcome) .. place .. serial
end

local function put(at, serial, attempt, value, mine, runs)
	local there, key = rows[serial] and not rows[serial].gone and serial or nil, key_of(value)
	if not there and key ~= '' then
		there = holder(key)
	end
	if there then
		return note(at, PRESENT, sub(rows[there].head, 9, 12), there)
	end
	local before = rows[serial]
	rows[serial] = {
		value = value, head = sub(value, 1, 16), session = mine and s or NONE, fence = NONE, attempt = attempt, new = true,
		marks = (runs and STARTED + OPEN or 0) + (key ~= '' and KEYED or 0), changed = true,
		set = before and before.set, member = before and before.member, had_run = before and before.had_run,
	}
	if key ~= '' then
		keys[key], key_writes[key] = serial, serial
	end
end

local function delete(at, serial, place, fence, strict)
	local row = row_of(serial, place)
	if not row or not may(row, fence, strict) then
		return note(at, row and not strict and RUNNING or ABSENT, place, serial)
	end
	if row.attempt ~= NONE and not strict then
		note(at, ATTEMPTED, place, serial)
	end
	remove(serial, row)
end

local function move(at, serial, place, due, attempt, fence, strict, mine)
	local row = row_of(serial, place)
	if not row or not may(row, fence, strict) then
		return note(at, row and not strict and RUNNING or ABSENT, place, serial)
	end
	row.marks = row.marks - row.marks % 2
	if strict or (fence ~= NONE and row.session == fence) then
		row.marks, row.attempt = row.marks - row.marks % KEYED, attempt
	end
	row.head, row.session, row.changed = due .. sub(row.head, 9), mine and s or NONE, true
end

-- Makes the fence of all timers that start. The fence is greater than their earlier fences, even if the clock went
-- back.
local next_fence
local function fence_make()
	local greatest = 0
	for i = OPS + 1, #ARGV do
		local row = byte(ARGV[i]) == START and rows[sub(ARGV[i], 3, 10)]
		if row and row.fence ~= NONE then
			greatest = math.max(greatest, (number('>I8', row.fence)))
		end
	end
	next_fence = pack('>I8', math.max(now, greatest + 1))
	note(FENCE, tonumber(ARGV[6]), '\0\0\0\0', next_fence)
end

local function start(at, serial, place, attempt, fence)
	local row = row_of(serial, place)
	if not next_fence then
		fence_make()
	end
	if not row or row.session ~= s or fence ~= s then
		return note(at, ABSENT, place, serial)
	end
	if not is_due(row.head) then
		return note(at, PRESENT, place, serial)
	end
	row.marks, row.attempt, row.fence, row.changed = row.marks - row.marks % KEYED + STARTED + OPEN, attempt, next_fence, true
end

-- Returns the dead letter of an id, or nil. A letter is: when it ended 8, its last attempt 8, the timer.
local function dead_of(serial, place)
	if deads[serial] == nil then
		local letter = call('HGET', DEAD, serial)
		bad = bad or (letter and #letter < 16 + HEAD_BYTES)
		deads[serial] = letter and {letter = letter, before = letter} or false
	end
	local dead = deads[serial]
	return dead and dead.letter and sub(dead.letter, 25, 28) == place and dead or nil
end

local function bury(at, serial, place, attempt, fence)
	local row = row_of(serial, place)
	if not row or fence == NONE or row.session ~= fence then
		return note(at, ABSENT, place, serial)
	end
	dead_of(serial, place)
	deads[serial] = deads[serial] or {}
	deads[serial].letter = ns_of(now) .. attempt .. sub(row.head, 1, 16) .. sub(value_of(serial, row), 17)
	remove(serial, row)
end

local function revive(at, serial, place, due, mine)
	local dead = dead_of(serial, place)
	if not dead or (rows[serial] and not rows[serial].gone) then
		return note(at, ABSENT, place, serial)
	end
	local letter = dead.letter
	put(at, serial, NONE, due .. sub(letter, 25, 36) .. '\0' .. sub(letter, 38 + byte(letter, 37)), mine, false)
	dead.letter = nil
end

local function drop(at, serial, place)
	local dead = dead_of(serial, place)
	if not dead then
		return note(at, ABSENT, place, serial)
	end
	dead.letter = nil
end

local function operate()
	local first = tonumber(ARGV[6]) - OPS - 1
	for i = OPS + 1, #ARGV do
		local op = ARGV[i]
		local type, flags = byte(op, 1, 2)
		local serial, attempt, fence, place = sub(op, 3, 10), sub(op, 11, 18), sub(op, 19, 26), sub(op, 35, 38)
		local at, strict, mine = first + i, flags % 2 == 1, flags % 4 >= 2
		if type == START then
			start(at, serial, place, attempt, fence)
		elseif type == DELETE then
			delete(at, serial, place, fence, strict)
		elseif type == PUT then
			put(at, serial, attempt, sub(op, 27), mine, flags >= 4)
		elseif type == MOVE then
			move(at, serial, place, sub(op, 27, 34), attempt, fence, strict, mine)
		elseif type == BURY then
			bury(at, serial, place, attempt, fence)
		elseif type == REVIVE then
			revive(at, serial, place, sub(op, 27, 34), mine)
		elseif type == DROP then
			drop(at, serial, place)
		end
	end
end

-- The writes, as lists of arguments.
local timer_set, timer_del, run_set, run_del = {}, {}, {}, {}
local add, rem = {[FREE] = {}, [HELD] = {}}, {[FREE] = {}, [HELD] = {}}

local function row_gone(serial, row)
	if row.member then
		local list = rem[row.set]
		list[#list + 1] = row.member
		timer_del[#timer_del + 1] = serial
	end
	if row.had_run then
		run_del[#run_del + 1] = serial
	end
end

local function row_kept(serial, row)
	local set, member = row.session == NONE and FREE or HELD, member_of(row.session, row.head, serial)
	if member ~= row.member then
		local list = add[set]
		list[#list + 1], list[#list + 2] = 0, member
		if row.member then
			list = rem[row.set]
			list[#list + 1] = row.member
		end
	end
	if row.new then
		-- Writes row.head, because a later operation of the same script may have moved the new timer.
		timer_set[#timer_set + 1], timer_set[#timer_set + 2] = serial, row.head .. sub(row.value, 17)
	end
	if not row.new or row.session ~= NONE or row.attempt ~= NONE then
		run_set[#run_set + 1] = serial
		run_set[#run_set + 1] = row.head .. row.session .. row.fence .. row.attempt .. string.char(row.marks)
	elseif row.had_run then
		run_del[#run_del + 1] = serial
	end
end

local function rows_write()
	for serial, row in pairs(rows) do
		if row.changed and row.gone then
			row_gone(serial, row)
		elseif row.changed then
			row_kept(serial, row)
		end
	end
	call_many('HDEL', TIMER, timer_del)
	call_many('HDEL', RUN, run_del)
	call_many('HSET', TIMER, timer_set)
	call_many('HSET', RUN, run_set)
	for set, list in pairs(rem) do
		call_many('ZREM', set, list)
	end
	for set, list in pairs(add) do
		call_many('ZADD', set, list)
	end
end

local function keys_write()
	for key, serial in pairs(key_writes) do
		if serial then
			call('HSET', KEY, key, serial)
		else
			call('HDEL', KEY, key)
		end
	end
end

local function deads_write()
	for serial, dead in pairs(deads) do
		local before, letter = dead and dead.before, dead and dead.letter
		if before and before ~= letter then
			call('HDEL', DEAD, serial)
			call('ZREM', BURIED, sub(before, 25, 28) .. serial)
			call('ZREM', ENDED, sub(before, 1, 8) .. serial)
		end
		if letter and before ~= letter then
			call('HSET', DEAD, serial, letter)
			call('ZADD', BURIED, 0, sub(letter, 25, 28) .. serial)
			call('ZADD', ENDED, 0, sub(letter, 1, 8) .. serial)
		end
	end
end

-- Keeps the outcomes until the next commit begins, because the reply may be lost.
local function outcomes_write(text)
	if ARGV[4] == '1' then
		call('HDEL', OUTCOMES, s)
	end
	if text ~= '' then
		call('HSET', OUTCOMES, s, (call('HGET', OUTCOMES, s) or '') .. text)
	end
end

rows_read()
operate()
if bad then
	return refuse('TWFORM a row in ' .. TIMER .. ', ' .. RUN .. ' or ' .. DEAD)
end
if ARGV[5] == '0' then
	write_begin()
end
batch_begin(s, n, session_row, 0)
local text = table.concat(unusual)
rows_write()
keys_write()
deads_write()
outcomes_write(text)
return {string.format('%.0f', now), text}
