# SPDX-License-Identifier: MIT
"""Writes the menu of the HTML manual, its start page, and the parts that all its pages share."""
import html
import posixpath

# The groups of the menu, with the pages in the order of reading: (path, title in the menu), where None stands for the
# page's own title. A page that does not exist is left out. A page that is not in this list comes last.
GROUPS = [
    ("Begin", [
        ("README.md", "What it is"),
        ("docs/quick-start.md", None),
        ("docs/concepts.md", None),
        ("docs/README.md", None),
    ]),
    ("中文", [
        ("docs/README.zh-CN.md", "简介"),
        ("docs/zh-CN/quick-start.md", None),
        ("docs/zh-CN/loop-mode.md", None),
        ("docs/zh-CN/faq.md", None),
    ]),
    ("Guides", [
        ("docs/loop-mode.md", None),
        ("docs/periodic.md", None),
        ("docs/retry.md", None),
        ("docs/keyed.md", None),
        ("docs/durable.md", None),
        ("docs/batches.md", None),
        ("docs/groups.md", "Groups"),
        ("docs/scopes.md", "Scopes"),
        ("docs/scaled.md", "Scaled timeouts"),
        ("docs/executors.md", None),
        ("docs/hosts.md", "Event loops"),
        ("docs/slow-callbacks.md", None),
        ("docs/clocks.md", None),
        ("docs/memory.md", None),
        ("docs/fork.md", None),
        ("docs/cpp.md", "C++"),
        ("docs/testing-your-code.md", None),
    ]),
    ("Operate", [
        ("docs/tuning.md", None),
        ("docs/machines.md", None),
        ("docs/operating-durable.md", None),
        ("docs/coming-from-durable.md", None),
        ("docs/statistics.md", None),
        ("docs/tracing.md", None),
        ("docs/tracing/README.md", None),
        ("docs/debugging.md", None),
    ]),
    ("Contract", [
        ("docs/threading.md", None),
        ("docs/errors.md", None),
        ("docs/internals/state-machine.md", None),
        ("docs/internals/memory-model.md", "Memory model"),
    ]),
    ("Questions", [
        ("docs/coming-from.md", None),
        ("docs/faq.md", None),
    ]),
    ("Benchmarks", [
        ("docs/perf.md", None),
        ("perf/README.md", None),
    ]),
    ("Examples", [
        ("docs/examples/README.md", "All examples"),
        ("docs/examples/ttl-server/README.md", None),
        ("docs/examples/servers/README.md", None),
        ("docs/examples/idle-server/README.md", None),
        ("docs/examples/rpc-pool/README.md", None),
        ("docs/examples/lease/README.md", None),
        ("docs/examples/graceful-stop/README.md", None),
        ("docs/examples/payments-notifier/README.md", None),
    ]),
    ("Project", [
        ("docs/internals/architecture.md", None),
        ("docs/internals/design.md", None),
        ("docs/internals/special-paths.md", None),
        ("docs/internals/exceptions.md", None),
        ("docs/internals/testing.md", None),
        ("docs/internals/methods.md", None),
        ("CONTRIBUTING.md", None),
        ("docs/generate/README.md", None),
        ("docs/internals/releasing.md", None),
        ("docs/packaging/README.md", None),
        ("CHANGELOG.md", None),
        ("docs/mended.md", None),
    ]),
]
PROJECT = "Project"

PAGE = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · tickwheel</title>
<link rel="stylesheet" href="{up}manual.css">
<script src="{up}search-index.js" defer></script>
<script src="{up}search.js" defer></script>
</head>
<body>
<header><a href="{up}index.html">tickwheel</a> <span>{version}</span>
<input type="search" id="search" placeholder="Search (/)" aria-label="Search" autocomplete="off" hidden>
<label for="menu-shown">menu</label>
<ul id="found" data-up="{up}" hidden></ul></header>
<input type="checkbox" id="menu-shown" aria-label="Show the menu">
<nav id="menu">
{menu}
</nav>
<main>
{body}
</main>
</body>
</html>
"""


def pages_of(root):
    """Returns the paths of all pages: those of docs, those of the examples, and pages to which these link."""
    found = [*root.glob("*.md"), *root.glob("docs/**/*.md"), root / "perf/README.md"]
    found += root.glob("tests/*/README.md")
    return sorted(str(page.relative_to(root)) for page in found)


def grouped(pages):
    """Returns GROUPS without pages that do not exist, and with the pages that are not in it."""
    named = {page for _, members in GROUPS for page, _ in members}
    others = [(page, None) for page in pages if page not in named]
    for title, members in GROUPS:
        there = [(page, name) for page, name in members if page in pages]
        yield title, there + (others if title == PROJECT else [])


def items(members, output):
    """Returns list items that link to pages; the links are relative to the page `output`."""
    for page, title in members:
        if page == output:
            yield f'<li aria-current="page">{html.escape(title)}</li>'
        else:
            link = posixpath.relpath(page, posixpath.dirname(output) or ".")
            yield f'<li><a href="{link}">{html.escape(title)}</a></li>'


def navigation(groups, output):
    """Returns the menu for a page. Groups fold; the group of the page is open, or the first one if it is in none."""
    here = [any(page == output for page, _ in members) for _, members in groups]
    shown = here.index(True) if True in here else 0
    lines = []
    for at, (title, members) in enumerate(groups):
        mark = " open" if at == shown else ""
        lines += [f"<details{mark}>", f"<summary>{title}</summary>", "<ul>", *items(members, output), "</ul>", "</details>"]
    return "\n".join(lines)


def start_page(begin, groups):
    """Returns the body of the start page: its beginning, then the list of all pages."""
    lines = [begin, '<h2 id="pages">Pages</h2>', '<div class="contents">']
    for title, members in groups:
        lines += ["<section>", f"<h3>{title}</h3>", "<ul>", *items(members, "index.html"), "</ul>", "</section>"]
    return "\n".join([*lines, "</div>"])
