#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the instructions of the hot paths with those of the baseline.

usage: counts.py DRIVER KEY [--update REASON]
       counts.py DRIVER KEY --self-test

Runs the driver under callgrind, and compares the instructions of each path's operation with those in
baseline.json under KEY. The key names machine, compiler, liburcu and flags. A path that takes 3 % more than
its baseline fails. One that takes 3 % less is reported. A path must not allocate, and must not make a system
call.

--update moves the baseline of this key to the present counts. The reason is stored with each path that has
moved, and goes into the same commit as the change. --self-test checks that 4 % more in each path in turn
fails and 2 % does not, that planted allocations and system calls are noticed, and that two runs count the
same.

Exit code: 0: no path is worse; 1: a path is worse, or a check failed; 77: there is nothing to compare with, because
valgrind or a baseline for the key is missing. With TESTS_COUNTS_REQUIRED=1 in the environment it is 1 instead of 77.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BASELINE = pathlib.Path(__file__).with_name("baseline.json")
LIMIT = 0.03
# How many of the driver's rounds count: the last ones. The first ones warm up.
ROUNDS = 4
# Paths that every baseline must have.
GUARDED = {"schedule", "pair", "cancel-in-ingress", "cancel-in-wheel", "transfer", "expire", "expire-unordered"}
ALLOCATORS = {
    "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "mmap", "munmap", "madvise", "brk", "sbrk",
}
# On a busy machine, the system call by which another thread goes to sleep can end inside each counted call of a
# path. So if a path has only a few system calls, the driver runs again.
FEW_SYSTEM_CALLS = 3
TRIES = 4
GOOD, WRONG, SKIPPED = 0, 1, 77


def blocks(text):
    """Returns the functions of a part, each with its lines. Many of them have no cost."""
    parts = re.split(r"^fn=(.*)$", text, flags=re.M)
    return zip(parts[1::2], parts[2::2])


def own_cost(block):
    """Returns the cost of a function without its callees, whose cost is in the line after each `calls=`."""
    block = re.sub(r"^calls=.*\n.*$", "", block, flags=re.M)
    return sum(map(int, re.findall(r"^[\d+*-]+ (\d+)", block, re.M)))


class Call:
    """The cost of one call of a path, as one part of callgrind's output reports it."""

    def __init__(self, text):
        events = re.search(r"^events: (.*)$", text, re.M).group(1).split()
        # callgrind leaves out zeros at the end of a line.
        totals = dict(zip(events, map(int, re.search(r"^totals: (.*)$", text, re.M).group(1).split())))
        self.instructions = totals["Ir"]
        self.system_calls = totals.get("sysCount", 0)
        self.functions = {function for function, block in blocks(text) if own_cost(block) > 0}


class Path:
    """All calls of a path except those that warm up."""

    def __init__(self, calls, operations):
        calls = calls[-ROUNDS:]
        self.count = round(sum(call.instructions for call in calls) / len(calls) / operations, 2)
        # Another thread's last system call may end inside a counted call, and then counts there. So take
        # the minimum.
        self.system_calls = min(call.system_calls for call in calls)
        self.allocators = sorted(set.union(*(call.functions for call in calls)) & ALLOCATORS)


def run_once(driver, words):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        command = [
            "valgrind", "--tool=callgrind", "--collect-systime=yes", "--compress-strings=no",
            "--toggle-collect=counted_call", "--dump-after=counted_call", f"--callgrind-out-file={out}",
        ]
        done = subprocess.run([*command, driver, *words], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{driver} {words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        *names, last = done.stdout.splitlines()
        calls = {}
        for number, name in enumerate(names, 1):
            calls.setdefault(name, []).append(Call(out.with_name(f"out.{number}").read_text()))
    operations = int(last.removeprefix("operations "))
    return {name: Path(found, operations) for name, found in calls.items()}


def run_driver(driver, *words):
    """Returns the paths by name. Runs the driver again if a path has a few system calls."""
    for _ in range(TRIES):
        paths = run_once(driver, words)
        if not any(0 < path.system_calls <= FEW_SYSTEM_CALLS for path in paths.values()):
            break
    return paths


def compare(baseline, counts):
    """Returns errors and remarks. Both arguments are keyed by path; each value of baseline has a count and a
    reason.
    """
    wrong, told = [], []
    for name in sorted({*baseline, *counts, *GUARDED}):
        if name not in counts or name not in baseline:
            wrong.append(f"{name}: " + ("not counted" if name not in counts else "not in the baseline"))
            continue
        before, now = baseline[name]["count"], counts[name]
        text = f"{name}: {now} instructions, the baseline has {before} ({now / before - 1:+.1%})"
        if now > before * (1 + LIMIT):
            wrong.append(text + "; if that is wanted, move the baseline, and say why")
        elif now < before * (1 - LIMIT):
            told.append(text + "; move the baseline, so that it stays so")
    return wrong, told


def steady(paths):
    """Reports allocations and system calls, which a steady state must not make."""
    for name, path in paths.items():
        if path.allocators:
            yield f"{name}: allocates, by {', '.join(path.allocators)}"
        if path.system_calls != 0:
            yield f"{name}: {path.system_calls} system calls"


def read_baselines():
    return json.loads(BASELINE.read_text()) if BASELINE.exists() else {}


def update(key, counts, reason):
    baselines = read_baselines()
    before = baselines.get(key, {})
    baselines[key] = {
        name: before[name] if before.get(name, {}).get("count") == count else {"count": count, "reason": reason}
        for name, count in counts.items()
    }
    BASELINE.write_text(json.dumps(baselines, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    moved = [name for name in counts if baselines[key][name] != before.get(name)]
    print(f"{key}: moved: {', '.join(moved) or 'nothing'}")


def planted(counts, name, factor):
    return {**counts, name: counts[name] * factor}


def self_test(driver):
    paths = run_driver(driver)
    counts = {name: path.count for name, path in paths.items()}
    baseline = {name: {"count": count, "reason": "now"} for name, count in counts.items()}
    if not all(path["reason"] and path["count"] > 0 for of_key in read_baselines().values() for path in of_key.values()):
        yield "a path of the baseline without count or reason"
    if compare(baseline, counts) != ([], []):
        yield "the same counts are not the same"
    for name in counts:
        wrong, _ = compare(baseline, planted(counts, name, 1.04))
        if len(wrong) != 1 or not wrong[0].startswith(name + ":"):
            yield f"4 % more in {name}: {wrong}"
        if compare(baseline, planted(counts, name, 1.02)) != ([], []):
            yield f"2 % more in {name} is too much"
        if [len(lines) for lines in compare(baseline, planted(counts, name, 0.96))] != [0, 1]:
            yield f"4 % less in {name} is not told, or fails"
        fewer = {other: count for other, count in counts.items() if other != name}
        if not compare(baseline, fewer)[0] or not compare({other: baseline[other] for other in fewer}, counts)[0]:
            yield f"{name} can be left out"
    again = {name: path.count for name, path in run_driver(driver).items()}
    if again != counts:
        yield f"a second run counts otherwise: {counts}, {again}"
    for word, text in ("allocate", "allocates, by free, malloc"), ("call", "8192 system calls"):
        found = list(steady(run_driver(driver, word)))
        if found != [f"expire: {text}", f"expire-unordered: {text}"]:
            yield f"planted, {word}: {found}"


def skip(why):
    print(f"skipped: {why}")
    return WRONG if os.environ.get("TESTS_COUNTS_REQUIRED") == "1" else SKIPPED


def check(key, paths):
    counts = {name: path.count for name, path in paths.items()}
    baselines = read_baselines()
    print(f"{key}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    wrong = list(steady(paths))
    if key in baselines:
        slower, told = compare(baselines[key], counts)
        print(*(f"less than before: {line}" for line in told), sep="\n")
        wrong += slower
    print(*(f"wrong: {line}" for line in wrong), sep="\n")
    if wrong:
        return WRONG
    return GOOD if key in baselines else skip(f"no baseline for {key}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("key")
    parser.add_argument("--update", metavar="REASON")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        return skip("no valgrind")
    if options.self_test:
        wrong = list(self_test(options.driver))
        print("\n".join(wrong) if wrong else "counts: good")
        return WRONG if wrong else GOOD
    paths = run_driver(options.driver)
    if options.update is not None:
        if not options.update.strip():
            parser.error("a reason is needed")
        update(options.key, {name: path.count for name, path in paths.items()}, options.update.strip())
    return check(options.key, paths)


if __name__ == "__main__":
    sys.exit(main())
