#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the manual from the comments of the public headers, and from the pages of docs.

usage: generate.py names SOURCE...                             the names of all manual pages
       generate.py man FOLDER VERSION DATE PROGRAMS SOURCE...  the manual pages, into a folder
       generate.py html FOLDER VERSION SOURCE_ROOT SOURCE...   the manual in HTML, into a folder

Each SOURCE is a public header, or a program with examples. PROGRAMS is a list NAME=FILE,..., or `-` for none. Each
program of the list gets a page from the usage text in its file. If a comment, an example or a link is wrong, the
program prints a message and exits with code 1.
"""
import pathlib
import shutil
import sys

import examples
import headers
import man
import web
import usage


def print_names(*paths):
    print("\n".join(man.Pages(headers.Manual(paths), "", "").names()))


def write(folder, name, lines):
    (folder / name).write_text("\n".join(lines) + "\n", encoding="ascii")


def make_pages(folder, version, date, programs, *paths):
    folder = pathlib.Path(folder)
    pages = man.Pages(headers.Manual(paths), version, date)
    for name, lines in pages.pages():
        write(folder, name, lines)
    for program in programs.split(",") if programs != "-" else []:
        name, path = program.split("=", 1)
        said = usage.Usage(name, pathlib.Path(path).read_text(encoding="utf-8"))
        write(folder, f"{name}.1", pages.program_page(said))


def make_site(folder, version, root, *paths):
    if shutil.which(web.CONVERTER[0]) is None:
        raise web.SiteError("cmark-gfm is not there; Debian: apt-get install cmark-gfm")
    web.Site(root, folder, headers.Manual(paths), version).make()
    print(f"{folder}/index.html")


COMMANDS = {"names": print_names, "man": make_pages, "html": make_site}


def main():
    try:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
    except (examples.ExampleError, headers.HeaderError, web.SiteError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
