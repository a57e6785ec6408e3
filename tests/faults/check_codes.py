#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the tour's table of calls (codes.c). It must have every function of the headers, with the codes that
docs/errors.md gives for it. The tour must make every call. usage: check_codes.py SOURCE_ROOT
"""
import pathlib
import re
import sys

ALIASES = {"LOOPS", "MAKES_THREAD", "SCHEDULES"}


def declared(root):
    text = "".join(path.read_text() for path in sorted((root / "include/tickwheel").glob("*.h")))
    return set(re.findall(r"^TW_API [^(]*[ *](tw_\w+)\(", text, re.M))


def expand(text, macros):
    codes = set(re.findall(r"CODE_(\w+)", text))
    for name in re.findall(r"\b[A-Z_]+\b", text):
        if name in macros:
            codes |= expand(macros[name], macros)
    return codes


def tabled(source):
    flat = source.replace("\\\n", " ")
    macros = {name: body for name, body in re.findall(r"#define (\w+)\s+(.*)", flat)
              if name in ALIASES}
    rows = re.findall(r'\[(CALL_\w+)\] = \{"(tw_\w+)", (.*)\},', source)
    return {name: (call, expand(codes, macros)) for call, name, codes in rows}


def documented(root):
    lines = (root / "docs/errors.md").read_text().splitlines()
    head = next(line for line in lines if line.startswith("| call |"))
    codes = [cell.strip() for cell in head.strip("|").split("|")][1:]
    table = {}
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(codes) + 1 or not cells[0].startswith("`tw_"):
            continue
        for name in re.findall(r"`(tw_\w+)`", cells[0]):
            table[name] = {code for code, mark in zip(codes, cells[1:]) if mark}
    return table


def complaints(root):
    folder = root / "tests/faults/tour"
    table = tabled((folder / "codes.c").read_text())
    documents = documented(root)
    functions = declared(root)
    steps = "".join((folder / name).read_text() for name in
                    ("tour.c", "steps_begin.c", "steps_use.c", "steps_end.c", "callbacks.c", "batches.c", "keys.c", "groups.c", "scaled.c", "scopes.c", "retries.c"))
    if len(functions) < 20:
        yield f"only {len(functions)} functions found in the headers"
    for name in sorted(functions ^ set(table)):
        yield f"{name} is not in both the headers and codes.c"
    for name in sorted(functions & set(table)):
        call, codes = table[name]
        if codes != documents.get(name):
            yield f"{name}: codes.c has {sorted(codes)}, docs/errors.md {sorted(documents.get(name, []))}"
        if not re.search(rf"\b{name}\(", steps) or call not in steps:
            yield f"the tour does not call {name}"


def main():
    found = list(complaints(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "every call is in the tour, with its documented codes")
    return 1 if found else 0


sys.exit(main())
