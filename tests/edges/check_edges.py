#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that each ordered access of src/ has its edge, and that each edge of docs/internals/memory-model.md
(the register) has its sites.

usage: check_edges.py SOURCE_ROOT

An ordered access is an acquire, release or seq_cst one, a fence, a barrier in all threads, a read-side
section, or a grace period. A comment on its line, or in or before its statement, must have the edge's
number. The edge's entry in the register must list the same functions, as release or as acquire sites. A
function that the entry names but that has no such access is an error too. An entry may only name harnesses
of tests/model that exist. It may only name mutants that tests/mutants generates and does not list as
equivalent. A relaxed access must have a comment with RELAXED there, or before its function; a file's head
may say "RELAXED, all" for all of them. Atomics must come from base/atomic.h, and attributes (those of perf/
too) from base/compiler.h.

Seen to fail with these defects: a site has no number; a relaxed access has no RELAXED; a release was made
relaxed under its old comment; the register omits a site, or has one that does not exist; perf/ has an
attribute.
"""
import pathlib
import re
import sys

from csource import Source

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mutants"))
from reviewed import reviewed_read  # noqa: E402
from generate import Generator  # noqa: E402

# The files that define the accesses and sections. The check ignores them.
MAKERS = ("src/base/atomic.h", "src/thread/rcu.h")
EDGE = re.compile(r"\bE(\d{1,3})\b")
RAW = re.compile(r"\b(?:atomic_(?!uint|int|bool)\w+|__atomic_\w+|__sync_\w+|memory_order\w*|stdatomic)\b")
PARTS = ("Publishes", "Release", "Acquire", "Nothing weaker", "Model", "Mutants")


def sources(root):
    for path in sorted((root / "src").rglob("*.[ch]")):
        yield Source(str(path.relative_to(root)), path.read_text())


def without_comments(source):
    text = source.text
    for start, end, _ in source.comments:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def raw_uses(source):
    text = without_comments(source)
    if source.path != "src/base/atomic.h":
        for match in RAW.finditer(text):
            yield f"{source.path}: {match.group()} outside base/atomic.h"


def check_attributes(root):
    for folder in ("src", "perf"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            name = str(path.relative_to(root))
            source = Source(name, path.read_text())
            if name != "src/base/compiler.h" and "__attribute__" in without_comments(source):
                yield f"{name}: __attribute__ outside base/compiler.h"


def relaxed_reason(source, access, said):
    head = source.comments[1][2] if len(source.comments) > 1 else ""
    return "RELAXED" in said or "RELAXED" in access.function.doc or "RELAXED, all" in head


def source_edges(source, ret_sites):
    """Yields the errors. Adds the sides ("Release", "Acquire") of each access to
    ret_sites[number, file, function], where `number` is that of its edge."""
    for access in source.accesses():
        said = " ".join(source.comments_of(access))
        where = f"{source.path}: {access.function.name}: {access.text.split('(')[0]}"
        numbers = {int(number) for number in EDGE.findall(said)}
        if access.what == "count":
            continue
        if access.order == "relaxed":
            if not relaxed_reason(source, access, said):
                yield f"{where}: no comment says RELAXED and why"
            continue
        if not numbers:
            yield f"{where}: no edge stands there"
        for number in numbers:
            sides = ret_sites.setdefault((number, source.path, access.function.name), set())
            sides.update(["Release"] * access.releases + ["Acquire"] * access.acquires)


def register_entries(root):
    text = (root / "docs/internals/memory-model.md").read_text()
    for number, body in re.findall(r"^## E(\d+): (.*?)(?=^## |\Z)", text, re.M | re.S):
        parts = dict(re.findall(r"^\* \*\*([\w ]+)\*\*\s+(.*?)(?=^\* \*\*|\Z)", body, re.M | re.S))
        yield int(number), body, parts


def sites_of(part):
    path = None
    for word in re.findall(r"`([^`]+)`", part):
        if word.startswith("src/"):
            path = word
        elif re.fullmatch(r"\w+", word):
            yield path, word


def check_proofs(root, entries):
    """Checks the model checks and the mutants that entries name."""
    texts = [path.read_text() for path in (root / "tests/model").rglob("*.c")]
    harnesses = {name for text in texts for name in re.findall(r"MODEL_HARNESS\((\w+),", text)}
    mutants = {mutant.id for mutant in Generator(root).mutants()} - set(reviewed_read("equivalent.txt"))
    for number, _, parts in entries:
        for part, known in (("Model", harnesses), ("Mutants", mutants)):
            names = re.findall(r"`([^`]+)`", parts.get(part, ""))
            if not names:
                yield f"E{number}: no {part.lower()} is named"
            for name in set(names) - known:
                yield f"E{number}: there is no {part.lower()} of the name {name}"


def check_register(root, entries, sites, mentions):
    listed = set()
    for number, body, parts in entries:
        for name in PARTS:
            if name not in parts:
                yield f"E{number}: no part '{name}'"
        for side in ("Release", "Acquire"):
            found = list(sites_of(parts.get(side, "")))
            if not found:
                yield f"E{number}: no {side.lower()} site"
            for path, function in found:
                listed.add((number, path, function))
                if side not in sites.get((number, path, function), ()):
                    yield f"E{number}: {path} {function} has no {side.lower()} access under that number"
        named = set(re.findall(r"`(src/[\w/]+\.[ch])`", body))
        for path in sorted(named ^ mentions.get(number, set())):
            other = "its entry does not name the file" if path not in named else "the file does not name it"
            yield f"E{number}, {path}: {other}"
    for number, path, function in sorted(set(sites) - listed):
        yield f"{path}: {function} has an access of E{number} that its entry does not list"


def check(root):
    sites, mentions = {}, {}
    for source in sources(root):
        if source.path in MAKERS:
            yield from raw_uses(source) if source.path != MAKERS[0] else ()
        else:
            yield from raw_uses(source)
            yield from source_edges(source, sites)
        for number in EDGE.findall(source.text):
            mentions.setdefault(int(number), set()).add(source.path)
    yield from check_attributes(root)
    entries = list(register_entries(root))
    if not sites or not entries:
        yield "no edges found at all"
    for number in sorted(set(mentions) - {entry[0] for entry in entries}):
        yield f"E{number} has no entry in docs/internals/memory-model.md"
    yield from check_register(root, entries, sites, mentions)
    yield from check_proofs(root, entries)


def main():
    wrong = list(check(pathlib.Path(sys.argv[1])))
    print("\n".join(wrong) if wrong else "edges: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
