#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the trace points fire where docs/tracing.md says, with the arguments that it lists. gdb watches a
program whose timeouts are known. Skipped (77) if gdb is missing, has no Python, or may not watch a process,
unless TESTS_TRACERS_REQUIRED is set.

usage: fires.py PROGRAM
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 1 if "TESTS_TRACERS_REQUIRED" in os.environ else 77
PROBES = {"schedule": 5, "cancel": 4, "transfer": 3, "reclaim": 3, "cascade": 3, "expire": 5, "callback_begin": 5,
          "callback_end": 3, "park": 2, "wake": 2, "stop": 1}


def inside_gdb(gdb):
    class Watched(gdb.Breakpoint):
        def __init__(self, name):
            super().__init__(f"-probe-stap tickwheel:{name}")
            self.name = name

        def stop(self):
            words = [gdb.parse_and_eval(f"(long long) $_probe_arg{i}") for i in range(PROBES[self.name])]
            print("probe", self.name, *(int(word) & 2**64 - 1 for word in words), flush=True)
            return False

    gdb.execute("set pagination off")
    gdb.execute("set debuginfod enabled off")
    # The library is loaded when main begins.
    gdb.execute("start")
    print("watching", flush=True)
    for name in PROBES:
        Watched(name)
    gdb.execute("continue")


def watch(program):
    gdb = shutil.which("gdb")
    if not gdb:
        sys.exit(SKIPPED)
    with tempfile.NamedTemporaryFile("r") as said:
        done = subprocess.run([gdb, "-nx", "-batch", "-x", __file__, "--args", program, said.name], capture_output=True,
                              text=True, timeout=100, check=False, env={**os.environ, "LC_ALL": "C"})
        if "watching" not in done.stdout:
            print(done.stdout, done.stderr)
            sys.exit(SKIPPED)
        return f"{said.read()}\n{done.stdout}"


def rows(text, word):
    """Returns what follows the word in each line that has it. The word may follow an unfinished line of gdb."""
    return [line.split()[1:] for line in re.findall(rf"\b{word} \d.*|\b{word} [a-z_]+ \d.*", text)]


def judge(text):
    engine, = rows(text, "engine")[0]
    function, = rows(text, "function")[0]
    arg, = rows(text, "arg")[0]
    scheduled, cancelled = rows(text, "scheduled"), rows(text, "cancelled")
    expired = [scheduled[1], scheduled[0]]
    fired = collections.defaultdict(list)
    for name, first, *words in rows(text, "probe"):
        if first != engine:
            yield f"{name} of an engine that is none"
        fired[name].append(words)
    wanted = {
        "schedule": [[*row, function] for row in scheduled],
        "cancel": [[*row, "1"] for row in cancelled],
        "reclaim": cancelled,
        "callback_begin": [[*row[:2], function, arg] for row in expired],
        "callback_end": [row[:2] for row in expired],
        "stop": [[]],
    }
    for name, words in wanted.items():
        if fired[name] != words:
            yield f"{name}: {fired[name]}, not {words}"
    # Stop finds the last timeout still in a ring, or already in the wheel.
    if sorted(fired["transfer"]) not in (sorted(row[:2] for row in scheduled[:count]) for count in (3, 4)):
        yield f"transfer: {fired['transfer']}"
    if [row[:3] for row in fired["expire"]] != expired:
        yield f"expire: {fired['expire']}, not {expired}"
    if any(int(batch_ns) < int(deadline_ns) for _, _, deadline_ns, batch_ns in fired["expire"]):
        yield f"expire: early: {fired['expire']}"
    if fired["cascade"] != [["1", "1"]]:
        yield f"cascade: {fired['cascade']}"
    if not 0 <= len(fired["park"]) - len(fired["wake"]) <= 1 or not fired["wake"]:
        yield f"parked {len(fired['park'])} times, awake {len(fired['wake'])} times"
    # The causes of a wake-up here: timeouts that fire, and a flush, unless it finds the worker awake.
    if not {"0"} <= {cause for cause, in fired["wake"]} <= {"0", "1", "2"}:
        yield f"wake: {fired['wake']}"


def main():
    text = watch(sys.argv[1])
    wrong = list(judge(text))
    if wrong:
        print(text, *wrong, sep="\n")
    sys.exit(1 if wrong else 0)


try:
    import gdb as gdb_inside
except ImportError:
    main()
else:
    inside_gdb(gdb_inside)
