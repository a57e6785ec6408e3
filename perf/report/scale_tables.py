#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the tables of docs/perf.md, section Scale, from the JSON of `tickwheel-perf scale --json FILE`.

usage: scale_tables.py FILE              to standard output
       scale_tables.py FILE PAGE         into the page, between its two marks
"""
import json
import pathlib
import re
import sys

MARKS = "<!-- scale: begin -->", "<!-- scale: end -->"


def number(value, digits=1):
    return "" if value is None else f"{value:,.{digits}f}"


def table(head, lines):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(line) + " |" for line in lines), ""]


def without_empty(head, lines):
    """Returns the table without the columns in which each cell is empty."""
    kept = [at for at in range(len(head)) if any(line[at] for line in lines)]
    return table([head[at] for at in kept], [[line[at] for at in kept] for line in lines])


def machine(rows):
    """Describes when, on which machine and with which build the rows were measured. Several runs give a span of
    dates."""
    dates = sorted({row["date"] for row in rows})
    row = rows[0]
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (
        f"{when}; {row['cpu']}, {row['cpus']} CPU{'s' * (row['cpus'] > 1)}, {row['memory_bytes'] / 2**30:.0f} GiB; "
        f"{row['kernel'].partition('-')[0]}; {row['compiler']}, {row['flags']}."
    )


def name(row):
    return row["workload"].removeprefix(f"scale-{row['part']}-")


def spread(row):
    return f"{number(row['ns_per_op_min'])} – {number(row['ns_per_op_max'])}"


def lateness(row):
    if not row["lateness_samples"]:
        return ["", "", ""]
    return [number(row["lateness_ns"][key] / 1e6, 3) for key in ("p50", "p99", "max")]


def caches(rows):
    lines = [[name(row).removeprefix("scale-walk-"), f"{row['at'] >> 10:,} KiB", number(row["ns_per_op"])] for row in rows]
    return table(["read in", "set", "ns"], lines)


def pending(rows):
    lines = [
        [
            f"`{name(row)}`", number(row["ns_per_op"]), number(row.get("predicted_ns")), number(row["cpu_ns_per_op"]),
            number(row.get("predicted_cpu_ns")), spread(row), number(row["bytes_per_pending"]), str(row["repeat"]),
        ]
        for row in rows
    ]
    return table(["pairs", "wall ns", "wall, predicted", "CPU ns", "CPU, predicted", "wall, least – most", "bytes per pending", "repeats"], lines)


def producers(rows):
    lines = [
        [str(row["producers"]), number(row["ns_per_op"]), number(row.get("predicted_ns")), spread(row), number(row["cpu_ns_per_op"]), *lateness(row)]
        for row in rows
    ]
    return table(["producers", "wall ns", "predicted", "least – most", "CPU ns", "lateness p50, ms", "p99", "worst"], lines)


def curve(rows):
    lines = [
        [f"`{name(row)}`", number(row["ns_per_op"]), number(row["cpu_ns_per_op"]), spread(row), number(row["bytes_per_pending"]), *lateness(row)[:2]]
        for row in rows
    ]
    return without_empty(["point", "wall ns", "CPU ns", "wall, least – most", "bytes per pending", "lateness p50, ms", "p99"], lines)


def shapes(rows):
    lines = [[f"`{name(row)}`", number(row["ns_per_op"]), number(row["cpu_ns_per_op"]), number(row["over_mean"], 2), number(row.get("predicted_cpu_ns"))] for row in rows]
    return table(["operation", "wall ns", "CPU ns", "CPU divided by that of `-mean`", "CPU, predicted"], lines)


PARTS = {
    "caches": ("The machine, medians of 3:", caches),
    "pending": ("`pending`, a pair of schedule and cancel while so many timeouts are pending:", pending),
    "producers": ("`producers`, pairs of all producers together, while one schedule in 4,096 is left to fire:", producers),
    "slots": ("`slots`, the hashed wheel with so many slots. `random`: cancel a random one of a million pending timeouts and schedule another; `fire`:", curve),
    "tick": ("`tick`, `fire` of a million timeouts for 1 ms to 1 s, with a tick of such length:", curve),
    "range": ("`range`, timeouts for such times: `fire`, and a `live-ring` with a million live:", curve),
    "shapes": ("`shapes`, a million timeouts with such deadlines or in such an order:", shapes),
}


def lines_of(rows):
    bad = [row["workload"] for row in rows if row["lost"] or row["early"] or row["checksum"] != row["checksum_ended"]]
    if bad:
        sys.exit(f"lost, early, or a sum of ids that differs: {', '.join(bad)}")
    yield from [machine(rows), ""]
    for part, (title, make) in PARTS.items():
        of_part = [row for row in rows if row.get("part") == part]
        if of_part:
            yield from [title, "", *make(of_part)]


def page_fill(page, marks, text):
    before, after = page.read_text(), "\n".join([marks[0], text, marks[1]])
    changed, count = re.subn(f"{marks[0]}.*{marks[1]}", lambda _: after, before, flags=re.S)
    if count != 1:
        sys.exit(f"{page}: not one place for the tables")
    page.write_text(changed)


def main(make, marks):
    rows = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    text = "\n".join(make(rows)).rstrip("\n")
    if len(sys.argv) == 2:
        print(text)
    else:
        page_fill(pathlib.Path(sys.argv[2]), marks, text)


if __name__ == "__main__":
    main(lines_of, MARKS)
