-- SPDX-License-Identifier: MIT
-- Frees rows that this session has claimed but not started. ARGV: id, session, batch, serials.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
local s, n = ARGV[2], tonumber(ARGV[3])
local row
row, refusal = batch_look(s, n)
if not row then
	return refusal
end
local rows = call('HMGET', RUN, unpack(ARGV, 4))
local held, free, runs = {}, {}, {}
for i = 1, #rows do
	local run, serial = rows[i], ARGV[i + 3]
	if run and sub(run, 17, 24) == s and byte(run, 41) % 2 == 0 then
		held[#held + 1] = member_of(s, run, serial)
		free[#free + 1] = 0
		free[#free + 1] = member_of(NONE, run, serial)
		runs[#runs + 1] = serial
		runs[#runs + 1] = sub(run, 1, 16) .. NONE .. sub(run, 25)
	end
end
write_begin()
batch_begin(s, n, row, 1)
call_many('ZREM', HELD, held)
call_many('ZADD', FREE, free)
call_many('HSET', RUN, runs)
return 1
