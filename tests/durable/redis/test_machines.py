#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tests of machines.py, on Redis.

usage: test_machines.py WORKER [unittest's arguments]

Seen to fail with the defects that planted.py lists.
"""
import collections
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from machines import ABSORBED, DONE, History, PLACE, Machines as Base  # noqa: E402
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
        """Returns whether the data is a commit. Heartbeats and claims have fewer arguments, and queries have no
        batch number.
        """
        return b"EVALSHA" in data and len(data) > 1000

    def drained(self):
        return self.server("HLEN", key("timer")) == 0

    def session_is_over(self, name):
        return all(row[9:] != name.encode() for row in self.server("HVALS", key("session")))

    def reaped(self, history):
        """Returns how many runs of each timer the server may have lost: those of a process that was killed, or
        that had more than one session.
        """
        lost = {name for runs in history.begins.values() for name, *_ in runs if history.sessions.get(name, 2) > 1}
        return collections.Counter({id: sum(name in lost for name, *_ in runs[:-1]) for id, runs in history.begins.items()})


class Everysec(Machines):
    """The server may lose what it has acknowledged within the last two seconds, but nothing older.

    Seen to fail with this defect: after the kill, the server's files are replaced by older ones, from before
    the last load.
    """

    settings = ["appendfsync everysec"]

    def setUp(self):
        os.environ["TESTS_LEVEL"] = "2"
        self.addCleanup(os.environ.pop, "TESTS_LEVEL")
        # The facts that were acknowledged more than two seconds before a kill, and so must not be lost.
        self.old = set()
        super().setUp()

    def now_us(self):
        seconds, us = self.server("TIME")
        return int(seconds) * 10 ** 6 + int(us)

    def server_kill(self):
        """Kills the server. Measures the two seconds by the server's clock, so that a busy machine which delays
        the writes also delays the kill.
        """
        history, until = History(self.log), self.now_us() + 2 * 10 ** 6
        while self.now_us() < until:
            self.load()
            time.sleep(0.2)
        self.old |= {("timer", id) for id, outcome in history.acks.items() if outcome == DONE}
        self.old |= {("cancel", id) for id, outcomes in history.cancels.items() if outcomes & {DONE, ABSORBED}}
        super().server_kill()

    def must_keep(self, what, id):
        return (what, id) in self.old


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
