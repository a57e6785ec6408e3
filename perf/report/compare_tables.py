#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the tables of docs/perf.md, section "Beside others", from the JSON of `tickwheel-perf compare --json FILE`.

usage: compare_tables.py FILE            to standard output
       compare_tables.py FILE PAGE       into the page, between its two marks
"""
import itertools
import sys

from scale_tables import machine, main, number, spread, table, without_empty

MARKS = "<!-- compare: begin -->", "<!-- compare: end -->"
OURS, OURS_AT, OURS_COARSE, PROBE = "tickwheel", "tickwheel-at", "tickwheel-coarse", "none"
# Engines whose schedule reads the coarse clock, except in `light` (perf/README.md).
COARSE = OURS_COARSE, "mutex-wheel", "mutex-heap", "libevent-locked"
# The engines whose clock can be chosen, with each of their clocks.
BY_CLOCK = [
    (OURS, "time stamp counter"), (OURS_COARSE, "coarse"), ("mutex-heap-monotonic", "monotonic"), ("mutex-heap", "coarse"),
    ("mutex-wheel-monotonic", "monotonic"), ("mutex-wheel", "coarse"),
]
LATENESS_LEGEND = (
    "Lateness includes the tick. {ours} has a tick of {tick} us here; netty-512, netty-65536 and mutex-wheel have one of 1 ms, and "
    "dpdk's thread looks once in 1 ms. The other engines have no tick, and sleep until the next deadline (go seems to wait in whole ms)."
)
TARGETS_LEGEND = (
    'Targets. "Result" is `met`, the ratio that was reached, or the multiple of the target. The best other engine has the least '
    "value in this run. The floor is the sum of the steps that the operation cannot avoid:"
)


def microseconds(row, key):
    value = row["lateness_ns"][key]
    return "" if value is None else number(value / 1e3)


def line(row):
    return [
        row["engine"], number(row["ns_per_op"]), spread(row), number(row["ratio"], 2), number(row["cpu_ns_per_op"]),
        number(row["cpu_ratio"], 2), microseconds(row, "p50"), microseconds(row, "p99"),
    ]


def contest(row):
    return row["workload"], row["producers"], row["ops"], row["repeat"]


def legend(workload, rows):
    ticks = [row["tick_ns"] for row in rows if row["engine"] == OURS]
    if workload != "light" or not ticks:
        return []
    return [LATENESS_LEGEND.format(ours=OURS, tick=number(ticks[0] / 1e3, 0)), ""]


def contests(rows):
    head = ["engine", "wall ns", "least – most", "÷ tickwheel", "CPU ns", "÷ tickwheel", "lateness p50, us", "p99"]
    for (workload, producers, ops, repeat), group in itertools.groupby(rows, contest):
        group = list(group)
        yield from [f"`{workload}`, {producers} producer{'s' * (producers > 1)}, {ops:,} operations, medians of {repeat}:", ""]
        yield from without_empty(head, [line(row) for row in group])
        yield from legend(workload, group)


def clocks(rows):
    """Returns a table that shows for each clock the cost of a pair, and the lateness."""
    pair = {row["engine"]: row for row in rows if (row["workload"], row["producers"]) == ("schedule-cancel", 1)}
    fire = {row["engine"]: row for row in rows if (row["workload"], row["producers"]) == ("fire", 1)}
    lines = [
        [engine, clock, number(pair[engine]["ns_per_op"]), number(pair[engine]["cpu_ns_per_op"]), number(fire[engine]["cpu_ns_per_op"]),
         microseconds(fire[engine], "p50"), microseconds(fire[engine], "p99")]
        for engine, clock in BY_CLOCK if engine in pair and engine in fire
    ]
    if lines:
        head = ["engine", "clock", "pair: wall ns", "CPU ns", "fire: CPU ns", "lateness p50, us", "p99"]
        yield from ["Which clock, and what it buys. Pair: `schedule-cancel`, 1 producer; fire: `fire`, 1 producer:", "", *table(head, lines)]


class Floor:
    """The least cost of any design: sums of the parts that the probes of the same run measured (docs/perf.md). A sum is
    None if a part is missing."""

    def __init__(self, rows):
        self.parts = {row["workload"].removeprefix("floor-"): row["ns_per_op"] for row in rows if row["engine"] == PROBE}

    def sum(self, **counts):
        """Returns the total cost of the given number of each part. Underscores in a part's name stand for dashes."""
        parts = {name.replace("_", "-"): count for name, count in counts.items()}
        if not parts.keys() <= self.parts.keys():
            return None
        return sum(self.parts[name] * count for name, count in parts.items())

    def pair(self, **clock):
        return self.sum(cas=1, rcu_inlined=2, **clock)

    def ring(self, producers, key):
        """Returns the cost of a pair in a ring. A timeout's cache line moves from its producer to the worker and back,
        twice. The probe of a line already includes one swap, so the swaps of cancel and transfer are subtracted."""
        if key == "cpu_ns_per_op":
            return self.sum(rdtsc=1, rcu_inlined=2, line=4, cas=-2)
        return self.sum(rdtsc=1 / producers, rcu_inlined=2 / producers, line=2 / producers, cas=-1 / producers)

    def fire(self):
        return self.sum(rdtsc=1, rcu_inlined=1, line=2, cas=-1, cas_pair=1)

    def of(self, workload, producers, key):
        """Returns the floor of a contest's operation, in wall or CPU time (`key`), or None if it has none."""
        if workload == "schedule-cancel":
            pair = self.pair(rdtsc=1)
            return pair and pair / (producers if key == "ns_per_op" else 1)
        if workload == "live-ring":
            return self.ring(producers, key)
        if workload == "fire" and key == "cpu_ns_per_op":
            return self.fire()
        return self.sum(loop_bare=1) if workload.startswith("loop-") else None


def above(mine, floor):
    return [number(floor), f"{number(mine / floor, 1)} ×"] if floor else ["", ""]


class Contest:
    """The rows of one contest by engine. If a row is missing, its targets are left out."""

    def __init__(self, rows, workload, producers=1):
        self.rows = {row["engine"]: row for row in rows if (row["workload"], row["producers"]) == (workload, producers)}
        self.name = f"`{workload}`, {producers} producer{'s' * (producers > 1)}"

    def value(self, engine, key):
        return self.rows.get(engine, {}).get(key)

    def best(self, key, coarse=None):
        """Returns the best other engine. `coarse` limits the choice to engines with the coarse clock (True) or without
        (False). An engine with a CPU time of 0 is left out, because a program's CPU time is only measured in steps."""
        others = [
            (row[key], engine) for engine, row in self.rows.items()
            if engine not in (OURS, OURS_AT, OURS_COARSE) and row[key] and coarse in (None, engine in COARSE)
        ]
        return min(others)[1] if others else None

    def against(self, what, key, other, target, ours=OURS, strict=False, floor=None):
        """Compares our value with another engine's. The ratio must be at most `target`, or below it if `strict`."""
        mine, theirs = self.value(ours, key), self.value(other, key)
        if mine is None or not theirs:
            return []
        ratio = mine / theirs
        met = ratio < target if strict else ratio <= target
        sign = "<" if strict else "≤"
        return [[f"{self.name}: {what}", number(mine), f"{other} {number(theirs)}", number(ratio, 2),
                 f"{sign} {target} ×", "met" if met else f"{number(ratio, 2)} ×", *above(mine, floor)]]

    def limit(self, what, mine, target, unit, ours=OURS, floor=None):
        """Compares our value with a fixed limit. If it is exceeded, the cell shows by which factor."""
        if mine is None or ours not in self.rows or target is None:
            return []
        return [[f"{self.name}: {what}", f"{number(mine)} {unit}", "", "", f"≤ {number(target)} {unit}",
                 "met" if mine <= target else f"{number(mine / target, 2)} × that", *above(mine, floor)]]


def targets_ring(rows, floor):
    one, two = Contest(rows, "live-ring"), Contest(rows, "live-ring", 2)
    for what, key, alone, shared in (("wall", "ns_per_op", 0.8, 0.55), ("CPU", "cpu_ns_per_op", 1.2, 0.6)):
        yield from one.against(f"{what}, against mutex-wheel", key, "mutex-wheel", alone, floor=floor.ring(1, key))
        yield from two.against(what, key, two.best(key), shared, floor=floor.ring(2, key))


def targets_shared(rows, floor):
    one, two = Contest(rows, "schedule-cancel"), Contest(rows, "schedule-cancel", 2)
    best = one.best("ns_per_op")
    pair = floor.pair(rdtsc=1)
    yield from one.against("wall, whatever the clock", "ns_per_op", best, 0.9, floor=pair)
    yield from one.against("wall, no coarse clock", "ns_per_op", one.best("ns_per_op", coarse=False), 0.9, floor=pair)
    yield from one.against("wall, coarse clocks", "ns_per_op", one.best("ns_per_op", coarse=True), 0.9, ours=OURS_COARSE,
                           floor=floor.pair(clock_coarse=1))
    yield from one.against("wall, against Netty", "ns_per_op", "netty-512", 0.35, floor=pair)
    yield from one.against("wall, at a given time", "ns_per_op", best, 0.3, ours=OURS_AT, floor=floor.pair())
    yield from one.limit("wall, at a given time, in ns", one.value(OURS_AT, "ns_per_op"), 14, "ns", ours=OURS_AT, floor=floor.pair())
    yield from two.against("wall", "ns_per_op", two.best("ns_per_op"), 0.3, floor=pair and pair / 2)
    yield from targets_ring(rows, floor)


def targets_fire(rows, floor):
    fire = Contest(rows, "fire")
    lateness = (fire.value(OURS, "lateness_ns") or {}).get("p99")
    least = floor.fire()
    yield from fire.against("CPU, against Netty's large wheel", "cpu_ns_per_op", "netty-65536", 0.5, floor=least)
    yield from fire.limit("CPU", fire.value(OURS, "cpu_ns_per_op"), 130, "ns", floor=least)
    yield from fire.limit("lateness p99", lateness and lateness / 1e6, 20, "ms")


def targets_loop(rows, floor):
    for size in ("1k", "10k", "100k", "1m", "10m"):
        loop = Contest(rows, f"loop-{size}")
        yield from loop.limit("wall", loop.value(OURS, "ns_per_op"), 6, "ns", floor=floor.sum(loop_bare=1))
        for other in ("libev", "libuv"):
            yield from loop.against(f"wall, against {other}", "ns_per_op", other, 1, strict=True)


def targets_light(rows):
    """Returns the targets for lateness: a tick plus a multiple of the oversleep of a bare futex wait in this run."""
    light = Contest(rows, "light")
    bare = {row["workload"]: row["ns_per_op"] for row in rows if row["engine"] == PROBE}
    for key, factor in (("p50", 1.2), ("p99", 2)):
        oversleep = bare.get(f"floor-oversleep-{key}")
        mine = (light.value(OURS, "lateness_ns") or {}).get(key)
        if oversleep is None or mine is None:
            continue
        target = light.value(OURS, "tick_ns") + factor * oversleep
        yield from light.limit(f"lateness {key} (a tick + {factor} × {number(oversleep / 1e3)} us, the oversleep of a bare futex wait)", mine / 1e3, target / 1e3, "us")


def targets(rows):
    floor = Floor(rows)
    lines = [*targets_shared(rows, floor), *targets_fire(rows, floor), *targets_loop(rows, floor), *targets_light(rows)]
    if not lines:
        return []
    head = ["", "tickwheel (ns if no unit is given)", "best other (ns)", "tickwheel ÷ other", "target", "result", "floor (ns)", "tickwheel ÷ floor"]
    return [TARGETS_LEGEND, "", *table(head, lines)]


def lines_of(rows):
    bad = [f"{row['workload']} {row['engine']}" for row in rows if row["lost"] or row["checksum"] != row["checksum_ended"]]
    if bad:
        sys.exit(f"lost, or a sum of ids that differs: {', '.join(bad)}")
    compared = [row for row in rows if row["engine"] != PROBE]
    yield from [machine(rows), ""]
    yield from contests(compared)
    yield from clocks(compared)
    yield from targets(rows)
    versions = {row["engine"]: row["version"] for row in compared}
    yield "Versions: " + "; ".join(f"{engine} {version}" for engine, version in versions.items()) + "."


if __name__ == "__main__":
    main(lines_of, MARKS)
