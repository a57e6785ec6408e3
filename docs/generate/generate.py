#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the manual from the comments of the public headers.

usage: generate.py names HEADER...                             the names of all pages
       generate.py man FOLDER VERSION DATE PERF_CLI HEADER...  the pages, into a folder

PERF_CLI is perf/cli.c, or `-` for no page of tickwheel-perf. Whatever is wrong with a comment ends the
program with a message and code 1.
"""
import pathlib
import sys

import headers
import man
import usage


def write(folder, name, lines):
    (folder / name).write_text("\n".join(lines) + "\n", encoding="ascii")


def make_pages(folder, version, date, perf_cli, paths):
    folder = pathlib.Path(folder)
    pages = man.Pages(headers.Manual(paths), version, date)
    for name, lines in pages.pages():
        write(folder, name, lines)
    if perf_cli != "-":
        said = usage.Usage(pathlib.Path(perf_cli).read_text(encoding="utf-8"))
        write(folder, "tickwheel-perf.1", pages.perf_page(said))


def main():
    command, *rest = sys.argv[1:]
    try:
        if command == "names":
            print("\n".join(man.Pages(headers.Manual(rest), "", "").names()))
        else:
            make_pages(*rest[:4], rest[4:])
    except (headers.HeaderError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
