#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes text files as C arrays of lines. usage: embed.py OUTPUT TEXT...

The array of NAME.sql is twi_postgres_NAME.
"""
import pathlib
import sys

output, *texts = sys.argv[1:]
with open(output, "w", encoding="ascii") as out:
    out.write("/* Made by embed.py. */\n#include \"durable/postgres/schema.h\"\n")
    for text in map(pathlib.Path, texts):
        out.write(f"\nconst char *const twi_postgres_{text.stem}[] = {{\n")
        for line in text.read_text(encoding="ascii").splitlines(keepends=True):
            escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
            out.write(f'\t"{escaped}",\n')
        out.write("\t(const char *)0,\n};\n")
