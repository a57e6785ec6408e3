-- SPDX-License-Identifier: MIT
-- Checks on a new connection whether the server does a write. ARGV: id.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
write_begin()
return 1
