#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks how the comments and pages read: each of these counts per 1,000 words must be within a bound.

usage: check_words.py SOURCE_ROOT [--list] [PART...]

    role      who, whoever, whom, whose: a thread has a name (the worker, a producer, the caller)
    clause    "what is", "what comes" and the like: a thing has a name
    person    nobody, somebody, anybody: write "no thread" or "another thread"
    reasons   because, must, should, when, if, so that, otherwise: at least so many
    long      sentences of more than 25 words, per cent

A part is src, include, tests, docs or README; without one, all are read. With --list it prints each place
that counts against a part. The bounds exclude a style of writing. They cannot tell whether a comment is
clear; only a reader can.
"""
import re
import sys
from pathlib import Path

# For each part: the files that it reads, then the bounds of role, clause, person, reasons and long.
PARTS = {
    "src": (("src/**/*.c", "src/**/*.h"), (1.5, 1.0, 0.5, 12, 12)),
    "include": (("include/**/*.h",), (0.5, 1.0, 0.3, 12, 15)),
    "tests": (("tests/**/*.c", "tests/**/*.h"), (2.0, 1.5, 0.8, 8, 12)),
    "docs": (("docs/**/*.md",), (1.0, 1.0, 0.4, 9, 12)),
    "README": (("README.md",), (0.5, 0.5, 0.3, 6, 10)),
}
COUNTED = (
    re.compile(r"\bwho(?:ever|m|se)?\b", re.I),
    re.compile(r"\bwhat (?:is|was|has|comes|came|waits|runs|it|a|the|stop|follows)\b", re.I),
    re.compile(r"\b(?:no|some|any)body\b", re.I),
    re.compile(r"\b(?:because|must|should|when|if|so that|otherwise)\b", re.I),
)
NAMES = ("role", "clause", "person", "reasons", "long")
LONG = 25


def comments(text):
    found = (m.group(1) for m in re.finditer(r"/\*(.*?)\*/", text, re.S))
    return ". ".join(re.sub(r"\n\s*\*? ?", " ", comment) for comment in found if "SPDX" not in comment)


def prose(text):
    """Returns a page without code and tables."""
    text = re.sub(r"```.*?```|<!--.*?-->", " ", text, flags=re.S)
    return re.sub(r"^(    |\|).*$", ".", re.sub(r"`[^`]*`", "x", text), flags=re.M)


def files_of(root, patterns):
    names = sorted(path for pattern in patterns for path in root.glob(pattern))
    return [path for path in names if "zh-CN" not in str(path.relative_to(root))]


def read(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    return prose(text) if path.suffix == ".md" else comments(text)


def rates(text):
    words = len(re.findall(r"[A-Za-z']+", text)) or 1
    sentences = [part for part in re.split(r"[.;:?!]\s", text) if len(part.split()) > 2] or [""]
    counts = [1000 * len(pattern.findall(text)) / words for pattern in COUNTED]
    return [*counts, 100 * sum(len(part.split()) > LONG for part in sentences) / len(sentences)]


def beyond(name, rate, bound):
    return rate < bound if name == "reasons" else rate > bound


def places(root, patterns):
    for path in files_of(root, patterns):
        for pattern in COUNTED[:3]:
            for match in pattern.finditer(read(path)):
                yield f"{path.relative_to(root)}: {match.group()}"


def main():
    root, listed = Path(sys.argv[1]), "--list" in sys.argv
    asked = [word for word in sys.argv[2:] if word != "--list"] or list(PARTS)
    bad = False
    for part in asked:
        patterns, bounds = PARTS[part]
        texts = [read(path) for path in files_of(root, patterns)]
        found = rates(". ".join(texts))
        wrong = [name for name, rate, bound in zip(NAMES, found, bounds) if beyond(name, rate, bound)]
        bad |= bool(wrong) or not texts
        said = "  ".join(f"{name} {rate:.2f}" for name, rate in zip(NAMES, found))
        print(f"{part:8} {len(texts):4} files  {said}{'   beyond its bound: ' + ', '.join(wrong) if wrong else ''}")
        if listed:
            print("\n".join(places(root, patterns)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
