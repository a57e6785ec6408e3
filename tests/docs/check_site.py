#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the manual in HTML and checks it page by page.

usage: check_site.py SOURCE_ROOT [FOLDER]   FOLDER: an existing manual, instead of a new one

Each page must be well-formed. Each type and macro must have an anchor in the reference. Each link and each
picture must lead to a file of the manual, and to an anchor that the file has. No anchor may be there twice.
Nothing may come from another site. A script must be a file of the manual, never text of a page. In the menu
of each page only the group of this page is open. Each file must be reachable from the start page. The start
page has the code of the quick start, a picture, and the README's lines of the installation, in this order.
The index of the search must name every function, and each of its targets must exist. If node is found, the
search is run. Skipped (code 77) if cmark-gfm is not found, unless TESTS_MANUAL_REQUIRED is set.
"""
import html
import html.parser
import json
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import check_pages

SKIPPED = 77
VOID = {"br", "hr", "img", "input", "link", "meta"}
PAGES_MIN, GROUPS_MIN, FOUND_MOST = 40, 10, 20
FUNCTION = re.compile(r"^TW_(?:BESIDE_)?API [^;(]*?(tw_\w+)\(", re.M)
# Searches, and the target that each must find first.
SEARCHES = {
    "tw_cancel": "include/tickwheel/timeout.html#tw_cancel",
    "cancel": "include/tickwheel/timeout.html#tw_cancel",
    "tw_cancel()": "include/tickwheel/timeout.html#tw_cancel",
    "TW_CANCEL_DO": "include/tickwheel/timeout.html#TW_CANCEL_DONE",
    "Loop  MODE": "docs/loop-mode.html",
    "path timeout": "docs/concepts.html#the-path-of-a-timeout",
    "no such thing": None,
    " ": None,
}
RUN_SEARCH = """
const [index, script, ...asked] = process.argv.slice(1);
for (const file of [index, script]) require("vm").runInThisContext(require("fs").readFileSync(file, "utf8"));
console.log(JSON.stringify(asked.map((text) => [search(text).length, search(text).length > 0 ? search(text)[0][1] : null])));
"""


class Page(html.parser.HTMLParser):
    """The contents of one page, and its errors."""

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
        if (tag == "script" and not attributes.get("src")) or any(name.startswith("on") for name in attributes):
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

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and data.strip():
            self.wrong.append("a script as text of the page")

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
    """Yields file, anchor and link for each link of a page."""
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


def check_start(root, folder):
    """Checks that the start page has these texts between its title and the list of pages, in this order."""
    shown = html.unescape((folder / "index.html").read_text(encoding="utf-8"))
    code = (root / "docs/examples/quickstart.c").read_text(encoding="utf-8")
    readme = (root / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(?:apt-get|meson) .*$", readme.partition("## Install the library")[2].partition("\n## ")[0], re.M)
    wanted = ["A C library", code[code.index("#include"):], '<img src="docs/pictures/way.svg"', *lines, '<h2 id="pages">']
    places = [shown.find(piece) for piece in wanted]
    if len(lines) != 3 or -1 in places or places != sorted(places):
        yield f"index.html: not its parts in their order: {places}"


def read_index(folder):
    """Returns the rows of search-index.js: (name or heading, target, kind or page)."""
    text = (folder / "search-index.js").read_text(encoding="utf-8")
    return json.loads(text[text.index("["):text.rindex(";")])


def check_index(folder, pages, functions):
    index = read_index(folder)
    of_kind = {name for name, _, kind in index if kind == "function"}
    if of_kind != functions or not functions:
        yield f"search-index.js: not the functions of the headers: {', '.join(sorted(of_kind ^ functions))}"
    for _, target, _ in index:
        path, _, anchor = target.partition("#")
        if path not in pages or (anchor and anchor not in pages[path].anchors):
            yield f"search-index.js: {target} leads nowhere"
    titles = {target for _, target, kind in index if kind == "page"}
    yield from (f"search-index.js: no page {page}" for page in ("README.html", "docs/quick-start.html") if page not in titles)


def check_search(folder):
    """Runs the manual's own search script with node. For each search it must find the expected target first."""
    if shutil.which("node") is None:
        print("the search was not run: node is not there")
        return
    files = [str(folder / name) for name in ("search-index.js", "search.js")]
    command = ["node", "-e", RUN_SEARCH, *files, *SEARCHES]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        yield f"search.js: {done.stderr}"
        return
    for (asked, wanted), (count, first) in zip(SEARCHES.items(), json.loads(done.stdout)):
        if first != wanted or count > FOUND_MOST:
            yield f"search.js: {asked!r} finds {count}, first {first}, not {wanted}"


def check(root, folder):
    pages = read_pages(folder)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    if len(pages) < PAGES_MIN or "index.html" not in pages:
        yield f"only {len(pages)} pages"
        return
    for name, page in sorted(pages.items()):
        yield from check_page(name, page, pages, files)
    yield from check_start(root, folder)
    yield from check_index(folder, pages, functions_of(root))
    yield from check_search(folder)
    for name in sorted(files - reached(pages)):
        yield f"{name}: nothing leads there"
    reference = {anchor for name, page in pages.items() if name.startswith("include/") for anchor in page.anchors}
    for name in sorted(check_pages.types_and_macros(root, check_pages.ADAPTERS) - reference):
        yield f"{name}: no anchor in the reference"


def headers_of(root):
    folder = root / "include/tickwheel"
    shown = (path for path in folder.glob("*.h") if path.stem not in check_pages.WITHOUT_PAGES - {"export"})
    return [root / "include/tickwheel.h", *sorted(shown)]


def functions_of(root):
    return {name for header in headers_of(root) for name in FUNCTION.findall(header.read_text(encoding="utf-8"))}


def make(root, folder):
    command = [sys.executable, "-B", root / "docs/generate/generate.py", "html", folder, "0.1.0", root]
    command += check_pages.sources(root)
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
        wrong = [said] if said else list(check(root, folder))
    print("\n".join(wrong) if wrong else "the manual: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
