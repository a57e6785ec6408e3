# SPDX-License-Identifier: MIT
"""Writes the index for the search of the HTML manual: names of the interface, pages, and headings of pages.

The index is a script that sets a variable, because a page that was opened from a file may not fetch other files.
"""
import html
import json
import re

HEADING = re.compile(r'<h([1-6]) id="([^"]*)">(.*?)</h\1>', re.S)


def names(reference):
    """Yields an entry for each function, type, macro and value of an enum."""
    for header in reference.manual.headers:
        for thing in header.things:
            yield thing.name, reference.places[thing.name], thing.kind
            if thing.kind == "enum":
                yield from ((name, reference.places[name], f"enum {thing.name}") for name, _ in thing.members if name != thing.name)


def headings(output, title, body):
    """Yields entries for a page: its title, then its headings."""
    yield title, output, "page"
    for level, anchor, shown in HEADING.findall(body):
        if level != "1":
            yield html.unescape(re.sub(r"<[^>]*>", "", shown)), f"{output}#{anchor}", title


def script(entries):
    rows = ",\n".join(json.dumps(entry) for entry in entries)
    return f"/* SPDX-License-Identifier: MIT */\nvar searchIndex = [\n{rows}\n];\n"
