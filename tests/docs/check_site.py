#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual in HTML holds together: made anew, and read page by page.

usage: check_site.py SOURCE_ROOT [FOLDER]   FOLDER: a manual that is there, instead of a new one

Each page is well-formed; each link and each picture leads to a file of the manual, and to an anchor
that it has; no anchor is there twice; nothing comes from elsewhere, and there is no script; in the menu of
each page the group of the page is open, and no other; each file can be reached from the start page. Skipped (code 77) where cmark-gfm is not found, unless TESTS_MANUAL_REQUIRED is set.
"""
import html.parser
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

SKIPPED = 77
VOID = {"br", "hr", "img", "input", "link", "meta"}
PAGES_MIN, GROUPS_MIN = 40, 10


class Page(html.parser.HTMLParser):
    """What one page has, and what is wrong with it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.anchors, self.links, self.wrong = [], [], [], []
        self.folds, self.here = [], None
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script" or any(name.startswith("on") for name in attributes):
            self.wrong.append(f"a script: <{tag}>")
        if tag == "details":
            self.folds.append("open" in attributes)
        if "aria-current" in attributes:
            self.here = len(self.folds) - 1
        if "id" in attributes:
            self.anchors.append(attributes["id"])
        target = attributes.get("href", attributes.get("src"))
        if target is not None:
            self.take(tag, target)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def take(self, tag, target):
        if not re.match(r"[a-z]+:", target):
            self.links.append(target)
        elif tag != "a":
            self.wrong.append(f"<{tag}> is from elsewhere: {target}")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")


def read_pages(folder):
    paths = (path for path in folder.rglob("*.html"))
    return {str(path.relative_to(folder)): Page(path.read_text(encoding="utf-8")) for path in paths}


def targets(name, page):
    """(file, anchor) of each link of a page."""
    for link in page.links:
        path, _, anchor = urllib.parse.unquote(link).partition("#")
        yield posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name, anchor, link


def check_page(name, page, pages, files):
    yield from (f"{name}: {wrong}" for wrong in page.wrong)
    if len(page.folds) < GROUPS_MIN or [at for at, is_open in enumerate(page.folds) if is_open] != [page.here or 0]:
        yield f"{name}: the menu does not show the group of the page alone"
    for anchor in sorted({one for one in page.anchors if page.anchors.count(one) > 1}):
        yield f"{name}: the anchor {anchor} is there twice"
    for path, anchor, link in targets(name, page):
        if path not in files:
            yield f"{name}: {link} leads nowhere"
        elif anchor and path in pages and anchor not in pages[path].anchors:
            yield f"{name}: {link} names no anchor"


def reached(pages):
    found, waiting = set(), ["index.html"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [path for path, _, _ in targets(name, pages[name])] if name in pages else []
    return found


def check(folder):
    pages = read_pages(folder)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    if len(pages) < PAGES_MIN or "index.html" not in pages:
        yield f"only {len(pages)} pages"
        return
    for name, page in sorted(pages.items()):
        yield from check_page(name, page, pages, files)
    for name in sorted(files - reached(pages)):
        yield f"{name}: nothing leads there"


def make(root, folder):
    headers = [root / "include/tickwheel.h", *sorted((root / "include/tickwheel").glob("*.h"))]
    command = [sys.executable, "-B", root / "docs/generate/generate.py", "html", folder, "0.1.0", root, *headers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stderr if done.returncode == 0 else f"{done.stderr}code {done.returncode}").strip()


def main():
    root = pathlib.Path(sys.argv[1])
    if shutil.which("cmark-gfm") is None:
        print("cmark-gfm is not there")
        return 1 if "TESTS_MANUAL_REQUIRED" in os.environ else SKIPPED
    with tempfile.TemporaryDirectory() as new:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else new)
        said = "" if len(sys.argv) > 2 else make(root, folder)
        wrong = [said] if said else list(check(folder))
    print("\n".join(wrong) if wrong else "the manual: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
