#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a text file as a C array. usage: embed.py TEXT NAME OUTPUT"""
import pathlib
import sys

text, name, output = sys.argv[1:]
lines = pathlib.Path(text).read_text(encoding="ascii").splitlines(keepends=True)
with open(output, "w", encoding="ascii") as out:
    out.write(f"/* Made of {pathlib.Path(text).name}. */\n#include \"durable/postgres/schema.h\"\n\nconst char *const {name}[] = {{\n")
    for line in lines:
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        out.write(f'\t"{escaped}",\n')
    out.write("\t(const char *)0,\n};\n")
