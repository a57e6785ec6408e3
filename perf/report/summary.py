#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the chart of README.md from the tables of docs/perf.md, section "Beside others". It measures nothing.

usage: summary.py docs/perf.md > docs/pictures/perf/summary.svg

Each engine has a row, with a dot in each of three panels: schedule and cancel by one thread, the same by two threads,
and firing. All axes begin at zero. A dot beyond the end of its axis becomes an arrow with its figure.
"""
import pathlib
import re
import sys

from compare_tables import MARKS, OURS
from svg import COLOURS, GRID, PLAIN, SMALL, SOFT, WIDTH, Picture, figure, linear

# Each name in the chart, with the clock that a schedule reads (perf/README.md), and its engines in docs/perf.md. The
# chart shows the best of these engines.
ENGINES = [
    ("tickwheel (counter)", ["tickwheel"]),
    ("tickwheel (coarse)", ["tickwheel-coarse"]),
    ("mutex + heap (coarse)", ["mutex-heap"]),
    ("mutex + wheel (coarse)", ["mutex-wheel"]),
    ("mutex + libevent (coarse)", ["libevent-locked"]),
    ("DPDK (counter)", ["dpdk"]),
    ("Netty (monotonic)", ["netty-512", "netty-65536"]),
    ("JDK (monotonic)", ["jdk"]),
    ("Go (monotonic)", ["go"]),
]
WALL, SPREAD, CPU = 1, 2, 4
# For each panel: its heading, its contest in docs/perf.md, the column, and the end of the axis.
PANELS = [
    ("pair, 1 thread: wall ns", "`schedule-cancel`, 1 producer,", WALL, 300),
    ("pair, 2 threads: wall ns", "`schedule-cancel`, 2 producers,", WALL, 300),
    ("schedule and fire: CPU ns", "`fire`, 1 producer,", CPU, 1000),
]
TITLE = "Schedule and cancel, schedule and fire: nanoseconds for each timeout"
ABOUT = (
    "Less is better. Dots: {medians}; lines: from the least to the most, for wall time. Pair: schedule, and cancel at once. "
    "CPU time is that of all threads. In brackets: the clock that a schedule reads; the coarse one is the cheapest. Netty: the better of its two wheels."
)
ROW, NAMES, GAP, VALUE_ROOM = 19, 180, 16, 52
OURS_COLOUR, PEER_COLOUR = COLOURS[0], COLOURS[5]


def number(cell):
    return float(cell.replace(",", ""))


def contest(text, heading):
    """Returns the table after that heading, as a dict from an engine to the cells of its row."""
    table = text.partition(f"\n{heading}")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row for row in rows}


def best(rows, engines, column):
    return min((rows[engine] for engine in engines), key=lambda row: number(row[column]))


def draw_row(picture, axis, y, row, column):
    value, end = number(row[column]), axis.ticks[-1][0]
    ours = row[0].startswith(OURS)
    if value > end:
        picture.text(axis.end, y + 4, f"{figure(value)} →", SMALL, anchor="end")
        return
    colour, right = OURS_COLOUR if ours else PEER_COLOUR, value
    if column == WALL:
        left, right = (number(part) for part in row[SPREAD].split(" – "))
        picture.line([(axis.at(left), y), (axis.at(right), y)], colour, 1.5)
    picture.dot(axis.at(value), y, colour, 4.5)
    picture.text(axis.at(right) + 8, y + 4, figure(value), SMALL, bold=ours)


def draw_panel(picture, axis, title, top):
    bottom = top + ROW * len(ENGINES)
    picture.text(axis.begin, top - 8, title, PLAIN, bold=True)
    for value, label in axis.ticks:
        picture.line([(axis.at(value), top), (axis.at(value), bottom)], SOFT if value == 0 else GRID)
        picture.text(axis.at(value), bottom + 15, label, SMALL, anchor="middle", colour=SOFT)


def chart(page):
    text = page.partition(MARKS[0])[2]
    machine = text.strip().splitlines()[0]
    picture = Picture(TITLE, ABOUT.format(medians=re.search(r"medians of \d+", text).group()))
    top = picture.below + 34
    middles = [top + ROW * (at + 0.5) for at in range(len(ENGINES))]
    for y, (name, _) in zip(middles, ENGINES):
        picture.text(NAMES - 10, y + 4, name, SMALL, anchor="end", bold=name.startswith(OURS))
    width = (WIDTH - 10 - NAMES) / len(PANELS)
    for at, (title, heading, column, end) in enumerate(PANELS):
        axis = linear(title, end).lies(NAMES + width * at, NAMES + width * (at + 1) - GAP - VALUE_ROOM)
        draw_panel(picture, axis, title, top)
        rows = contest(text, heading)
        for y, (_, engines) in zip(middles, ENGINES):
            draw_row(picture, axis, y, best(rows, engines, column), column)
    picture.below = top + ROW * len(ENGINES) + 18
    picture.foot(f"{machine} All engines: docs/perf.md.")
    return picture.svg()


if __name__ == "__main__":
    sys.stdout.write(chart(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")))
