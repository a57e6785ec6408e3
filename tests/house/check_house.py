#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the structure of the sources: folders, includes, calls, sizes. A folder of src is called a room.

usage: check_house.py SOURCE_ROOT [--picture]

    units      at most 16 in a folder of src, perf and tests (a .c with its .h is one)
    includes   in src, a room includes only rooms before it in the list, and no file includes itself by others
    calls      no circle of calls between the units of src
    sizes      functions of src: median at most 10 lines, none over 80; worker.h at most 150
    paths      at most 3 functions schedule and at most 3 cancel a pending timeout; each of them fires
               the trace point of its verb (a cancel during a run only marks the chain)

With --picture it prints each unit of src with the units that it calls.
"""
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "edges"))

from csource import Source  # noqa: E402

UNITS_MOST = 16
MEDIAN_MOST, LINES_MOST = 10, 80
WORKER_MOST = 150
PATHS_MOST = 3
# Verb -> its trace point.
PATHS = {
    "schedule": re.compile(r"TWI_PROBE5\(schedule,"),
    "cancel": re.compile(r"TWI_PROBE4\(cancel,(?![^;]*TWI_PROBE_RUNNING)"),
}
# Each room may include those before it. The layers above may not include each other.
ROOMS = (
    "base", "memory", "queue", "thread", "clock", "timeout", "wheel", "worker", "ingress", "expiry", "turn", "engine", "stats", "api",
)
LAYERS = {
    "group": ("base", "memory", "thread", "expiry", "engine", "stats"),
    "keyed": ("base", "memory", "thread"),
    "retry": ("base",),
    "scaled": ("base", "memory", "thread", "clock", "timeout", "worker", "expiry", "turn", "engine"),
    "scope": ("base", "memory", "thread", "timeout", "worker", "expiry", "engine", "api"),
    "executors": ("base", "queue"),
    "hosts": ("base",),
    "durable": ("base", "queue", "thread", "stats"),
}
CODE = {".c", ".h", ".cc", ".py"}
INCLUDE = re.compile(r'^#include "([\w/]+)\.h"', re.M)


def folders(root):
    for top in ("src", "perf", "tests"):
        yield root / top
        yield from (path for path in sorted((root / top).rglob("*")) if path.is_dir() and path.name != "__pycache__")


def check_units(root):
    for folder in folders(root):
        units = {path.stem for path in folder.iterdir() if path.suffix in CODE}
        if len(units) > UNITS_MOST:
            yield f"{folder.relative_to(root)}: {len(units)} units, more than {UNITS_MOST}"


def circles(edges):
    """Returns the strongly connected parts of more than one node (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node):]
            del stack[-len(part):]
            if len(part) > 1:
                found.append(part)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def allowed(room):
    return LAYERS[room] if room in LAYERS else ROOMS[: ROOMS.index(room)]


def check_includes(root, sources):
    edges = defaultdict(set)
    for path, source in sources.items():
        room = path.parts[0]
        if room not in LAYERS and room not in ROOMS:
            yield f"src/{path}: {room} is not in the list of rooms"
            continue
        for name in INCLUDE.findall(source.text):
            other = name.split("/")[0]
            if path.suffix == ".h":
                edges[str(path.with_suffix(""))].add(name)
            if other != room and other not in allowed(room):
                yield f"src/{path}: includes {name}.h, which is not below {room}"
    for circle in circles(edges):
        yield f"a circle of includes: {', '.join(circle)}"


def calls_of(sources):
    """Returns unit -> the units that its functions call."""
    home = {}
    for path, source in sources.items():
        for function in source.functions:
            if path.suffix == ".c" or function.name not in home:
                home[function.name] = str(path.with_suffix(""))
    edges = defaultdict(set)
    for path, source in sources.items():
        unit = str(path.with_suffix(""))
        comments = [(start, end) for start, end, _ in source.comments]
        for function in source.functions:
            for match in re.finditer(r"\b(twi?_\w+)\s*\(", source.text[slice(*function.span)]):
                at = function.span[0] + match.start()
                other = home.get(match[1], unit)
                if other != unit and not any(start <= at < end for start, end in comments):
                    edges[unit].add(other)
    return edges


def check_calls(_root, sources):
    for circle in circles(calls_of(sources)):
        yield f"a circle of calls: {', '.join(circle)}"


def check_sizes(root, sources):
    lines = {
        f"src/{path} {function.name}": source.text.count("\n", *function.body.span) - 1
        for path, source in sources.items()
        for function in source.functions
    }
    median = statistics.median(lines.values())
    if median > MEDIAN_MOST:
        yield f"the median function has {median} lines, more than {MEDIAN_MOST}"
    for name, count in lines.items():
        if count > LINES_MOST:
            yield f"{name}: {count} lines, more than {LINES_MOST}"
    worker = (root / "src/worker/worker.h").read_text().count("\n")
    if worker > WORKER_MOST:
        yield f"src/worker/worker.h: {worker} lines, more than {WORKER_MOST}"


def check_paths(_root, sources):
    for verb, point in PATHS.items():
        found = [
            f"src/{path} {function.name}"
            for path, source in sources.items()
            for function in source.functions
            if point.search(source.text, *function.body.span)
        ]
        if not 1 <= len(found) <= PATHS_MOST:
            yield f"{len(found)} functions {verb}, and there may be {PATHS_MOST}: {', '.join(found)}"


def main():
    root = Path(sys.argv[1])
    paths = sorted((root / "src").rglob("*.[ch]"))
    sources = {path.relative_to(root / "src"): Source(str(path), path.read_text()) for path in paths}
    if "--picture" in sys.argv:
        for unit, others in sorted(calls_of(sources).items()):
            print(f"{unit}: {', '.join(sorted(others))}")
        return 0
    wrong = [*check_units(root)]
    for check in (check_includes, check_calls, check_sizes, check_paths):
        wrong += check(root, sources)
    print("\n".join(wrong) if wrong else f"the house is in order: {len(sources)} files, {len(calls_of(sources))} units that call others")
    return 1 if wrong or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
