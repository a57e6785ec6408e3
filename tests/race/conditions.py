#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the race programs under one condition: another build, or another kind of machine.

usage: conditions.py CONDITION SOURCE_ROOT WORK_FOLDER

    o2, o3               gcc with that optimisation
    tsan-gcc, tsan-clang ThreadSanitizer
    asan-gcc, asan-clang AddressSanitizer and UBSan
    quota                a fifth of one processor, by a cgroup, or by alternating SIGSTOP and SIGCONT
    noise                stress-ng runs on every processor at the same time
    one-core             all threads on one processor

Each program runs in two builds: with the library as users have it, and with delays at its test points. This
script prints a line for each program, and one for the condition: how many operations were made, and how many
were lost. Exit code: 0 if all passed, 1 if one failed, 77 if a tool is missing. RACE_SECONDS: how long each
program runs (default 3).
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

SECONDS = os.environ.get("RACE_SECONDS", "3")
SKIPPED = 77
# The programs with their arguments. Each ends after SECONDS.
RUNS = [
    ["stress", "2", SECONDS, "1"],
    ["stress", "4", SECONDS, "7", "500"],
    ["stress", "80", SECONDS, "3"],
    ["stop", "schedule", "2", SECONDS, "1"],
    ["stop", "first", "2", SECONDS, "2"],
    ["stop", "start", "2", SECONDS, "3"],
    ["stop", "cancel", "2", SECONDS, "4"],
]
BUILDS = {
    "o2": ("gcc", ["-Doptimization=2"]),
    "o3": ("gcc", ["-Doptimization=3"]),
    "tsan-gcc": ("gcc", ["-Db_sanitize=thread", "-Dbuildtype=debugoptimized"]),
    "tsan-clang": ("clang", ["-Db_sanitize=thread", "-Db_lundef=false", "-Dbuildtype=debugoptimized"]),
    "asan-gcc": ("gcc", ["-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized"]),
    "asan-clang": (
        "clang",
        ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debugoptimized"],
    ),
}
# The build for conditions that differ only in the machine.
USUAL = "o2"
QUOTA_PERCENT = 20
CGROUP = pathlib.Path("/sys/fs/cgroup")


class Missing(Exception):
    """Raised if a tool is missing."""


def need(tool):
    if shutil.which(tool) is None:
        raise Missing(f"{tool} is not there")


def quietly(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stdout[-3000:]}")


def build(name, root, work):
    """Builds the programs. Returns their folder. It is kept, so that the next run compiles only what has
    changed.
    """
    compiler, options = BUILDS[name]
    for tool in (compiler, "meson", "ninja"):
        need(tool)
    folder = work / name
    if not (folder / "build.ninja").exists():
        setup = ["meson", "setup", str(folder), str(root), "-Dexamples=disabled", "-Dperf=disabled", "-Ddocs=disabled"]
        cxx = "clang++" if compiler == "clang" else "g++"
        quietly(setup + options, env=os.environ | {"CC": compiler, "CXX": cxx})
    programs = [f"tests/race/race_{name}{kind}" for name in ("stress", "stop") for kind in ("", "_delayed")]
    quietly(["ninja", "-C", str(folder)] + programs)
    return folder / "tests/race"


def sanitizer_environment(root):
    return os.environ | {
        "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": f"halt_on_error=1:suppressions={root}/tests/tsan.supp",
    }


def without_randomness(name):
    """Returns a prefix for the command that switches address randomisation off. ThreadSanitizer needs fixed
    address ranges, which other memory could occupy if addresses are random.
    """
    if name.startswith("tsan") and subprocess.run(["setarch", "-R", "true"], check=False).returncode == 0:
        return ["setarch", "-R"]
    return []


@contextlib.contextmanager
def noise():
    need("stress-ng")
    command = ["stress-ng", "--cpu", "0", "--switch", "2", "--vm", "1", "--vm-bytes", "64m", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(0.5)
        if process.poll() is not None:
            sys.exit("stress-ng does not run")
        try:
            yield
        finally:
            process.terminate()


def group_make():
    """Returns a new cgroup with a quota. Returns None if this process may not create one, for example because
    it is not root.
    """
    name = f"tickwheel-race-{os.getpid()}"
    for folder, quota in (("cpu", "cpu.cfs_quota_us"), ("", "cpu.max")):
        group = CGROUP / folder / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            value = f"{QUOTA_PERCENT * 1000}" + ("" if folder else " 100000")
            (group / quota).write_text(value)
            return group
        except OSError:
            group.rmdir()
    return None


def start(command, group, environment):
    """Starts a program. If there is a group, the program is in it from its first instruction."""
    enter = None
    if group is not None:
        enter = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=enter, env=environment
    )


def stop_and_go(process):
    """Enforces the quota with signals: lets the program run for a part of each 50 ms."""
    period = 0.05
    while process.poll() is None:
        process.send_signal(signal.SIGCONT)
        time.sleep(period * QUOTA_PERCENT / 100)
        process.send_signal(signal.SIGSTOP)
        time.sleep(period * (100 - QUOTA_PERCENT) / 100)


def program_run(command, condition, group, environment):
    process = start(command, group, environment)
    if condition == "quota" and group is None:
        stop_and_go(process)
    output, _ = process.communicate(timeout=1800)
    return process.returncode, output


def tally(output):
    """Returns how many operations a program has made and lost, from its last line."""
    found = re.search(r"^operations (\d+);.*; lost (-?\d+)$", output, re.M)
    return (int(found.group(1)), int(found.group(2))) if found else (0, None)


def run_all(condition, root, folder):
    environment = sanitizer_environment(root)
    prefix = without_randomness(condition)
    group = group_make() if condition == "quota" else None
    operations, lost, failed = 0, 0, 0
    if condition == "one-core":
        need("taskset")
        prefix = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    if condition == "quota":
        print("quota by a cgroup" if group is not None else "quota by SIGSTOP and SIGCONT")
    try:
        for kind in ("", "_delayed"):
            for program, *arguments in RUNS:
                command = prefix + [str(folder / f"race_{program}{kind}")] + arguments
                code, output = program_run(command, condition, group, environment)
                count, gone = tally(output)
                operations += count
                lost += gone or 0
                failed += code != 0 or gone != 0 or count == 0
                print(f"  {program}{kind} {' '.join(arguments)}: {output.strip()[-2000:]}", flush=True)
    finally:
        if group is not None:
            throttled = re.search(r"nr_throttled (\d+)", (group / "cpu.stat").read_text())
            print(f"  throttled {throttled.group(1)} times")
            failed += throttled.group(1) == "0"
            group.rmdir()
    print(f"{condition}: operations {operations}, lost {lost}, failed programs {failed}")
    return 1 if failed else 0


def main():
    condition, root, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    try:
        folder = build(condition if condition in BUILDS else USUAL, root, work)
        with noise() if condition == "noise" else contextlib.nullcontext():
            return run_all(condition, root, folder)
    except Missing as missing:
        print(f"{condition}: skipped, {missing}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
