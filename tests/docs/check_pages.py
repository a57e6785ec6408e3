#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the manual pages are complete, and that the program that makes them rejects mistakes.

usage: check_pages.py pages SOURCE_ROOT FOLDER ADAPTER...   pages as built, with these adapters
       check_pages.py rejects SOURCE_ROOT

    pages    there is one page for each exported symbol, type and macro, and otherwise only pages of headers;
             pages of functions have all sections; mandoc and groff give no warning, if they are found (or
             TESTS_MANUAL_REQUIRED is set)
    rejects  each kind of mistake in a comment or an example ends the generator with a message that
             names it
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SECTIONS = [
    "NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "UNITS", "THREADS", "IN CALLBACK", "PROGRESS", "LIFETIME",
    "RETURN VALUE", "SINCE", "EXAMPLES", "SEE ALSO",
]
OPTIONAL = {"ORDER", "MEMBERS", "VALUES"}
SOURCES = ["include/tickwheel.h", "include/tickwheel/*.h", "docs/examples/manual/*.c"]
# The headers of companion libraries, which a build may not have.
ADAPTERS = {"glib", "uv", "uv_timer", "event", "durable", "durable_file", "durable_name", "durable_stats", "durable_store", "durable_postgres", "durable_redis"}
WITHOUT_PAGES = {"export"}
# Macros that mark declarations (export.h) have no pages.
TYPE_OR_MACRO = re.compile(r"^(?:#define |(?:struct|enum) (?=\w+(?: \{|;))|typedef [\w ]+[ *](?=\w+[(;]))(tw_\w+)", re.M | re.I)
# A mistake: a text of a file, its replacement, and a word that the message must have.
MISTAKES = {"include/tickwheel/timeout.h": [
    (" * Units: nanoseconds. 0 or less: the timeout", " * nanoseconds. 0 or less: the timeout", "Units"),
    (" * Progress: wait-free, or lock-free if", " * Pace: wait-free, or lock-free if", "Pace"),
    (" * Threads: any.\n * In callback: yes. If the engine", " * In callback: yes. If the engine", "Threads"),
    ("The call starts the engine if it is not started yet.", "The call starts tw_wagon.", "tw_wagon"),
    ("TW_CANCEL_DONE, the finaliser has run", "TW_CANCEL_GONE, the finaliser has run", "TW_CANCEL_GONE"),
    ("-EPERM (a kind that", "-EWRONG (a kind that", "-EWRONG"),
    ("-EPERM (a kind that", "-EPERM (a kind), -EBUSY (one that", "after -EPERM"),
    ("/** What tw_cancel found. */\n", "", "tw_cancel_outcome"),
    ("TW_API int tw_cancel(struct", "TW_API int tw_cancel_all(void);\nTW_API int tw_cancel(struct", "tw_cancel has no comment"),
    ("TW_API int tw_cancel(struct tw_handle handle);", "union tw_odd { int a; };", "not understood"),
    (" * @file timeout.h", " * @file time.h", "@file"),
], "docs/examples/manual/timeout.c": [
    ("/* example: tw_timeout_state */", "/* example: tw_timeout_get */", "tw_timeout_get does not use it"),
    ("/* example: tw_schedule_at tw_engine_now */", "/* example: tw_schedule_at */", "tw_engine_now has no example"),
    ("/* example: tw_cancel */", "/* example: tw_cancel request_answered */", "request_answered is no function"),
    ("/* example: tw_cancel */", "/* example: tw_cancel tw_cancel_outcome_name */", "another example in docs/examples/manual/debug.c"),
    ("/* example: tw_cancel */", "/* Example: tw_cancel */", "begin an example"),
    ("/* end */\n\n/* example: tw_cancel */", "\n/* example: tw_cancel */", "begin an example"),
    ("static bool request_waits(", 11 * "/* */\n" + "static bool request_waits(", "lines, not 3 to 12"),
    ("static bool request_waits(", f"/* {70 * 'a'} */\nstatic bool request_waits(", "columns"),
]}


def exported(root, adapters):
    names = set(re.findall(r"^\t(tw_\w+);", (root / "src/tickwheel.map").read_text(), re.M))
    for adapter in adapters:
        text = (root / f"include/tickwheel/{adapter}.h").read_text()
        names.update(re.findall(r"^TW_BESIDE_API [^(]*[ *](tw_\w+)\(", text, re.M))
    return names


def types_and_macros(root, adapters):
    without = {f"{name}.h" for name in ADAPTERS.difference(adapters) | WITHOUT_PAGES}
    headers = (path for path in (root / "include/tickwheel").glob("*.h") if path.name not in without)
    return {name for header in headers for name in TYPE_OR_MACRO.findall(header.read_text())}


def check_named(folder, name):
    """Checks that there is a page of this name, or a link to one, and that its section NAME has the name."""
    page = folder / f"{name}.3"
    text = page.read_text() if page.exists() else ""
    if text.startswith(".so man3/"):
        page = folder / text.split("/")[1].strip()
        text = page.read_text() if page.exists() else ""
    if not re.search(rf"^\.SH NAME\n.*\b{name}\b.* \\- ", text, re.M):
        yield f"{name}: no page has this name"


def is_link(page):
    return page.read_text().startswith(".so ")


def titles(page):
    found = re.findall(r"^\.SH (.*)$", page.read_text(), re.M)
    return [title for title in found if title not in OPTIONAL]


def of_functions(folder):
    """Returns the pages of functions: those with a section on the return value."""
    return {page.stem: page for page in folder.glob("*.3") if ".SH RETURN VALUE" in page.read_text()}


def empty_sections(page):
    return re.findall(r"^\.SH (.*)\n(?=\.SH|\Z)", page.read_text(), re.M)


def said_by(command, pages):
    done = subprocess.run([*command, *map(str, pages)], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr if command[0] == "mandoc" else done.stderr).strip()


def check_tools(pages):
    """Runs mandoc and groff on all pages, if they are installed. Yields their messages."""
    for command in (["mandoc", "-Tlint", "-Wwarning"], ["groff", "-man", "-ww", "-Tutf8", "-z"]):
        if shutil.which(command[0]) is None:
            print(f"{command[0]} is not there: not asked")
            if "TESTS_MANUAL_REQUIRED" in os.environ:
                yield f"{command[0]} is not there"
            continue
        said = said_by(command, pages)
        if said:
            yield f"{command[0]}: {said}"


def check_pages(root, folder, *adapters):
    folder = pathlib.Path(folder)
    functions, symbols = of_functions(folder), exported(root, adapters)
    for name in sorted(symbols ^ set(functions)):
        yield f"{name}: not both exported and with a page"
    for name, page in sorted(functions.items()):
        if titles(page) != SECTIONS:
            yield f"{page.name}: has the sections {titles(page)}"
    named = types_and_macros(root, adapters)
    for name in sorted(named):
        yield from check_named(folder, name)
    for page in sorted(folder.glob("[tT][wW]_*.3")):
        if page.stem not in symbols | named:
            yield f"{page.name}: of nothing that is declared"
    print(f"{len(symbols)} functions, {len(named)} types and macros")
    pages = sorted(page for section in "137" for page in folder.glob(f"*.{section}") if not is_link(page))
    for page in pages:
        for title in empty_sections(page):
            yield f"{page.name}: nothing in {title}"
    yield from check_tools(pages)


def sources(root):
    """Returns the headers, and the programs with examples."""
    return [path for pattern in SOURCES for path in sorted(root.glob(pattern))]


def complaint(root, tree):
    """Runs the generator on the sources of a tree. Returns (exit code, message)."""
    paths = sources(tree)
    command = [sys.executable, "-B", root / "docs/generate/generate.py", "names", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def check_rejects(root):
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for path in sources(root):
            copy = tree / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        code, said = complaint(root, tree)
        if code != 0:
            yield f"the sources as they are: {said}"
        for name, right, wrong, word in ((name, *mistake) for name, all_of in MISTAKES.items() for mistake in all_of):
            whole = (root / name).read_text()
            if whole.count(right) != 1:
                yield f"{name} has not exactly one {right!r}"
                continue
            (tree / name).write_text(whole.replace(right, wrong))
            code, said = complaint(root, tree)
            (tree / name).write_text(whole)
            if code != 1 or word not in said or "Traceback" in said:
                yield f"{wrong!r}: code {code}, said {said!r}, and not {word!r}"


def main():
    check, root, *rest = sys.argv[1:]
    wrong = list(globals()[f"check_{check}"](pathlib.Path(root), *rest))
    print("\n".join(wrong) if wrong else f"{check}: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
