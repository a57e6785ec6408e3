-- SPDX-License-Identifier: MIT
-- Whether the server does a write, for a new connection. ARGV: id.
local refusal = unsound(ARGV[1])
if refusal then
	return refusal
end
write_begin()
return 1
