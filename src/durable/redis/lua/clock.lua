-- SPDX-License-Identifier: MIT
-- The one place where the time is read, in microseconds since 1970. Tests replace it.
local function now_us()
	local time = redis.call('TIME')
	return time[1] * 1000000 + time[2]
end
