#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The processes of machines.py, on Redis.

usage: test_machines.py WORKER [unittest's arguments]

Seen to fail: planted.py has the defects.
"""
import collections
import os
import pathlib
import sys
import unittest

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from machines import PLACE, Machines as Base  # noqa: E402
from server import Server  # noqa: E402


def key(name):
    return f"{{{PLACE}:0}}:{name}"


class Machines(Base, unittest.TestCase):
    settings = []

    def server_start(self):
        return Server(self.settings).start()

    def socket(self, folder):
        return folder / "redis.sock"

    def address(self, folder):
        return str(self.socket(folder))

    def is_batch(self, data):
        """A commit: heartbeats and claims have fewer arguments, and questions no number of a batch."""
        return b"EVALSHA" in data and len(data) > 1000

    def drained(self):
        return self.server("HLEN", key("timer")) == 0

    def session_is_over(self, name):
        return all(row[9:] != name.encode() for row in self.server("HVALS", key("session")))

    def reaped(self, history):
        """A process that was killed, or had more than one session, may have lost any of its runs, each once."""
        lost = {name for runs in history.begins.values() for name, *_ in runs if history.sessions.get(name, 2) > 1}
        return collections.Counter({id: sum(name in lost for name, *_ in runs[:-1]) for id, runs in history.begins.items()})


class Everysec(Machines):
    """The server may lose what it has acknowledged within the last two seconds; it is counted. Its clock goes on."""

    settings = ["appendfsync everysec"]
    may_lose = 10 ** 9

    def setUp(self):
        os.environ["TESTS_LEVEL"] = "2"
        self.addCleanup(os.environ.pop, "TESTS_LEVEL")
        super().setUp()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
