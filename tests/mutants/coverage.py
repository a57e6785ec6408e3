# SPDX-License-Identifier: MIT
"""Which check comes to which function: what never comes to a mutant cannot catch it.

A check runs once with a library that says to which places it comes (cover.c). Functions are named by
file and name, inlined ones too. What no check was seen in counts as seen by all.
"""
import subprocess
import threading
from pathlib import Path

MAP_BYTES = 8 << 20


def places_read(path):
    data = path.read_bytes()
    at, found = data.find(1), set()
    while at >= 0:
        found.add(at - 1)  # the call, not where it returns to
        at = data.find(1, at + 1)
    return found


class Functions:
    """Places of one library or program as functions."""

    def __init__(self, binary):
        self.binary = binary
        self.known = {}
        self.lock = threading.Lock()
        # A program without position-independent code has its places at a base.
        self.base = 0
        header = subprocess.run(["readelf", "-lW", binary], capture_output=True, text=True, check=True).stdout
        for line in header.splitlines():
            if line.split()[:2] == ["LOAD", "0x000000"]:
                self.base = int(line.split()[2], 16)

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
                self.known[place] = {f"{file}/{name}" for file, name in names}
        return set().union(*(self.known[place] for place in places)) if places else set()


class Map:
    """Check name -> functions."""

    def __init__(self):
        self.seen = {}
        self.all = set()
        # Whether all was found with the library as it is.
        self.fresh = False

    def add(self, check, functions):
        self.seen[check] = set(functions)
        self.all |= self.seen[check]

    def comes_to(self, check, mutant):
        name = f"{Path(mutant.path).name}/{mutant.function}"
        return name not in self.all or check not in self.seen or name in self.seen[check]
