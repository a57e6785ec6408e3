#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the trace points of a library are those that docs/tracing.md lists, with the listed arguments,
and that the scripts of docs/tracing use no others.

usage: check_probes.py CHECK SOURCE_ROOT [LIBRARY]

    none      the library has no trace point at all
    all       it has all that are documented, and no others; sizes and signs as documented
    sets      the same for the library of durable timers
    scripts   the scripts use documented probes and arguments; bpftrace compiles them for the library, if it is
              installed (or TESTS_TRACERS_REQUIRED is set)
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

PROVIDER = "tickwheel"
NOTES, STAPSDT, HEADER_BYTES = ".note.stapsdt", 3, 12
SIZES = {"pointer": {"8"}, "uint64_t": {"8"}, "int64_t": {"-8"},
         "number": {"1", "-4", "4", "8", "-8"}}


def rows(text, head):
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(f"| {head} |"):
            break
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell):
    return re.findall(r"`(\w+)`", cell)


def documented(root, head="probe"):
    """Returns probe -> the types of its arguments."""
    text = (root / "docs/tracing.md").read_text()
    types = {}
    for row in rows(text, "argument"):
        types.update(zip(names(row[0]), row[1].split(", ")))
    return {names(row[0])[0]: [types[name] for name in names(row[-1])]
            for row in rows(text, head)}


def section(image, wanted):
    """Returns the bytes of a section of a 64-bit little-endian ELF file; empty if there is no such section."""
    if image[:6] != b"\x7fELF\x02\x01":
        sys.exit("the library is no 64-bit little-endian ELF file")
    begin, = struct.unpack_from("<Q", image, 40)
    size, count, strings = struct.unpack_from("<HHH", image, 58)
    heads = [struct.unpack_from("<IIQQQQ", image, begin + size * i) for i in range(count)]
    for name, _, _, _, offset, length in heads:
        at = heads[strings][4] + name
        if image[at:image.index(b"\0", at)].decode() == wanted:
            return image[offset:offset + length]
    return b""


def padded(length):
    return (length + 3) & ~3


def notes(library):
    """Yields provider, name, semaphore, and the arguments' sizes, for each trace point."""
    data, at = section(pathlib.Path(library).read_bytes(), NOTES), 0
    while at < len(data):
        name_length, length, kind = struct.unpack_from("<III", data, at)
        begin = at + HEADER_BYTES + padded(name_length)
        if kind == STAPSDT:
            _, _, semaphore = struct.unpack_from("<QQQ", data, begin)
            words = data[begin + 24:begin + length].split(b"\0")[:3]
            provider, name, arguments = (word.decode() for word in words)
            yield provider, name, semaphore, re.findall(r"(-?\d)@", arguments)
        at = begin + padded(length)


def check_none(_root, library):
    for provider, name, _, _ in notes(library):
        yield f"a trace point {provider}:{name}, though none was asked for"


def place_judge(table, provider, name, semaphore, sizes):
    if provider != PROVIDER or name not in table:
        yield f"{provider}:{name} is not documented"
        return
    types = table[name]
    if semaphore != 0:
        yield f"{name} has a semaphore"
    if len(sizes) != len(types):
        yield f"{name} has {len(sizes)} arguments, documented are {len(types)}"
    for number, (size, kind) in enumerate(zip(sizes, types)):
        if size not in SIZES[kind]:
            yield f"{name}: argument {number} is a {kind}, and has size {size}"


def check_all(root, library):
    yield from table_check(documented(root), library)


def check_sets(root, library):
    yield from table_check(documented(root, "probe of a set"), library)


def table_check(table, library):
    seen = set()
    for provider, name, semaphore, sizes in notes(library):
        seen.add(name)
        yield from place_judge(table, provider, name, semaphore, sizes)
    for name in sorted(set(table) - seen):
        yield f"{name} is documented, and not in the library"


def clauses(text):
    """Yields the probe and the body of each clause of a script that is for one of our probes."""
    return re.findall(rf"^usdt:\$1:{PROVIDER}:(\w+)\s*(.*?)^\}}", text, re.M | re.S)


def script_judge(script, table):
    text = script.read_text()
    found = clauses(text)
    if len(found) != text.count("usdt:") or not found:
        yield f"{script.name}: not all of its probes are understood"
    for name, body in found:
        if name not in table:
            yield f"{script.name}: there is no probe {name}"
            continue
        for number in re.findall(r"\barg(\d)\b", body):
            if int(number) >= len(table[name]):
                yield f"{script.name}: {name} has no arg{number}"


def script_compile(bpftrace, script, library):
    """Lets bpftrace compile a script without loading it into the kernel. It requires root nevertheless."""
    done = subprocess.run([bpftrace, "-d", script, library, "1000"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        yield f"{script.name}: bpftrace says\n{done.stdout[-2000:]}"


def check_scripts(root, library):
    table = documented(root)
    scripts = sorted((root / "docs/tracing").glob("*.bt"))
    bpftrace = shutil.which("bpftrace")
    if len(scripts) < 3:
        yield "docs/tracing has fewer than three scripts"
    if "TESTS_TRACERS_REQUIRED" in os.environ and not (bpftrace and library and os.geteuid() == 0):
        yield "the scripts were not compiled: that takes bpftrace, systemtap-sdt-dev, and root"
    for script in scripts:
        yield from script_judge(script, table)
        if bpftrace and library and os.geteuid() == 0:
            yield from script_compile(bpftrace, script, library)


def main():
    check, root = sys.argv[1], pathlib.Path(sys.argv[2])
    library = sys.argv[3] if len(sys.argv) > 3 else None
    wrong = list(globals()["check_" + check](root, library))
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


main()
