#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes Lua scripts as C arrays of their lines.

usage: embed.py OUTPUT HEADER PREFIX SCRIPT...
   The header declares prefix_lines[PREFIX_LINES_COUNT], and names for the scripts: PREFIX_SCRIPT.
"""
import pathlib
import sys

output, header, prefix, *paths = sys.argv[1:]
with open(output, "w", encoding="ascii") as out:
    out.write(f'#include "{header}"\n')
    names = []
    for path in map(pathlib.Path, paths):
        names.append(path.stem)
        out.write(f"\n/* Made of {path.name}. */\nstatic const char *const lines_{path.stem}[] = {{\n")
        for line in path.read_text(encoding="ascii").splitlines(keepends=True):
            escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
            out.write(f'\t"{escaped}",\n')
        out.write("\t(const char *)0,\n};\n")
    out.write(f"\nconst char *const *const {prefix}_lines[{prefix.upper()}_LINES_COUNT] = {{\n")
    for name in names:
        out.write(f"\t[{prefix.upper()}_{name.upper()}] = lines_{name},\n")
    out.write("};\n")
