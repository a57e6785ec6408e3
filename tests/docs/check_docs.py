#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the documentation agrees with the sources.

usage: check_docs.py CHECK SOURCE_ROOT VERSION

    readme    at most 120 lines; its C example is docs/examples/quickstart.c, at most 40 lines; the library goes to lib
    chinese   docs/README.zh-CN.md has the commands, the example, the picture and the pages of README.md; each page of
              docs/zh-CN has the code blocks and the levels of headings of its English page, and the two link to each other
    tuning    docs/tuning.md names every option of an engine, and no other
    quoted    code that a page quotes from an example is the same as there
    names     each tw_ and TW_ name on a page is in a public header, and each path in backquotes exists
    codes     tw_strerror has a text for each code that a public header names; docs/errors.md explains it
    listed    each page of docs is installed, and linked from docs/README.md, to which README.md links
    links     each relative link of each page leads to a file, and to a heading if it names one
    version   it is the same in meson.build, version.h and the newest entry of CHANGELOG.md
    licence   each file names its licence in its first or last lines
    placeholders   docs/packaging names no host and no person; its README lists the placeholders
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
HEADING = re.compile(r"^#+(?= )", re.M)
NAME = re.compile(r"\b(?:tw|TW)_\w+")
# A pattern on a page that stands for several names, and looks like a name itself.
PLACEHOLDERS = {"tw_noun_verb"}
CODE = re.compile(r"-(E[A-Z0-9]{2,})\b")
# Numbers that Linux gives two names.
SAME_CODE = {"ENOTSUP": "EOPNOTSUPP"}
PATH = re.compile(r"`((?:docs|include|perf|src|tests)/[\w./-]+)`")
QUOTED = {
    "docs/tuning.md": "docs/examples/recipes.h",
    "docs/loop-mode.md": "docs/examples/loops/epoll.c",
    "docs/generate/README.md": "docs/examples/manual/timeout.c",
}
README_LINES_MAX = 120
EXAMPLE_LINES_MAX = 40
LICENCE = "SPDX-License-Identifier: MIT"
LICENCE_AMONG_LINES = 3
TO_FILL_IN = re.compile(r"\b[A-Z]+-OF-THE-[A-Z]+\b")
HOST_OR_PERSON = re.compile(r"\w+://([\w.-]+)|[\w.-]+@([\w-]+\.[\w.-]+)")
REAL_HOSTS = {"www.debian.org"}
# The licence itself, and files that cannot have comments.
WITHOUT_LICENCE = {"LICENSE", "tests/model/runtime/wrapped.txt"}
WITHOUT_COMMENTS = {".json", ".zst"}
SEEDS = "tests/fuzz/corpus/"
NOT_OURS = re.compile(r"(.*/)?(build[^/]*|\.git|__pycache__|\.[a-z_]+_cache)/")


def pages(root):
    folders = [root, *(root / name for name in ("docs", "perf", "tests"))]
    found = {page for page in root.glob("*.md")}
    for folder in folders[1:]:
        found.update(folder.rglob("*.md"))
    return sorted(found)


def without_head(source):
    """Returns a C file without its leading comment lines."""
    lines = source.splitlines()
    while lines and lines[0].startswith("/*") and lines[0].endswith("*/"):
        lines.pop(0)
    return lines


def check_readme(root, _version):
    text = (root / "README.md").read_text()
    count = len(text.splitlines())
    if count > README_LINES_MAX:
        yield f"README.md has {count} lines, more than {README_LINES_MAX}"
    examples = re.findall(r"^```c\n(.*?)^```", text, re.M | re.S)
    if len(examples) != 1:
        yield f"README.md has {len(examples)} C examples, not one"
        return
    wanted = without_head((root / "docs/examples/quickstart.c").read_text())
    if examples[0].splitlines() != wanted:
        yield "README.md: the example is not docs/examples/quickstart.c"
    if len(examples[0].splitlines()) > EXAMPLE_LINES_MAX:
        yield f"README.md: the example has more than {EXAMPLE_LINES_MAX} lines"


    # Without dpkg-dev, meson chooses lib64 on Debian, where neither ldconfig nor pkg-config looks.
    if not re.search(r"^meson setup build-library .*--libdir=lib$", text, re.M):
        yield "README.md: the lines that install the library do not choose the folder lib"


def check_chinese(root, _version):
    ours, theirs = (FENCED.findall((root / name).read_text()) for name in ("README.md", "docs/README.zh-CN.md"))
    if not ours or ours != theirs:
        yield "docs/README.zh-CN.md: the code blocks are not those of README.md"
    theirs = (root / "docs/README.zh-CN.md").read_text()
    for name in re.findall(r"\]\(docs/([\w/-]+\.(?:md|svg)(?:#[\w-]+)?)\)", (root / "README.md").read_text()):
        if f"]({name})" not in theirs:
            yield f"docs/README.zh-CN.md: no link to {name}, which README.md has"
    translated = sorted((root / "docs/zh-CN").glob("*.md"))
    if not translated:
        yield "docs/zh-CN has no pages"
    for page in translated:
        yield from differences(page, root / "docs" / page.name)


def differences(page, english):
    """Compares a Chinese page with its English one."""
    name = f"docs/zh-CN/{page.name}"
    if not english.exists():
        yield f"{name}: there is no docs/{page.name}"
        return
    theirs, ours = page.read_text(), english.read_text()
    if FENCED.findall(theirs) != FENCED.findall(ours):
        yield f"{name}: the code blocks are not those of docs/{page.name}"
    if HEADING.findall(FENCED.sub("", theirs)) != HEADING.findall(FENCED.sub("", ours)):
        yield f"{name}: the headings are not as many, or not of the levels, of those of docs/{page.name}"
    if f"](../{page.name})" not in theirs.split("\n## ")[0]:
        yield f"{name}: no link to docs/{page.name} at the top"
    if f"](zh-CN/{page.name})" not in ours.split("\n## ")[0]:
        yield f"docs/{page.name}: no link to {name} at the top"


def options(root):
    """Returns the fields of struct tw_options."""
    struct = re.search(r"^struct tw_options \{\n(.*?)^\};", (root / "include/tickwheel/engine.h").read_text(), re.M | re.S)
    code = re.sub(r"/\*.*?\*/", "", struct.group(1), flags=re.S)
    return re.findall(r"(\w+);", code)


def check_tuning(root, _version):
    text = (root / "docs/tuning.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", text, re.M)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    for name in options(root):
        if name not in named:
            yield f"docs/tuning.md: the table of options has no row of `{name}`"
    table = text.partition("## Every option")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    if not rows:
        yield "docs/tuning.md: there is no table of options"
    for name in [name for row in rows for name in re.findall(r"`(\w+)`", row)]:
        if name not in options(root):
            yield f"docs/tuning.md: there is no option `{name}`"


def check_quoted(root, _version):
    for page, example in QUOTED.items():
        code = (root / example).read_text()
        blocks = re.findall(r"^```c\n(.*?)^```", (root / page).read_text(), re.M | re.S)
        if not blocks:
            yield f"{page} has no code of {example}"
        for block in blocks:
            if block not in code:
                yield f"{page}: not in {example}: {block.splitlines()[0]}"


def check_names(root, _version):
    paths = [*(root / "include").rglob("*.h"), *(root / "include").rglob("*.hpp")]
    headers = "\n".join(path.read_text() for path in sorted(paths))
    known = set(NAME.findall(headers)) | PLACEHOLDERS
    for page in pages(root):
        text = page.read_text()
        for name in sorted(set(NAME.findall(text)) - known):
            yield f"{page.relative_to(root)}: {name} is in no public header"
        for path in sorted(set(PATH.findall(text))):
            if not (root / path).exists():
                yield f"{page.relative_to(root)}: {path} is not there"


def check_codes(root, _version):
    codes = {code for path in (root / "include/tickwheel").glob("*.h") for code in CODE.findall(path.read_text())}
    texts = set(re.findall(r"^\t\[(E[A-Z0-9]+)\] = ", (root / "src/api/process.c").read_text(), re.M))
    explained = "\n".join(re.findall(r"^\| `-E.*?\|", (root / "docs/errors.md").read_text(), re.M))
    explained = set(CODE.findall(explained))
    for code in sorted({SAME_CODE.get(code, code) for code in codes}):
        if code not in texts:
            yield f"src/api/process.c: tw_strerror has no text for -{code}"
        if code not in explained:
            yield f"docs/errors.md: the table of codes does not explain -{code}"
    if not codes:
        yield "no header names a code"


def check_listed(root, _version):
    installed = (root / "docs/meson.build").read_text()
    linked = LINK.findall((root / "docs/README.md").read_text())
    for page in sorted((root / "docs").glob("*.md")):
        if f"'{page.name}'" not in installed:
            yield f"docs/{page.name} is not in docs/meson.build"
        if page.name not in linked and page.name != "README.md":
            yield f"docs/{page.name} is not linked from docs/README.md"
    for page in sorted((root / "docs/internals").glob("*.md")):
        if f"internals/{page.name}" not in linked:
            yield f"docs/internals/{page.name} is not linked from docs/README.md"
    if "docs/README.md" not in LINK.findall((root / "README.md").read_text()):
        yield "README.md does not lead to docs/README.md"


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(root, _version):
    seen = 0
    for page in pages(root):
        for target in LINK.findall(FENCED.sub("", page.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            seen += 1
            name, _, anchor = target.partition("#")
            path = page.parent / name if name else page
            if not path.exists():
                yield f"{page.relative_to(root)}: {target} leads nowhere"
            elif anchor and anchor not in anchors(path):
                yield f"{page.relative_to(root)}: {target} names no heading"
    if seen == 0:
        yield "no links found at all"


def check_version(root, version):
    header = (root / "include/tickwheel/version.h").read_text()
    parts = [re.search(rf"TW_VERSION_{part} (\d+)", header) for part in ("MAJOR", "MINOR", "PATCH")]
    if None in parts or ".".join(part.group(1) for part in parts) != version:
        yield f"version.h is not {version}"
    newest = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.M)
    if newest is None or newest.group(1) != version:
        yield f"the newest entry of CHANGELOG.md is not {version}"


def files_of_folder(root):
    """Lists the files without git: everything in the folder except builds and the like."""
    names = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return [name for name in names if not NOT_OURS.match(name)]


def tracked_files(root):
    """Returns the files that git knows. In an unpacked archive, or without git, returns all files."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return files_of_folder(root)
    names = [name for name in listed.stdout.split("\0") if (root / name).is_file()]
    return names or files_of_folder(root)


def names_licence(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(LICENCE in line for line in lines[:LICENCE_AMONG_LINES] + lines[-LICENCE_AMONG_LINES:])


def check_licence(root, _version):
    seen = 0
    for name in sorted(tracked_files(root)):
        path = root / name
        if name in WITHOUT_LICENCE or path.suffix in WITHOUT_COMMENTS or name.startswith(SEEDS):
            continue
        seen += 1
        if not names_licence(path):
            yield f"{name}: no line {LICENCE}"
    if seen == 0:
        yield "no files found at all"


def check_placeholders(root, _version):
    readme = root / "docs/packaging/README.md"
    used = set()
    for name in sorted(tracked_files(root)):
        if not name.startswith("docs/packaging/"):
            continue
        text = (root / name).read_text(encoding="utf-8")
        for match in HOST_OR_PERSON.finditer(text):
            if match[1] not in REAL_HOSTS:
                yield f"{name}: {match[0]} looks like a fact"
        if root / name != readme:
            used.update(TO_FILL_IN.findall(text))
    listed = set(TO_FILL_IN.findall(readme.read_text()))
    if used != listed or not used:
        yield f"docs/packaging/README.md lists {sorted(listed)}, the files have {sorted(used)}"


def main():
    check, root, version = sys.argv[1:4]
    wrong = list(globals()[f"check_{check}"](pathlib.Path(root), version))
    print("\n".join(wrong) if wrong else f"{check}: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
