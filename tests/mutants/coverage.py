# SPDX-License-Identifier: MIT
"""Finds which check executes which line. A check that never executes a mutant's lines cannot catch it.

A check runs once with a library that records the places it executes (cover.c). A place is the start of a
block, so it counts for all lines of the block. A line may have no code of its own. So if no check executes a
line of a mutant, checks that execute its function count. If no check executes the function either, all
checks count.
"""
import bisect
import re
import subprocess
import threading
from pathlib import Path

MAP_BYTES = 8 << 20


def places_read(path):
    data = path.read_bytes()
    at, found = data.find(1), set()
    while at >= 0:
        found.add(at - 1)  # the call itself, not the address to which it returns
        at = data.find(1, at + 1)
    return found


class Functions:
    """Maps the places of one library or program to functions and lines."""

    def __init__(self, binary):
        self.binary = binary
        self.known = {}
        self.blocks = self.blocks_read()
        self.lock = threading.Lock()
        # In a program without position-independent code, all places are relative to a base.
        self.base = 0
        header = subprocess.run(["readelf", "-lW", binary], capture_output=True, text=True, check=True).stdout
        for line in header.splitlines():
            if line.split()[:2] == ["LOAD", "0x000000"]:
                self.base = int(line.split()[2], 16)

    def blocks_read(self):
        """Returns the places in order, each with the lines from it up to the next."""
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", self.binary], capture_output=True, text=True, check=True).stdout
        found = re.findall(r"^ *([0-9a-f]+):\s+(?:call|bl) .*<__sanitizer_cov_trace_pc.*\n(?= *([0-9a-f]+):)", code, re.M)
        # A place is the address of the last byte of the call.
        calls = sorted((int(at, 16), int(after, 16) - 1) for at, after in found)
        starts = [at for at, _ in calls]
        lines = [set() for _ in calls]
        table = subprocess.run(["objdump", "--dwarf=decodedline", self.binary], capture_output=True, text=True, check=True).stdout
        for file, line, at in re.findall(r"^(\S+)\s+(\d+)\s+0x([0-9a-f]+)", table, re.M):
            block = bisect.bisect_right(starts, int(at, 16)) - 1
            if block >= 0:
                lines[block].add(f"{Path(file).name}:{line}")
        return {place: found for (_, place), found in zip(calls, lines)}

    def of(self, places):
        with self.lock:
            return self.named(places)

    def named(self, places):
        new = sorted(places - self.known.keys())
        if new:
            given = "\n".join(hex(self.base + place) for place in new)
            command = ["addr2line", "-a", "-f", "-i", "-e", self.binary]
            said = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
            for text, place in zip(said.split("0x")[1:], new):
                lines = text.splitlines()[1:]
                names = {(Path(where.rsplit(":", 1)[0]).name, name.split(".")[0]) for name, where in zip(lines[::2], lines[1::2])}
                self.known[place] = {f"{file}/{name}" for file, name in names} | self.blocks[self.base + place]
        return set().union(*(self.known[place] for place in places)) if places else set()


class Map:
    """Check name -> the functions and lines that it executes."""

    def __init__(self):
        self.seen = {}
        self.all = set()
        # Whether every check was recorded with the present library.
        self.fresh = False

    def add(self, check, functions):
        self.seen[check] = set(functions)
        self.all |= self.seen[check]

    def comes_to(self, check, mutant):
        if check not in self.seen:
            return True
        file = Path(mutant.path).name
        lines = {f"{file}:{line}" for line in range(mutant.line, mutant.last_line + 1)} & self.all
        names = lines or {f"{file}/{mutant.function}"} & self.all
        return not names or bool(names & self.seen[check])
