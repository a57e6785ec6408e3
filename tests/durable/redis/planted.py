#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in the store in Redis (shared/planted_store.py says how to use it)."""
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from planted_store import Store, main  # noqa: E402

# name, file, the code, the defect that replaces it
PLANTED = [
    ("a start without a claim", "lua/commit.lua", "	if not row or row.session ~= s or fence ~= s then", "	if not row then"),
    ("a start before its time", "lua/commit.lua", "	if not is_due(row.head) then", "	if false then"),
    ("an end without a fence", "lua/commit.lua", "return (fence ~= NONE and row.session == fence) or", "return (fence ~= NONE) or"),
    ("an own cancel that counts as one from elsewhere", "lua/commit.lua", "return (fence ~= NONE and row.session == fence) or",
     "return (strict and row.session == fence) or"),
    ("a cancel of a run from elsewhere", "lua/commit.lua", "(not strict and not (row.marks % 2 == STARTED and lives(row.session)))",
     "(not strict)"),
    ("a start that leaves no open attempt", "lua/commit.lua", "row.marks - row.marks % KEYED + STARTED + OPEN, attempt, next_fence, true",
     "row.marks - row.marks % KEYED + STARTED, attempt, next_fence, true"),
    ("a session's number as a fence", "lua/commit.lua", "next_fence = pack('>I8', math.max(now, greatest + 1))", "next_fence = s"),
    ("a fence by the clock alone", "lua/commit.lua", "next_fence = pack('>I8', math.max(now, greatest + 1))", "next_fence = pack('>I8', now)"),
    ("a key that stays taken", "lua/commit.lua", "keys[key], key_writes[key] = false, false", "keys[key] = false"),
    ("a key that is looked at on the server alone", "lua/commit.lua", "	if keys[key] == nil then", "	if true then"),
    ("outcomes that are not kept", "lua/commit.lua", "	if text ~= '' then", "	if false then"),
    ("a batch without a number", "lua/common.lua", " or number('>I8', row) ~= n - 1 then", " then"),
    ("a batch of a session that is over", "lua/common.lua", "	if not row or #row < 9 or not lives(s) or", "	if not row or #row < 9 or"),
    ("a heartbeat of a session that is over", "lua/beat.lua", "if not lives(ARGV[2]) then", "if not call('ZSCORE', BEAT, ARGV[2]) then"),
    ("a number of sessions by the clock alone", "lua/session.lua", "math.max(tonumber(call('HGET', META, 'session')) + 1, now)", "now"),
    ("a claim of kinds that are paused", "lua/claim.lua", "if not paused[sub(ARGV[i], 5)] then", "if true then"),
    ("a claim that keeps the mark of a start", "lua/common.lua", "string.char(byte(run, 41) - byte(run, 41) % 2)", "sub(run, 41)"),
    ("a claim that is not a batch", "lua/claim.lua", "row, refusal = batch_look(s, n)\nif not row then", "row = call('HGET', SESSION, s)\nif not row then"),
    ("a claim that does not look for dead sessions", "lua/claim.lua", "local more = reap()", "local more = 0"),
    ("a claim in the order of kinds", "lua/common.lua", "return a.high < b.high or (a.high == b.high and a.low < b.low)", "return false"),
    ("the outcomes of a late claim for those of a commit", "commit.c", "bool claim = error == 0 && settled.batches != 0 && settled.claim;",
     "bool claim = false;"),
    ("UNKNOWN for what was lost is sent again", "commit.c", "error == -ESTALE && !store->sent", "error == -ESTALE"),
    ("no look after a lost reply", "commit.c", "store->unsettled ? commit_settle(commit) : 1", "1"),
    ("numbers that the server has lost are not noticed", "settle.c", "	if (batch < store->batch)\n		return numbers_lost(store);\n", ""),
    ("no rows are read after a new connection", "session.c", "	if (error == 0 && !was_open) {\n		store->unread = true;",
     "	if (error == 0 && !was_open) {"),
    ("rows that are not wanted stay claimed", "claim.c", "	if (count != 0 && batch_run(", "	if (count > 5000 && batch_run("),
    ("a close that keeps its claims", "store.c", "		(void)twi_redis_session_end(store);", "		;"),
    ("serials that a crash gives again", "lua/reserve.lua", "if tonumber(call('HGET', META, 'serial')) < least then", "if false then"),
    ("a script that is not sent whole", "link.c", "return error == TWI_REDIS_NO_SCRIPT ? run_once(link, name_of(link, script, true), ret)",
     "return error == 1 ? 0"),
    ("a commit that is not sent whole", "commit.c", "		error = parts_do(commit, true);", "		error = -EPROTO;"),
    ("timers without memory", "commit.c", "twi_arguments_number(arguments, first == 0 && commit->grows);", "twi_arguments_number(arguments, 0);"),
    ("ends that need memory", "commit.c", "twi_arguments_number(arguments, first == 0 && commit->grows);", "twi_arguments_number(arguments, 1);"),
    ("keys of a wrong type are not looked for", "lua/common.lua", "if type ~= TYPES[i] and type ~= 'none' then", "if false then"),
    ("an emptied server is taken for the same", "lua/common.lua", "	if id and call('HGET', META, 'id') ~= id then", "	if false then"),
    ("eviction is not looked for by heartbeats", "session.c", "	if (link->evicts)\n		return -ENOTSUP;\n", ""),
    ("parts of a commit are forgotten", "commit.c", "	store->done = end;", "	store->done = commit->count;"),
]


class Redis(Store):
    def embed(self, root, source, text):
        return [sys.executable, "-B", str(root / "src/durable/redis/embed.py"), str(text), *map(str, sorted((source / "lua").glob("*.lua")))]


def server():
    from server import Server
    return Server(["appendonly no"])


if __name__ == "__main__":
    sys.exit(main(Redis("redis", ["hiredis"], ("bench_redis.c", "test_faults.c"), "TICKWHEEL_REDIS"), PLANTED, server))
