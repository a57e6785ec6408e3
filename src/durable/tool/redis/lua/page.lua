-- SPDX-License-Identifier: MIT
-- Checks one page of a table. ARGV: id, table (the index of its key in KEYS), cursor of the page, about how many
-- rows. Returns the cursor of the next page ('0' after the last), the number of rows, and a text for each defect:
-- serial or name, then ': ' and the defect.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local at = tonumber(ARGV[2])
local scan = call(TYPES[at] == 'zset' and 'ZSCAN' or 'HSCAN', KEYS[at], ARGV[3], 'COUNT', ARGV[4])
local result, list = {scan[1], #scan[2] / 2}, scan[2]
local known, serials_end = {}, call('HGET', META, 'serial')
for _, kind in ipairs(call('HVALS', KIND)) do
	known[tonumber(kind)] = true
end

local function decimal(serial)
	-- Lua's numbers hold 53 bits, and a serial has 64. So the digits are computed one by one, from two halves.
	local high, low = number('>I4I4', serial)
	local text = ''
	while high > 0 or low > 0 do
		local rest = high % 10
		high, low = floor(high / 10), rest * 4294967296 + low
		text, low = string.format('%d', low % 10) .. text, floor(low / 10)
	end
	return text == '' and '0' or text
end

local function defect(serial, text)
	result[#result + 1] = (#serial == 8 and decimal(serial) or serial) .. ': ' .. text
end

local function kind_check(serial, kind)
	if not known[number('>I4', kind)] then
		defect(serial, 'is of a kind that has no name')
	end
end

local function given(serial)
	local text = decimal(serial)
	return #text < #serials_end or (#text == #serials_end and text < serials_end)
end

local function timer_check(serial, value)
	if #serial ~= 8 or #value < HEAD_BYTES or #value < HEAD_BYTES + byte(value, 21) then
		return defect(serial, 'is not as it must be')
	end
	local run = call('HGET', RUN, serial)
	if run and #run ~= RUN_BYTES then
		return defect(serial, 'has a run that is not as it must be')
	end
	local session = run and sub(run, 17, 24) or NONE
	kind_check(serial, sub(value, 13, 16))
	if not given(serial) then
		defect(serial, 'has a serial that was not given out')
	end
	local free = call('ZSCORE', FREE, member_of(NONE, run or value, serial))
	local held = session ~= NONE and call('ZSCORE', HELD, member_of(session, run, serial))
	if (session == NONE and not free) or (session ~= NONE and (free or not held)) then
		defect(serial, 'is not listed where it must be, and is not found by its deadline')
	end
	if session ~= NONE and not call('ZSCORE', BEAT, session) then
		defect(serial, 'is of a session that is not there')
	end
	if session == NONE and run and byte(run, 41) % 2 == STARTED then
		defect(serial, 'runs, and no session has it')
	end
	local key = sub(value, 22, 21 + byte(value, 21))
	if key ~= '' and call('HGET', KEY, key) ~= serial then
		defect(serial, 'has a key that names another timer, or none')
	end
end

local function letter_check(serial, letter)
	if #serial ~= 8 or #letter < 16 + HEAD_BYTES then
		return defect(serial, 'is a dead letter that is not as it must be')
	end
	kind_check(serial, sub(letter, 29, 32))
	if not given(serial) then
		defect(serial, 'has a serial that was not given out')
	end
	if not call('ZSCORE', BURIED, sub(letter, 25, 28) .. serial) or not call('ZSCORE', ENDED, sub(letter, 1, 8) .. serial) then
		defect(serial, 'is a dead letter that is not listed')
	end
end

-- Checks a member of a sorted set. The last 8 bytes of a member are the serial of its row.
local function member_check(member, score, row)
	local serial = sub(member, -8)
	if call('HEXISTS', row, serial) == 0 then
		defect(serial, 'is listed, and is not there')
	end
end

local function key_check(key, serial)
	if call('HEXISTS', TIMER, serial) == 0 then
		defect(serial, 'has a key, and is not there')
	end
end

local function run_check(serial, run)
	if call('HEXISTS', TIMER, serial) == 0 then
		defect(serial, 'has a run, and is not there')
	end
end

local function session_check(session, row)
	if not call('ZSCORE', BEAT, session) then
		defect(session, 'is a session that is half there')
	end
end

local function beat_check(session)
	if call('HEXISTS', SESSION, session) == 0 then
		defect(session, 'is a session that is half there')
	end
end

local checks = {
	[2] = session_check, [3] = beat_check, [5] = timer_check, [6] = run_check, [7] = member_check, [8] = member_check, [9] = key_check,
	[10] = letter_check, [11] = member_check, [12] = member_check,
}
for i = 1, #list, 2 do
	checks[at](list[i], list[i + 1], at <= 8 and TIMER or DEAD)
end
return result
