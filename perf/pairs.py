#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one engine costs over another, in pairs: each pair runs both, one right after the other, in an order
that changes from pair to pair, so that what the machine does meanwhile meets both alike.

usage: pairs.py PROGRAM WORKLOAD ENGINE RIVAL [PAIRS [OPTION...]]

PROGRAM is tickwheel-perf, OPTION one of its own, for both engines; 30 pairs, unless told.

Prints the median of the pairs' ratios (RIVAL over ENGINE), of wall and CPU time per operation, and the bounds
within which that median lies with 95 % (10,000 bootstrap samples, percentile method).
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
