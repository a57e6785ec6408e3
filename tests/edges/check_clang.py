#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lets clang check which thread may access which field, and that each atomic access names its order.

usage: check_clang.py CLANG SOURCE_ROOT -- FLAGS

-Wthread-safety: only the worker calls TWI_WORKER_ONLY functions and accesses TWI_WORKER_FIELD fields
(base/compiler.h). -Watomic-implicit-seq-cst: no plain use of an atomic. This checks each file of src/ and
tests/wheel, with and without test points. It also checks the planted files next to this script. There clang
must report exactly the lines that are marked wrong, each by the warning that the mark names.
"""
import pathlib
import re
import subprocess
import sys

WARNINGS = ["-Wthread-safety", "-Watomic-implicit-seq-cst"]
# The packages that these files need. If a package is missing, the file is neither built nor checked.
PACKAGES = {
    "executors/glib.c": "glib-2.0",
    "executors/uv.c": "libuv",
    "durable/postgres/": "libpq",
    "durable/redis/": "hiredis",
    "durable/tool/postgres/": "libpq",
    "durable/tool/redis/": "hiredis",
}


def compile_errors(clang, root, flags, path):
    command = [clang, "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-Werror", "-Wno-error=unused-command-line-argument"]
    folders = [f"-I{root / name}" for name in ("include", "src", "tests/support")] + ["-isystem", str(root / "tests/standin")]
    done = subprocess.run([*command, *WARNINGS, *folders, *flags, str(path)], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def package_flags(root, path):
    """Returns the flags of the package that a file needs, or None if the package is missing."""
    name = str(path.relative_to(root / "src")) if path.is_relative_to(root / "src") else ""
    package = next((package for begin, package in PACKAGES.items() if name.startswith(begin)), None)
    if package is None:
        return []
    done = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


def check_source(clang, root, flags):
    paths = sorted([*(root / "src").rglob("*.c"), *(root / "tests/wheel").glob("*.c")])
    if len(paths) < 2:
        yield "no sources found"
    for path in paths:
        own = package_flags(root, path)
        if own is None:
            continue
        for more in ([], ["-DTWI_TEST_POINTS"]):
            code, text = compile_errors(clang, root, flags + own + more, path)
            if code != 0:
                yield text


def check_planted(clang, root, flags):
    """Checks that clang reports the lines that end with a comment "wrong: -WNAME", and no other line."""
    for path in sorted(pathlib.Path(__file__).parent.glob("planted_*.c")):
        wanted = set()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            wanted.update((number, name) for name in re.findall(r"/\* wrong: (-W[\w-]+) \*/", line))
        _, text = compile_errors(clang, root, flags, path)
        found = re.findall(rf"{re.escape(path.name)}:(\d+):\d+: error: .*?\[-Werror,(-W[\w-]+)\]", text)
        found = {(int(number), name) for number, name in found}
        if not wanted or found != wanted:
            yield f"{path.name}: wanted {sorted(wanted)}, reported {sorted(found)}\n{text}"


def main():
    clang, root = sys.argv[1], pathlib.Path(sys.argv[2])
    flags = sys.argv[sys.argv.index("--") + 1 :]
    wrong = [*check_source(clang, root, flags), *check_planted(clang, root, flags)]
    print("\n".join(wrong) if wrong else "clang: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
