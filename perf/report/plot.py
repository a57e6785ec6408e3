#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws pictures (SVG) of what tickwheel-perf has measured, from the JSON of `scale`, `compare` and `run`.

usage: tickwheel-perf plot RESULT.json... [--output FOLDER]

Writes each picture for which the rows have data into the folder (by default the current one), and prints its name:

    pending.svg             the cost of a pair while more and more are pending scale pending
    producers.svg           pairs a second by more and more producers         scale producers
    lateness-WORKLOAD.svg   the lateness of each share of the timeouts        compare light fire, run light
    peers-WORKLOAD.svg      the engines side by side, and the floor           compare schedule-cancel ...

exit code: 0 good; 1 a file cannot be written, or a row reports a loss; 2 the input is wrong, or there is nothing in it
to draw
"""
import argparse
import json
import math
import pathlib
import sys

from compare_tables import OURS, PROBE, Floor
from scale_tables import machine
from svg import (
    COLOURS, DASHES, GRID, PLAIN, SMALL, SOFT, WIDTH, Axis, Picture, Series, figure, linear, lines, logarithmic,
)

GOOD, FAILED, BAD_INPUT = 0, 1, 2
MACHINE = {"cpu": str, "cpus": int, "memory_bytes": int, "kernel": str, "compiler": str, "flags": str}
TIME = (int, float, type(None))
NEEDED = {
    "workload": str, "engine": str, "producers": int, "repeat": int, "ns_per_op": TIME, "cpu_ns_per_op": TIME, "lateness_ns": dict,
    "lateness_samples": int, "lost": int, "checksum": str, "checksum_ended": str, "date": str, **MACHINE,
}
PERCENTILES = {"p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
FLOOR_COLOUR, OURS_COLOUR, PEER_COLOUR = "#a40e26", "#0550ae", "#8c959f"


class Rejected(Exception):
    """An error that ends the program: a message, and its exit code."""

    def __init__(self, message, code=BAD_INPUT):
        super().__init__(message)
        self.code = code


def row_read(line, where):
    try:
        row = json.loads(line)
    except ValueError as error:
        raise Rejected(f"{where}: no JSON: {error}") from None
    wrong = [key for key, kind in NEEDED.items() if not (isinstance(row, dict) and key in row and isinstance(row[key], kind))]
    if wrong:
        raise Rejected(f"{where}: no row of tickwheel-perf: without a good {', '.join(wrong[:3])}")
    if row["lost"] or row["checksum"] != row["checksum_ended"]:
        raise Rejected(f"{where}: {row['workload']}, {row['engine']}: lost, or a sum of ids that differs", FAILED)
    return row


def rows_read(path):
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected(f"{path}: {error}") from None
    rows = [row_read(line, f"{path}:{i}") for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not rows:
        raise Rejected(f"{path}: empty")
    return rows


def one_machine(rows):
    if len({tuple(row[key] for key in MACHINE) for row in rows}) > 1:
        raise Rejected("the rows come from different machines or builds, which one picture cannot compare")


def medians(rows):
    """Describes the number of repeats; if it differs between rows, from the least to the most."""
    counts = sorted({row["repeat"] for row in rows})
    if counts == [1]:
        return "single runs"
    return f"medians of {counts[0]}" if len(counts) == 1 else f"medians of {counts[0]} to {counts[-1]}"


def finished(picture, rows):
    picture.foot(machine(rows))
    return picture.svg()


def count_label(value):
    for power, letter in ((9, " G"), (6, " M"), (3, " k")):
        if value >= 10**power:
            return f"{value / 10**power:g}{letter}"
    return f"{value:g}"


def time_label(value_ns):
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value_ns >= size:
            return f"{value_ns / size:g} {unit}"
    return f"{value_ns:g} ns"


def pending(rows):
    """Draws the cost of fresh and of random pairs, in wall and CPU time."""
    rows = [row for row in rows if row.get("part") == "pending"]
    series = []
    for kind, name, colour in (("random", "any of them", COLOURS[1]), ("fresh", "a fresh one", COLOURS[0])):
        of_kind = sorted((row for row in rows if row["workload"].startswith(f"scale-pending-{kind}-")), key=lambda row: row["at"])
        for key, what, dashes in (("cpu_ns_per_op", "CPU", "6 3"), ("ns_per_op", "wall", "")):
            points = [(row["at"], row[key]) for row in of_kind if row[key] is not None]
            if points:
                series.append(Series(f"{name}, {what}", points, colour, dashes, bold=kind == "fresh" and not dashes))
    if not series:
        return {}
    picture = Picture("What a pair costs beside ever more pending", f"Schedule one and cancel one, with one producer: the fresh one at once, "
                      f"or any of those that are pending. Wall time of the producer, CPU time of it and the worker; {medians(rows)}.")
    sizes = [x for one in series for x, _ in one.points]
    across = logarithmic("timeouts pending (log)", min(sizes), max(sizes), count_label)
    lines(picture, across, linear("ns per pair", max(y for one in series for _, y in one.points)), series)
    return {"pending": finished(picture, rows)}


def producers(rows):
    rows = sorted((row for row in rows if row.get("part") == "producers" and row["ns_per_op"]), key=lambda row: row["producers"])
    if not rows:
        return {}
    measured = Series("measured", [(row["producers"], 1e3 / row["ns_per_op"]) for row in rows], COLOURS[0], bold=True)
    predicted = Series("predicted", [(row["producers"], 1e3 / row["predicted_ns"]) for row in rows if row.get("predicted_ns")], COLOURS[1], "6 3")
    series = [one for one in (measured, predicted) if one.points]
    picture = Picture("Pairs a second by ever more producers", f"Schedule and cancel, as fast as possible, all producers together, beside a trickle that fires; "
                      f"{rows[0]['cpus']} processors for producers and worker; bars from the least to the most; {medians(rows)}. Predicted: from one producer (docs/perf.md, Scale).")
    counts = sorted({row["producers"] for row in rows})
    across = Axis("producers (log)", counts[0], max(counts[-1], counts[0] * 2), [(count, str(count)) for count in counts], math.log2)
    spans = [(row["producers"], [1e3 / row[key] for key in ("ns_per_op_max", "ns_per_op_min") if row.get(key)]) for row in rows]
    most = max(y for values in ([y for one in series for _, y in one.points], *(span for _, span in spans)) for y in values)
    up = linear("million pairs per second", most)
    lines(picture, across, up, series)
    for x, span in spans:
        picture.line([(across.at(x), up.at(y)) for y in span], COLOURS[0], 1.5)
    return {"producers": finished(picture, rows)}


def lateness_points(row):
    """Returns the points (share, lateness) for which there are enough samples. The last point is the latest of all."""
    samples, late = row["lateness_samples"], row["lateness_ns"]
    points = [(share, late[name]) for name, share in PERCENTILES.items() if late.get(name) is not None and samples * (1 - share) >= 1]
    if late.get("max") is not None and samples > 1:
        points.append((1 - 1 / samples, late["max"]))
    return sorted((share, max(value, 1e3)) for share, value in points)


def lateness_series(rows):
    order = sorted(rows, key=lambda row: (row["engine"] != OURS, row["lateness_ns"]["p50"]))
    for i, row in enumerate(order):
        yield Series(row["engine"], lateness_points(row), COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)], bold=row["engine"] == OURS)


def nines(share):
    return -math.log10(1 - share)


def lateness_of(workload, rows):
    count = min(row["lateness_samples"] for row in rows)
    ticks = {row["tick_ns"] for row in rows if row["engine"] == OURS and row.get("tick_ns")}
    tick = f" tickwheel's tick is {time_label(ticks.pop())}." if len(ticks) == 1 else ""
    picture = Picture(f"Lateness: {workload}", f"How long after its deadline a callback began, for each share of the timeouts; the last point is the latest of all. "
                      f"{count:,} samples or more of each engine, {rows[0]['repeat']} repeats taken together; less than 1 µs is drawn as that.{tick}")
    series = list(lateness_series(rows))
    values = [y for one in series for _, y in one.points]
    most = max(x for one in series for x, _ in one.points)
    shares = [share for share in (0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999) if share <= most or nines(share) < nines(most) + 0.3]
    across = Axis("at most so late: % of the timeouts (more nines to the right)", 0, max(most, shares[-1]), [(share, f"{share * 100:g}") for share in shares], nines)
    lines(picture, across, logarithmic("lateness (log)", min(values), max(values), time_label), series, height=max(330, 18 * len(series)))
    return finished(picture, rows)


def lateness(rows):
    late = [row for row in rows if row["lateness_samples"] > 1 and row["lateness_ns"].get("p50") is not None and "part" not in row and "trace" not in row]
    workloads = dict.fromkeys(row["workload"] for row in late)
    of = {workload: {row["engine"]: row for row in late if row["workload"] == workload} for workload in workloads}
    return {f"lateness-{workload}": lateness_of(workload, list(engines.values())) for workload, engines in of.items()}


class Panel:
    """One contest: its engines with their wall time, or for `fire` with their CPU time."""

    def __init__(self, rows, floor):
        self.workload, self.producers = rows[0]["workload"], rows[0]["producers"]
        self.key = "cpu_ns_per_op" if self.workload == "fire" else "ns_per_op"
        self.rows = {row["engine"]: row for row in rows if row[self.key]}
        self.floor = floor.of(self.workload, self.producers, self.key)
        self.most = max((row[self.key] for row in self.rows.values()), default=0)
        self.least = min((row[self.key] for row in self.rows.values()), default=0)

    def name(self):
        return f"{self.workload}, {self.producers} producer{'s' * (self.producers > 1)}"


BAR, DOT, PANEL_GAP, NAMES, VALUE_ROOM = 18, 4.5, 40, 150, 62


def panel_axis(panels, title):
    """Returns one axis for all panels of a picture, so that they can be compared. It is logarithmic if bars would
    vanish."""
    most = max(panel.most for panel in panels)
    least = min(min(panel.least, panel.floor or panel.least) for panel in panels)
    if most / least > 20:
        return logarithmic(f"{title} (log)", least / 1.2, most, lambda value: f"{value:,g}")
    return linear(title, most)


def panel_marks(picture, axis, panel, places):
    """Draws bars from zero, or dots on a logarithmic axis, because it has no zero from which a bar could begin."""
    for y, row in places:
        colour = OURS_COLOUR if row["engine"].startswith(OURS) else PEER_COLOUR
        if axis.way is math.log10:
            picture.dot(axis.at(row[panel.key]), y + BAR / 2 - 0.5, colour, DOT)
        else:
            picture.bar(axis.begin, y + 2, max(axis.at(row[panel.key]) - axis.begin, 1), BAR - 5, colour)


def panel_values(picture, axis, panel, places):
    for y, row in places:
        picture.text(axis.at(row[panel.key]) + DOT + 4.5, y + BAR - 6, figure(row[panel.key]), SMALL, bold=row["engine"] == OURS, over=True)


def panel_floor(picture, axis, panel, top, bottom):
    if panel.floor:
        x = axis.at(panel.floor)
        picture.line([(x, top), (x, bottom)], FLOOR_COLOUR, 1.6, "5 3")
        picture.text(x, top - 4, f"floor {figure(panel.floor)}", SMALL, colour=FLOOR_COLOUR)


def panel_draw(picture, axis, panel, engines, top):
    bottom = top + BAR * len(engines)
    picture.text(axis.begin, top - 22, panel.name(), PLAIN, bold=True)
    for value, label in axis.ticks:
        picture.line([(axis.at(value), top), (axis.at(value), bottom)], GRID)
        picture.text(axis.at(value), bottom + 15, label, SMALL, anchor="middle", colour=SOFT)
    places = [(top + BAR * i, panel.rows[engine]) for i, engine in enumerate(engines) if engine in panel.rows]
    panel_marks(picture, axis, panel, places)
    panel_floor(picture, axis, panel, top, bottom)
    panel_values(picture, axis, panel, places)
    picture.text((axis.begin + axis.end) / 2, bottom + 33, axis.title, SMALL, anchor="middle", colour=SOFT)


def peers_of(workload, panels, rows):
    time = "CPU time of all threads" if panels[0].key == "cpu_ns_per_op" else "Wall time over the operations of all producers together"
    floors = " The dashed line is the floor: what the machine's parts of one operation of tickwheel cost in the same run." if any(panel.floor for panel in panels) else ""
    picture = Picture(f"Engines side by side: {workload}", f"{time}; less is better; {medians(rows)}.{floors}")
    engines = sorted({engine for panel in panels for engine in panel.rows}, key=lambda engine: next(panel.rows[engine][panel.key] for panel in panels if engine in panel.rows))
    across = min(len(panels), 2)
    width = (WIDTH - 20 - NAMES - PANEL_GAP * (across - 1)) / across
    axis = panel_axis(panels, "ns per operation")
    for i, panel in enumerate(panels):
        if i % across == 0:
            top = picture.below + 50
            for j, engine in enumerate(engines):
                picture.text(NAMES - 8, top + BAR * j + BAR - 6, engine, SMALL, anchor="end", bold=engine == OURS)
            picture.below = top + BAR * len(engines) + 36
        begin = NAMES + (width + PANEL_GAP) * (i % across)
        panel_draw(picture, axis.lies(begin, begin + width - VALUE_ROOM), panel, engines, top)
    return finished(picture, rows)


def peers(rows):
    floor = Floor(rows)
    contests = {}
    for row in rows:
        if row["engine"] != PROBE and row.get("ratio") is not None and row["workload"] != "light":
            contests.setdefault((row["workload"], row["producers"]), []).append(row)
    families = {}
    for (workload, _), of_contest in contests.items():
        panel = Panel(of_contest, floor)
        if len(panel.rows) > 1:
            families.setdefault("loop" if workload.startswith("loop-") else workload, []).append((panel, of_contest))
    return {f"peers-{name}": peers_of(name, [panel for panel, _ in members], [row for _, some in members for row in some]) for name, members in families.items()}


def pictures(rows):
    one_machine(rows)
    found = {**pending(rows), **producers(rows), **lateness(rows), **peers(rows)}
    if not found:
        raise Rejected("nothing to draw: no row of scale (pending, producers) or compare, and none with lateness")
    return found


def write(found, folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            path = folder / f"{name}.svg"
            path.write_text(text, encoding="utf-8")
            print(path)
    except OSError as error:
        raise Rejected(str(error), FAILED) from None


def main():
    parser = argparse.ArgumentParser(prog="tickwheel-perf plot", description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), metavar="FOLDER")
    asked = parser.parse_args()
    try:
        write(pictures([row for path in asked.results for row in rows_read(path)]), asked.output)
    except Rejected as rejected:
        print(f"tickwheel-perf: plot: {rejected}", file=sys.stderr)
        return rejected.code
    return GOOD


if __name__ == "__main__":
    sys.exit(main())
