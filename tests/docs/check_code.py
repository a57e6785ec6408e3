#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the code on the pages, and in the comments of the headers, compiles or can be parsed.

usage: check_code.py SOURCE_ROOT C_COMPILER...

C: a block with a `main` compiles by itself. The other blocks of a page make one source, after the names of
prelude.h. Functions, constants and structs are at file scope in their order. The statements are in one
function, so that a block may use what an earlier one has declared. A line of three dots stands for omitted
lines. C++: the same, by the compiler CXX or c++, if there is one; the other blocks are at file scope. Shell,
Python, JSON and meson are parsed. The test `installed` builds the CMake code. Blocks without a language are
output.
"""
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```([\w+-]*)\n(.*?)^```", re.M | re.S)
LEFT_OUT = re.compile(r"^\s*(?:\.\.\.|…)\s*$", re.M)
FILE_SCOPE = re.compile(r"^(?:static |#|extern |(?:struct|enum|union) \w+ \{)")
PROGRAM = re.compile(r"^int main\(", re.M)
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter", "-Wno-switch"]
# Static functions that a block only declares, because the reader writes them. The check removes `static`,
# because a static function would need a body here.
DECLARED = re.compile(r"^static (?!const )([^={};]*\)\s*;)", re.M)
CPP_HEAD = "#include <cstdio>\n#include <tickwheel.hpp>\nusing namespace std::chrono_literals;\n"
PROGRAM_HEAD = "#include <stdio.h>\n#include <unistd.h>\n#include <tickwheel.h>\n"
BLOCKS_MIN = 30


def chunks(block):
    """Returns the parts of a block. A part begins in the first column and includes the lines that are indented
    or close it.
    """
    found = []
    for line in block.splitlines():
        if found and (not line or line[0] in " \t}") or line.startswith("case ") or line == "{":
            found[-1].append(line)
        else:
            found.append([line])
    return ["\n".join(lines) for lines in found]


def source_of(page, blocks):
    """Makes one source of the fragments of a page."""
    scope, statements = [], []
    for block in blocks:
        after = ""
        for chunk in chunks(LEFT_OUT.sub("", block)):
            if chunk.startswith("/*") and chunk.rstrip().endswith("*/"):
                continue
            at_scope = FILE_SCOPE.match(chunk) or (after and FILE_SCOPE.match(after))
            (scope if at_scope else statements).append(chunk)
            after = chunk if chunk.rstrip().endswith(",") else ""
    mark = re.sub(r"\W+", "_", page.removesuffix(".md").removesuffix(".h")).upper()
    declared = DECLARED.sub(r"\1", "\n".join(scope))
    body = "\n".join(statements)
    return f'#define PAGE_{mark}\n#include "prelude.h"\n{declared}\nvoid fragments(void)\n{{\n{body}\n}}\n'


# Libraries of other projects, by their header. If the library is not installed, pages that include the header
# are not compiled.
OTHERS = {"libpq-fe.h": "libpq"}


def flags_of_others(source):
    flags = []
    for header, package in OTHERS.items():
        if f"<{header}>" not in source:
            continue
        done = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        flags += done.stdout.split()
    return flags


def compiled(root, compiler, page, source, suffix=".c", standard="gnu11"):
    others = flags_of_others(source)
    if others is None:
        return
    with tempfile.NamedTemporaryFile("w", suffix=suffix, encoding="utf-8") as file:
        file.write(source)
        file.flush()
        folders = [f"-I{root / 'include'}", f"-I{root / 'tests/docs'}"]
        command = [*compiler, f"-std={standard}", "-fsyntax-only", *WARNINGS, *folders, *others, file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        numbered = "\n".join(f"{at:3} {line}" for at, line in enumerate(source.splitlines(), 1))
        yield f"{page}: does not compile\n{done.stderr}{numbered}"


def check_c(root, compiler, page, blocks):
    programs = [block for block in blocks if PROGRAM.search(block)]
    fragments = [block for block in blocks if not PROGRAM.search(block)]
    for program in programs:
        head = "" if "#include" in program else PROGRAM_HEAD
        yield from compiled(root, compiler, page, head + program)
    if fragments:
        yield from compiled(root, compiler, page, source_of(page, fragments))


def check_cpp(root, page, blocks):
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        return
    programs = [block for block in blocks if PROGRAM.search(block)]
    fragments = [LEFT_OUT.sub("", block) for block in blocks if block not in programs]
    for source in [*programs, CPP_HEAD + "\n".join(fragments)]:
        yield from compiled(root, compiler.split(), page, source, ".cc", "c++20")


def check_shell(page, block):
    done = subprocess.run(["sh", "-n"], input=block, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"{page}: no shell: {done.stderr}"


def parse_meson(block):
    """Parses the code with meson's own parser, if Python finds it."""
    try:
        from mesonbuild import mparser
    except ImportError:
        return
    mparser.Parser(block, "meson.build").parse()


PARSERS = {"python": ast.parse, "json": json.loads, "meson": parse_meson}
UNPARSED = {"", "text", "cmake"}


def check_other(page, language, block):
    if language == "sh":
        yield from check_shell(page, block)
    elif language in PARSERS:
        try:
            PARSERS[language](block)
        except Exception as error:  # a parser of any language may raise anything
            yield f"{page}: no {language}: {error}"
    elif language not in UNPARSED:
        yield f"{page}: no check for blocks of {language!r}"


def pages(root):
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "perf").glob("*.md"), *root.glob("tests/*/*.md")]
    for page in sorted(found):
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        yield str(page.relative_to(root)), [(language or "", block) for language, block in blocks]


def header_code(root):
    """Returns the code in the comments of the headers."""
    for header in sorted([root / "include/tickwheel.h", *(root / "include/tickwheel").glob("*.h")]):
        comments = re.findall(r"^/\*\*.*?\*/", header.read_text(encoding="utf-8"), re.M | re.S)
        blocks = []
        for text in comments:
            bare = "\n".join(re.sub(r"^ \* ?", "", line) for line in text.splitlines()[1:-1])
            blocks += re.findall(r"(?:^(?: {4}.*)?\n)*^ {4}.*$", bare, re.M)
        if blocks:
            yield header.name, [("c", re.sub(r"^ {4}", "", block, flags=re.M)) for block in blocks]


def check(root, compiler):
    seen = 0
    for page, blocks in [*pages(root), *header_code(root)]:
        seen += len(blocks)
        yield from check_c(root, compiler, page, [block for language, block in blocks if language == "c"])
        yield from check_cpp(root, page, [block for language, block in blocks if language == "cpp"])
        for language, block in blocks:
            if language not in ("c", "cpp"):
                yield from check_other(page, language, block)
    if seen < BLOCKS_MIN:
        yield f"only {seen} blocks found"


def main():
    root, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    wrong = list(check(root, compiler))
    print("\n".join(wrong) if wrong else "code: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
