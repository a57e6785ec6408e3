#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of docs/perf.md, section "Beside others", from the JSON of `tickwheel-perf compare --json FILE`.

usage: compare_tables.py FILE            to standard output
       compare_tables.py FILE PAGE       into the page, between its two marks
"""
import itertools
import sys

from scale_tables import main, number, spread, table

MARKS = "<!-- compare: begin -->", "<!-- compare: end -->"


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


def lines_of(rows):
    bad = [f"{row['workload']} {row['engine']}" for row in rows if row["lost"] or row["checksum"] != row["checksum_ended"]]
    if bad:
        sys.exit(f"lost, or a sum of ids that differs: {', '.join(bad)}")
    head = ["engine", "wall ns", "least – most", "ratio", "CPU ns", "ratio", "lateness p50, us", "p99"]
    for (workload, producers, ops, repeat), group in itertools.groupby(rows, contest):
        yield from [f"`{workload}`, {producers} producer{'s' * (producers > 1)}, {ops:,} operations, medians of {repeat}:", ""]
        yield from table(head, [line(row) for row in group])
    versions = {row["engine"]: row["version"] for row in rows}
    yield "Versions: " + "; ".join(f"{engine} {version}" for engine, version in versions.items()) + "."


if __name__ == "__main__":
    main(lines_of, MARKS)
