# SPDX-License-Identifier: MIT
"""Parses the text of a documentation comment: paragraphs, code, tables and tags.

A comment has a description, and after it, for a function, tags. A tag begins a line ("Units: ..."); its further
lines are indented. In a description, a block that is indented by four more spaces is code, and a block that begins
with a bar is a table.
"""
import re

# The tags in the order that a comment must have. A function has all of them except those of OPTIONAL.
TAGS = ["Units", "Order", "Threads", "In callback", "Progress", "Lifetime", "Returns", "Since"]
OPTIONAL_TAGS = {"Order"}
TAG_LINE = re.compile(r"^([A-Z][A-Za-z, ]*): ?(.*)$")
CODE_INDENT = "    "
# As many letters fit after a name of 20 letters in two lines of a terminal.
BRIEF_MAX = 100

TOKEN = re.compile(
    r"(?P<code>`[^`]+`)"
    r"|(?P<page>\bdocs/[\w./-]+\.md\b)"
    r"|(?P<error>-E[A-Z0-9]+\b)"
    r"|(?P<field>\btw_\w+\.\w+\b)"
    r"|(?P<name>\b[tT][wW]_\w+\b)"
)
FIRST_SENTENCE = re.compile(r"(.+?[.:])(?=\s+(?:[A-Z`(]|tw_|docs/)|$)", re.S)


class CommentError(Exception):
    """Raised for a comment that breaks the rules."""


def bare_lines(comment):
    """Returns the lines of a comment without its marks."""
    body = comment.strip()[3:-2]
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in body.strip().split("\n")]


def table_cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(lines):
    """Returns the rows of a table without its head. A row whose first cell is empty continues the row above."""
    rows = []
    for line in lines:
        cells = table_cells(line)
        if all(set(cell) <= {"-"} and cell for cell in cells):
            rows = []
        elif rows and not cells[0]:
            rows[-1] = [f"{above}; {cell}" if cell else above for above, cell in zip(rows[-1], cells)]
        else:
            rows.append(cells)
    return rows


def block(lines):
    if all(line.startswith(CODE_INDENT) for line in lines):
        return ("code", "\n".join(line[len(CODE_INDENT):] for line in lines))
    if lines[0].startswith("|"):
        return ("table", table(lines))
    return ("text", " ".join(line.strip() for line in lines))


def joined(found):
    """Joins blocks of code that only empty lines separate."""
    whole = []
    for kind, content in found:
        if kind == "code" and whole and whole[-1][0] == "code":
            whole[-1] = ("code", f"{whole[-1][1]}\n\n{content}")
        else:
            whole.append((kind, content))
    return whole


def blocks(lines):
    """Returns the blocks of a description: ("text", words), ("code", lines) or ("table", rows) each."""
    found, run = [], []
    for line in [*lines, ""]:
        if line:
            run.append(line)
        elif run:
            found.append(block(run))
            run = []
    return joined(found)


def begins_tag(line):
    matched = TAG_LINE.match(line)
    return matched.group(1) if matched and matched.group(1) in TAGS else None


def add_tag(tags, line):
    matched = TAG_LINE.match(line)
    if matched is None or matched.group(1) not in TAGS:
        raise CommentError(f"neither a tag nor the rest of one: {line!r}")
    name = matched.group(1)
    if tags and TAGS.index(name) <= max(TAGS.index(other) for other in tags):
        raise CommentError(f"{name}: twice, or not in its place")
    tags[name] = matched.group(2).strip()
    return name


def tags_of(lines):
    tags, name = {}, None
    for line in lines:
        if line.startswith("  "):
            tags[name] = f"{tags[name]} {line.strip()}".strip()
        elif line:
            name = add_tag(tags, line)
    return tags


def parse(comment):
    """Returns the description of a comment, and its tags."""
    lines = bare_lines(comment)
    first = next((at for at, line in enumerate(lines) if begins_tag(line)), len(lines))
    return blocks(lines[:first]), tags_of(lines[first:])


def missing_tags(tags):
    return [name for name in TAGS if name not in tags and name not in OPTIONAL_TAGS]


def brief(description):
    """Returns the first sentence of a description, without its full stop."""
    if not description or description[0][0] != "text":
        return ""
    text = description[0][1]
    matched = FIRST_SENTENCE.match(text)
    return (matched.group(1) if matched else text).rstrip(".:")


def short(description):
    """Returns the brief for the section NAME of a page: without parentheses and backticks, and cut if it is long."""
    text = re.sub(r" \([^()]*\)", "", brief(description)).replace("`", "")
    if len(text) > BRIEF_MAX:
        text = re.split(r"[;:]", text)[0]
    return text[:1].lower() + text[1:] if re.match(r"[A-Z]([a-z]| )", text) else text


def tokens(text):
    """Yields the pieces of a text: (kind, words), where kind is "text", "code", "page", "error", "field" or "name"."""
    at = 0
    for matched in TOKEN.finditer(text):
        if matched.start() > at:
            yield "text", text[at:matched.start()]
        yield matched.lastgroup, matched.group().strip("`")
        at = matched.end()
    if at < len(text):
        yield "text", text[at:]


def split_outside(text, mark):
    """Splits a text at each mark that is not in parentheses."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(mark, at):
            parts.append(text[begin:at])
            begin = at + len(mark)
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


CODE_ITEM = re.compile(r"^(-E[A-Z0-9]+(?:, -E[A-Z0-9]+)*)(?=$|[ :])[ :]*(.*)$", re.S)
WHOLE_PARENTHESES = re.compile(r"^\(([^()]*(?:\([^()]*\)[^()]*)*)\)$", re.S)


def returned(text):
    """Returns the items of the first sentence of a tag Returns, (codes, meaning) each, and the rest of the tag.

    An item without codes is a result. A code without a meaning has that of the table in error.h.
    """
    first, *rest = split_outside(text, ". ")
    items = []
    for part in split_outside(first.rstrip("."), ";"):
        matched = CODE_ITEM.match(part)
        codes, meaning = matched.groups() if matched else ("", part)
        inner = WHOLE_PARENTHESES.match(meaning)
        items.append((codes.split(", ") if codes else [], inner.group(1) if inner else meaning))
    return items, ". ".join(rest)
