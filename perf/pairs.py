#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the cost of two engines in pairs. Each pair runs both engines, one right after the other, in an order that
alternates from pair to pair, so that other load on the machine affects both alike.

usage: pairs.py PROGRAM WORKLOAD ENGINE RIVAL [PAIRS [OPTION...]]

PROGRAM is tickwheel-perf. OPTION is one of its options, which both engines get. PAIRS is 30 by default.

Prints the median of the pairs' ratios (RIVAL divided by ENGINE) for wall and CPU time per operation, and the median's
95 % confidence interval (10,000 bootstrap samples, percentile method).
"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

COSTS = {"wall": "ns_per_op", "CPU": "cpu_ns_per_op"}
SAMPLES = 10000


def measured(command, engine):
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        words = [*command, "--engine", engine, "--repeat", "1", "--json", path]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            return json.loads(file.readline())
    finally:
        os.unlink(path)


def pair(command, engines, turned):
    rows = {name: measured(command, name) for name in (reversed(engines) if turned else engines)}
    return [rows[name] for name in engines]


def bounds(ratios):
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(SAMPLES))
    return medians[SAMPLES * 25 // 1000], medians[SAMPLES * 975 // 1000 - 1]


def main(program, workload, engine, rival, count="30", *options):
    command = [program, "run", workload, *options]
    pairs = [pair(command, [engine, rival], turn % 2 == 1) for turn in range(int(count))]
    for name, key in COSTS.items():
        ratios = [theirs[key] / ours[key] for ours, theirs in pairs]
        least, most = bounds(ratios)
        costs = [statistics.median(row[key] for row in side) for side in zip(*pairs)]
        print(
            f"{workload}, {name}: {engine} {costs[0]:.1f} ns, {rival} {costs[1]:.1f} ns; "
            f"ratio {statistics.median(ratios):.3f}, with 95 % in {least:.3f} to {most:.3f} ({count} pairs)"
        )


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
