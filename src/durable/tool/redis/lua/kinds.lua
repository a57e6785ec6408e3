-- SPDX-License-Identifier: MIT
-- Describes the timers of a prefix. Returns their id, the first serial that was not assigned yet, and for each kind its
-- number, its name, and 1 if it is paused. Returns nothing if there are no timers.
local refusal = unsound()
if refusal then
	return refusal
end
local version = call('HGET', META, 'version')
if not version then
	return {}
end
if version ~= '1' then
	return refuse('TWVERSION the timers here have the format ' .. version)
end
local result, kinds = {call('HGET', META, 'id'), call('HGET', META, 'serial')}, call('HGETALL', KIND)
for i = 1, #kinds, 2 do
	result[#result + 1] = kinds[i + 1]
	result[#result + 1] = kinds[i]
	result[#result + 1] = call('SISMEMBER', PAUSED, kinds[i])
end
return result
