#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the shared library's binary interface with that of the baseline.

usage: abi.py check LIBRARY    compares a library that gcc has built with -g
       abi.py move gcc         writes the baseline again, from a build of its own with that compiler
       abi.py self-test LIBRARY
                              checks that a removal or a change is rejected, and an addition is not

A change that would break an existing program is rejected: a function or symbol is gone, or a type has
changed. New functions, and new fields at the end of a struct that begins with its size, are reported and
pass. The author of an addition moves the baseline: docs/internals/releasing.md.

Exit code: 0: no program breaks; 1: one would; 77: there is nothing to compare with, because abidiff or -g is
missing, or the machine is not that of the baseline. With TESTS_ABI_REQUIRED=1 in the environment it is 1 instead
of 77.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADERS = ROOT / "include"
BASELINE = HERE / f"abi-{platform.machine()}.xml"
LICENCE = "<!-- SPDX-License-Identifier: MIT -->\n"
GOOD, WRONG, SKIPPED = 0, 1, 77
# Describes only what a program can see, and not where or how the library was built.
ABIDW = ["abidw", "--suppressions", HERE / "private.suppr", "--exported-interfaces-only", "--no-corpus-path",
         "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--type-id-style", "hash"]
ABIDIFF = ["abidiff", "--no-default-suppression", "--no-show-locs"]
# Bits of abidiff's exit code.
ABIDIFF_FAILED = 1 | 2


class Skipped(Exception):
    """Raised if there is nothing to compare with."""


def described(library):
    """Returns the interface of a library as XML. It does not depend on where the library was built."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as out:
        subprocess.run([*ABIDW, "--out-file", out.name, library], check=True)
        text = pathlib.Path(out.name).read_text()
    if "<function-decl" not in text:
        raise Skipped(f"{library}: no debugging information")
    private = re.search(r"<class-decl name='(twi_\w+|tw_engine)' size-in-bits", text)
    if private:
        raise RuntimeError(f"{library}: {private.group(1)} is private, and described")
    # Makes the paths relative, because the build's folder may be anywhere.
    return re.sub(r"path='[^']*?(src|include)/", r"path='\1/", text) + LICENCE


def sized_structs():
    """Returns the structs that begin with their size. The library copies of them only as many bytes as the smaller of
    its own size and the caller's.
    """
    text = "".join(header.read_text() for header in sorted(HEADERS.rglob("*.h")))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.findall(r"^struct (tw_\w+) \{\s*size_t size;", text, re.M)


def struct_of(text, name):
    """Returns two parts of a description: the whole struct, and its fields. None if it has no such struct."""
    found = re.search(rf"^( *<class-decl name='{name}' size-in-bits=.*\n)((?:.*\n)*?) *</class-decl>\n", text, re.M)
    return found and (found.group(0), found.group(2))


def ungrown(before, after):
    """Returns the description `after`, but with structs as in `before` if they only got new fields at their ends."""
    for name in sized_structs():
        old, new = struct_of(before, name), struct_of(after, name)
        if old and new and new[1].startswith(old[1]):
            after = after.replace(new[0], old[0])
    return after


def differences(before, after, *options):
    """Returns abidiff's output for two descriptions; empty if they are the same."""
    with tempfile.TemporaryDirectory() as folder:
        pair = pathlib.Path(folder, "before.xml"), pathlib.Path(folder, "after.xml")
        for path, text in zip(pair, (before, after)):
            path.write_text(text)
        run = subprocess.run([*ABIDIFF, *options, *pair], capture_output=True, text=True, check=False)
    if run.returncode & ABIDIFF_FAILED:
        raise RuntimeError(f"abidiff failed: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr if run.returncode else ""


def compare(before, after):
    """Returns the differences that break a program, and all differences."""
    return differences(before, ungrown(before, after), "--no-added-syms"), differences(before, after)


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skipped(f"no {program}")


def check(library):
    needs("abidw", "abidiff")
    if not BASELINE.exists():
        raise Skipped(f"no baseline {BASELINE.name}")
    broken, new = compare(BASELINE.read_text(), described(library))
    if broken:
        print(broken)
        print("The binary interface has changed. If it may, move the baseline: docs/internals/releasing.md")
        return WRONG
    if new:
        print(new)
        print(f"New, and no harm: move the baseline, {pathlib.Path(__file__).name} move gcc")
    return GOOD


def move(compiler):
    needs("abidw", "meson", compiler)
    options = ["tests", "perf", "examples", "docs", "glib", "libuv"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["meson", "setup", folder, ROOT, "-Ddebug=true", *(f"-D{name}=disabled" for name in options)],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CC": compiler},
        )
        subprocess.run(["ninja", "-C", folder], check=True, stdout=subprocess.DEVNULL)
        BASELINE.write_text(described(next(pathlib.Path(folder, "src").glob("libtickwheel.so.*.*.*[0-9]"))))
    print(f"{BASELINE.relative_to(ROOT)}: written")
    return GOOD


def without(text, symbol):
    """Returns the description of a library that never had the function."""
    text = re.sub(rf"^ *<elf-symbol name='{symbol}' .*\n", "", text, flags=re.M)
    return re.sub(rf"^ *<function-decl name='{symbol}' .*\n(.*\n)*? *</function-decl>\n", "", text, flags=re.M)


STATS = r"(<class-decl name='tw_stats' size-in-bits=')(\d+)('[^>]*>\n)((?:.*\n)*?)( *</class-decl>)"
FIELD = r"^ *<data-member .*\n.*\n *</data-member>\n"


def stats_edited(text, edit):
    """Returns the description with another size and other fields of tw_stats."""
    def replaced(match):
        size, fields = edit(int(match.group(2)), match.group(4))
        return match.group(1) + str(size) + match.group(3) + fields + match.group(5)

    return re.sub(STATS, replaced, text, count=1)


def grown(size, fields):
    field = re.findall(FIELD, fields, re.M)[-1]
    field = re.sub(r"name='\w+'", "name='added'", field)
    return size + 64, fields + re.sub(r"offset-in-bits='\d+'", f"offset-in-bits='{size}'", field)


def swapped(size, fields):
    """An edit for stats_edited(): exchanges two fields of the same type."""
    names = re.findall(r"var-decl name='(\w+)'", fields)[1:3]
    there = dict(zip(names, reversed(names)))
    return size, re.sub("name='({}|{})'".format(*names), lambda match: f"name='{there[match.group(1)]}'", fields)


def signed(whole):
    """An edit for stats_edited(): makes the first counter a signed number."""
    number = re.search(r"<typedef-decl name='int64_t' type-id='\w+' id='(\w+)'", whole).group(1)
    return lambda size, fields: (size, re.sub(r"(name='scheduled' type-id=')\w+", rf"\g<1>{number}", fields))


def self_test(library):
    needs("abidw", "abidiff")
    whole = described(library)
    less = without(whole, "tw_cancel_many")
    more = stats_edited(whole, grown)
    plans = [
        ("the same", whole, whole, False, False),
        ("a function gone", whole, less, True, True),
        ("a function added", less, whole, False, True),
        ("a struct that grew at its end", whole, more, False, True),
        ("a struct that lost its end", more, whole, True, True),
        ("fields swapped", whole, stats_edited(whole, swapped), True, True),
        ("fields swapped in a struct that grew", whole, stats_edited(more, swapped), True, True),
        ("a field of another type", whole, stats_edited(whole, signed(whole)), True, True),
    ]
    code = GOOD
    for name, before, after, breaks, tells in plans:
        broken, new = compare(before, after)
        if (bool(broken), bool(new)) != (breaks, tells):
            print(f"{name}: rejected {bool(broken)}, told {bool(new)}\n{broken or new}")
            code = WRONG
    return code


def main():
    calls = {"check": check, "move": move, "self-test": self_test}
    if len(sys.argv) != 3 or sys.argv[1] not in calls:
        print(__doc__)
        return WRONG
    try:
        return calls[sys.argv[1]](sys.argv[2])
    except Skipped as reason:
        print(reason)
        return WRONG if os.environ.get("TESTS_ABI_REQUIRED") == "1" else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
