#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that docs/gdb/tickwheel-gdb.py shows the known figures of a stopped process, and of its core file.

usage: test_gdb.py GDB PROGRAM SCRIPT

Exit code: 0 if all checks passed; 1 if one failed. If gdb is missing, has no Python, or may not run a process here,
the code is 77; it is 1 instead if TESTS_TRACERS_REQUIRED is set.

Seen to fail with these defects: the number of a slot's chunks is shown as that of its entries; a stale handle
is treated as a pending one; the argument of a chain's node is shown instead of the chain's own; only the counters of
the first lane are shown.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 1 if "TESTS_TRACERS_REQUIRED" in os.environ else 77
LOOKS = (
    ("tickwheel engine levels", (
        r"^engine 0x[0-9a-f]+: running$",
        r"^options: wheel hierarchical, tick 1000000 ns$",
        r"^timeouts: pending 132, scheduled 134, rejected 0, expired 0, cancelled 2, handed back 0$",
        r"^wheel: 132 in it, tick 1$",
        r"^level 0: 30$",
        r"^level 1: 101$",
        r"^slot 31 of level 1: 100$",
        r"^slot 12 of level 0: 30$",
        r"^ingress: lanes 1, in rings 0$",
    )),
    ("tickwheel engine hashed", (
        r"^options: wheel hashed, tick 1000000 ns$",
        r"^timeouts: pending 130, scheduled 130, ",
        r"^level 0: 130$",
        r"^slot 2002 of level 0: 100$",
    )),
    ("print *levels", (r"= \{engine, running, 132 pending\}$",)),
    ("print pending", (r"= \{timeout 0x[0-9a-f]+, generation 2, pending in the wheel, deadline never\}$",)),
    ("print stale", (r"= \{timeout 0x[0-9a-f]+, generation 1, stale: ",)),
    ("print cancelled", (r"= \{timeout 0x[0-9a-f]+, generation 1, cancelled, deadline 1000\}$",)),
    ("print none", (r"= \{no timeout\}$",)),
    ("print garbage", (r"= \{timeout 0x8, generation 1, garbage: ",)),
    ("print chain", (r"= \{timeout 0x[0-9a-f]+, generation 1, pending in the wheel, periodic, deadline 3000000000\}$",)),
    ("print *(struct twi_node *)pending.node", (r"= \{timeout, generation 2, pending in the wheel, deadline never, "
                                                r"engine 0x[0-9a-f]+, kind 0x[0-9a-f]+, argument 0x[0-9a-f]+\}$",)),
    ("tickwheel timeout chain", (r"^callback: 0x[0-9a-f]+ <on_expire>$", r"^finaliser: 0x0$")),
    ("output (long)chain_argument", (r"^argument right$",)),
    ("tickwheel engine 0", (r"^this is no pointer to an engine$",)),
    ("tickwheel timeout 0", (r"^this is no struct tw_handle$",)),
)
# The command must show the user's argument, also for a chain.
CHAIN_ARGUMENT = """python
shown = gdb.execute("tickwheel timeout chain", to_string=True)
print("argument right" if f"argument: {int(gdb.parse_and_eval('&argument')):#x}" in shown else "argument wrong")
end
"""


def gdb_run(gdb, folder, arguments, lines):
    """Returns what gdb prints for these commands. If one fails, the others still run."""
    script = pathlib.Path(folder) / "commands"
    script.write_text("\n".join(["set pagination off", "set confirm off", "set style enabled off", *lines]) + "\n")
    done = subprocess.run([gdb, "-nx", "-batch", "-x", str(script), *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=100, check=False)
    return done.stdout


def look_lines():
    lines = []
    for number, (command, _) in enumerate(LOOKS):
        lines.append(f"echo look {number}\\n")
        if command.startswith("output"):
            lines.append(CHAIN_ARGUMENT)
            continue
        # A gdb script ends at its first error, so each command runs inside a Python try.
        lines += ["python", "try:", f"    gdb.execute({command!r})", "except gdb.error as error:",
                  "    print(error)", "end"]
    return lines


def wrong(said, where):
    shown = dict(re.findall(r"^look (\d+)\n(.*?)(?=^look \d+\n|\Z)", said, re.M | re.S))
    for number, (command, patterns) in enumerate(LOOKS):
        text = shown.get(str(number), "")
        for pattern in patterns:
            if not re.search(pattern, text, re.M):
                yield f"{where}: {command}: nothing like {pattern!r} in:\n{text}"


def main(gdb, program, script):
    if shutil.which(gdb) is None:
        print("there is no gdb")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        core = str(pathlib.Path(folder) / "core")
        if "python here" not in gdb_run(gdb, folder, [], ["python print('python here')"]):
            print("this gdb has no python")
            return SKIPPED
        said = gdb_run(gdb, folder, [program], [f"source {script}", "break stand", "run", "up", *look_lines(),
                                                f"generate-core-file {core}", "kill"])
        if "Breakpoint 1, stand" not in said:
            print(f"gdb may not run a process here:\n{said}")
            return SKIPPED
        faults = list(wrong(said, "process"))
        said = gdb_run(gdb, folder, [program, core], [f"source {script}", *look_lines()])
        faults += wrong(said, "core file")
    print("\n".join(faults) or "gdb: good")
    return 1 if faults else 0


sys.exit(main(*sys.argv[1:]))
