#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the freeze test stops a thread at every test point of the library, in every public call that can
pass the point.

usage: check_points.py SOURCE_ROOT FREEZE

Compares the points in src/, the public functions in include/, the rows of the freeze test, and the tables of
README.md. Seen to fail with these defects: a point, a row, or a function is missing in one of them.
"""
import pathlib
import re
import subprocess
import sys

NAME = re.compile(r"`([^`]+)`")


def matches(folder, pattern, expression):
    return {name for path in folder.rglob(pattern) for name in re.findall(expression, path.read_text())}


def table(text, heading):
    """Returns the lines of the first table under a heading, as pairs of cells."""
    part = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [(cells[0], cells[1]) for cells in lines[2:]]


def compare(left, left_name, right, right_name):
    for name in sorted(left - right):
        yield f"{left_name} has {name}, {right_name} has not"
    for name in sorted(right - left):
        yield f"{right_name} has {name}, {left_name} has not"


def pairs_of_readme(text):
    for functions, points in table(text, "Which call can pass which point"):
        for function in NAME.findall(functions):
            found = [point for point in NAME.findall(points) if ":" in point]
            yield from ((function, point) for point in found or [None])


def check(root, freeze):
    text = (root / "tests/freeze/README.md").read_text()
    listed = list(pairs_of_readme(text))
    pairs = {f"{function} at {point}" for function, point in listed if point}
    excused = {NAME.findall(cell)[0] for cell, reason in table(text, "Points without a row") if reason.strip()}
    points = matches(root / "src", "*.[ch]", r'TWI_TEST_POINT\("([^"]+)"\)')
    functions = matches(root / "include", "*.h", r"TW_API[^;]*?\b(tw_\w+)\(")
    output = subprocess.run([freeze, "list"], check=True, capture_output=True, text=True).stdout
    rows = [" at ".join(line.split()) for line in output.splitlines()]
    if not points or not functions or not rows:
        yield "no points, functions or rows found"
    if len(rows) != len(set(rows)):
        yield "a row stands twice"
    yield from compare(pairs, "README.md", set(rows), "rows.c")
    yield from compare(functions, "include/", {function for function, _ in listed}, "README.md")
    frozen = {point for _, point in listed if point}
    yield from compare(points, "src/", frozen | excused, "README.md")
    yield from (f"{point} has rows and an excuse" for point in sorted(frozen & excused))


def main():
    wrong = list(check(pathlib.Path(sys.argv[1]), sys.argv[2]))
    print("\n".join(wrong) if wrong else "points: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
