#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes random commits, claims, releases and lists with the store's scripts, and the same in a model. After each
step, all keys of the server must be as the model says.

There are three sessions, each of which may end at any time. There are only twelve serials, so that several
operations of one commit often have the same timer.

Seen to fail with these defects: a timer that is put and moved in one commit keeps its first deadline; an end does
not check the fence; a key stays taken; a claim keeps the mark of a start; a claim takes timers in the order of kinds.

usage: test_random.py FOLDER-OF-SCRIPTS STEPS SEED
"""
import pathlib
import random
import struct
import sys
import time
from types import SimpleNamespace

from server import Server

SCRIPTS, STEPS, SEED = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
NAMES = "meta session beat outcomes timer run free held key dead buried ended kind paused".split()
KEYS = [f"{{random:0}}:{name}" for name in NAMES]
PUT, DELETE, MOVE, START, BURY, REVIVE, DROP = range(1, 8)
PRESENT, RUNNING, ATTEMPTED, ABSENT, FENCE = 2, 3, 4, 5, 2 ** 32 - 1
OWN, MINE, RUNS = 1, 2, 4
STARTED, OPEN, KEYED = 1, 2, 4
KINDS = ["mail", "call"]
AHEAD_US, SESSION_US = 5 * 10 ** 6, 3600 * 10 ** 6
FAR_NS = 10 ** 15


def eight(number):
    return struct.pack(">Q", number)


def due_text(due):
    return eight(due + 2 ** 63)


def head(timer):
    return due_text(timer.due) + struct.pack(">II", timer.place + 2 ** 31, timer.kind)


def tail(timer):
    return bytes([len(timer.key)]) + timer.key + timer.payload


def order(item):
    return item[1].due, item[1].place, item[0]


class Random:
    def __init__(self, server):
        self.server, self.random = server, random.Random(SEED)
        self.timers, self.dead, self.now = {}, {}, time.time_ns()
        self.id, _ = self.script("open", *KINDS)
        self.batches, self.over = {}, None
        self.sessions = [self.session() for _ in range(3)]
        self.kinds = [struct.pack(">I", i + 1) + name.encode() for i, name in enumerate(KINDS)]

    def script(self, name, *arguments):
        text = "".join((SCRIPTS / f"{part}.lua").read_text() for part in ("clock", "common", name))
        return self.server("EVAL", text, len(KEYS), *KEYS, *arguments)

    def batch(self, name, session, *arguments):
        self.batches[session] += 1
        return self.script(name, self.id, eight(session), self.batches[session], *arguments)

    def session(self):
        number = int(self.script("session", self.id, SESSION_US, "x")[0])
        self.batches[number] = 0
        return number

    def end_session(self, session):
        """Ends the session, but only if no timer still has the session that ended before."""
        if all(timer.session != self.over for timer in self.timers.values()):
            self.server("ZADD", KEYS[2], 0, eight(session))
            self.over, self.sessions[self.sessions.index(session)] = session, self.session()

    # Each of the next functions makes one operation in the model. It returns None, or its outcome with an id.

    def may(self, timer, op):
        runs = timer.marks & STARTED and timer.session not in (0, self.over)
        return (op.fence != 0 and timer.session == op.fence) or not (op.flags & OWN or runs)

    def put(self, op, session):
        there = op.serial if op.serial in self.timers else None
        for serial, timer in self.timers.items():
            if there is None and op.key and timer.key == op.key:
                there = serial
        if there is not None:
            return PRESENT, self.timers[there].place, there
        self.timers[op.serial] = SimpleNamespace(
            due=op.due, place=op.place, kind=op.kind, key=op.key, payload=op.payload, session=session if op.flags & MINE else 0,
            fence=0, attempt=op.attempt, marks=(STARTED | OPEN if op.flags & RUNS else 0) | (KEYED if op.key else 0))
        return None

    def delete(self, op, timer):
        if timer is None or not self.may(timer, op):
            return (ABSENT if timer is None or op.flags & OWN else RUNNING), op.place, op.serial
        del self.timers[op.serial]
        return (ATTEMPTED, op.place, op.serial) if timer.attempt and not op.flags & OWN else None

    def move(self, op, timer, session):
        if timer is None or not self.may(timer, op):
            return (ABSENT if timer is None or op.flags & OWN else RUNNING), op.place, op.serial
        timer.marks &= ~STARTED
        if op.flags & OWN or (op.fence != 0 and timer.session == op.fence):
            timer.marks, timer.attempt = timer.marks & ~OPEN, op.attempt
        timer.due, timer.session = op.due, session if op.flags & MINE else 0
        return None

    def start(self, op, timer, session, fence):
        if timer is None or timer.session != session or op.fence != session:
            return ABSENT, op.place, op.serial
        if timer.due > self.now:
            return PRESENT, op.place, op.serial
        # All starts of one commit have the same fence.
        assert fence >= timer.fence, (fence, timer.fence)
        timer.marks, timer.attempt, timer.fence = timer.marks | STARTED | OPEN, op.attempt, fence
        return None

    def bury(self, op, timer):
        if timer is None or op.fence == 0 or timer.session != op.fence:
            return ABSENT, op.place, op.serial
        self.dead[op.serial] = self.timers.pop(op.serial)
        self.dead[op.serial].attempt = op.attempt
        return None

    def revive(self, op, letter, session):
        if letter is None or op.serial in self.timers:
            return ABSENT, op.place, op.serial
        del self.dead[op.serial]
        letter.key, letter.due, letter.attempt, letter.fence, letter.marks = b"", op.due, 0, 0, 0
        letter.session = session if op.flags & MINE else 0
        self.timers[op.serial] = letter
        return None

    def drop(self, op, letter):
        if letter is None:
            return ABSENT, op.place, op.serial
        del self.dead[op.serial]
        return None

    def model(self, op, session, fence):
        timer, letter = (rows.get(op.serial) for rows in (self.timers, self.dead))
        timer = timer if timer and timer.place == op.place else None
        letter = letter if letter and letter.place == op.place else None
        return {PUT: lambda: self.put(op, session), DELETE: lambda: self.delete(op, timer), MOVE: lambda: self.move(op, timer, session),
                START: lambda: self.start(op, timer, session, fence), BURY: lambda: self.bury(op, timer),
                REVIVE: lambda: self.revive(op, letter, session), DROP: lambda: self.drop(op, letter)}[op.type]()

    # The next functions choose operations at random.

    def operation(self, session):
        pick = self.random
        serial = pick.randint(1, 12)
        known = self.timers.get(serial) or self.dead.get(serial)
        place = known.place if known and pick.random() < 0.8 else pick.randint(-1, 1)
        holder = self.timers[serial].session if serial in self.timers else 0
        mine = MINE if pick.random() < 0.5 else 0
        return SimpleNamespace(
            type=pick.choice([PUT, PUT, PUT, DELETE, DELETE, MOVE, MOVE, START, BURY, REVIVE, DROP]), serial=serial, place=place,
            flags=(OWN if pick.random() < 0.3 else 0) | mine | (RUNS if mine and pick.random() < 0.4 else 0),
            attempt=pick.randint(0, 2), fence=pick.choice([0, session, session, holder, self.sessions[0], self.over or 0]),
            due=self.now + pick.randint(-5, 5) * 10 ** 9 + pick.choice([FAR_NS, -FAR_NS]), kind=pick.randint(1, 2),
            key=pick.choice([b"", b"a", b"b", b"c"]), payload=bytes(pick.randint(0, 255) for _ in range(pick.randint(0, 5))))

    def encoded(self, op):
        text = bytes([op.type, op.flags]) + eight(op.serial) + eight(op.attempt) + eight(op.fence)
        if op.type == PUT:
            return text + head(op) + struct.pack(">I", 9) + tail(op)
        return text + head(op)[:12]

    def commit(self, session):
        ops = [self.operation(session) for _ in range(self.random.randint(1, 25))]
        _, text = self.batch("commit", session, 1, 1, 0, *map(self.encoded, ops))
        said = [struct.unpack(">IIIQ", text[at:at + 20]) for at in range(0, len(text), 20)]
        fence = next((serial for number, _, _, serial in said if number == FENCE), 0)
        outcomes = {number: (outcome, place - 2 ** 31, serial) for number, outcome, place, serial in said if number != FENCE}
        for i, op in enumerate(ops):
            expected = self.model(op, session, fence)
            assert outcomes.get(i) == expected, (i, op, outcomes.get(i), expected)

    def claim(self, session):
        most = left = self.random.choice([1, 2, 3, 1000])
        held = sorted((item for item in self.timers.items() if item[1].session == self.over is not None), key=order)
        for _, timer in held[:most]:
            timer.session, timer.marks, left = 0, timer.marks & ~STARTED, left - 1
        reply = self.batch("claim", session, AHEAD_US, most, *self.kinds)
        due = sorted((item for item in self.timers.items() if item[1].session == 0 and item[1].due <= self.now), key=order)
        got = [struct.unpack(">Q", serial)[0] for serial in reply[1::3]]
        # Timers of two kinds with equal deadlines may come in any order.
        assert [self.timers[serial].due for serial in got] == [timer.due for _, timer in due[:left]], (got, due)
        assert reply[0] == (1 if held and left == 0 else 0), reply[0]
        for serial in got:
            self.timers[serial].session = session

    def release(self, session):
        picked = self.random.sample(range(1, 13), 4)
        self.batch("release", session, *map(eight, picked))
        for serial in picked:
            timer = self.timers.get(serial)
            if timer and timer.session == session and not timer.marks & STARTED:
                timer.session = 0

    def list(self, _):
        most = self.random.choice([1, 5, 1000])
        members = sorted(self.script("near", self.id, "", eight(2 ** 64 - 1), most, *(kind[:4] for kind in self.kinds)))
        expected = [head(timer)[:12] + eight(serial) for serial, timer in sorted(self.timers.items(), key=order)]
        assert members == expected[:len(members)] and len(members) >= min(most, len(expected)), (members, expected)

    # The next functions compare all keys with the model.

    def hash(self, name):
        flat = self.server("HGETALL", f"{{random:0}}:{name}")
        return dict(zip(flat[::2], flat[1::2]))

    def check_runs(self, runs, values):
        for serial, timer in self.timers.items():
            value, run = values[eight(serial)], runs.get(eight(serial))
            full = eight(timer.session) + eight(timer.fence) + eight(timer.attempt) + bytes([timer.marks])
            assert value[8:16] == head(timer)[8:] and value[20:] == tail(timer), (serial, timer, value)
            if run is None:
                assert value[:8] == head(timer)[:8] and timer.session == timer.attempt == 0, (serial, timer)
            else:
                assert run == head(timer) + full, (serial, timer, run)

    def check(self):
        runs, values, letters = (self.hash(name) for name in ("run", "timer", "dead"))
        assert set(values) == set(map(eight, self.timers)) and set(runs) <= set(values), (set(values), set(runs))
        self.check_runs(runs, values)
        free = sorted(head(t)[12:] + head(t)[:12] + eight(serial) for serial, t in self.timers.items() if t.session == 0)
        held = sorted(eight(t.session) + head(t)[:12] + eight(serial) for serial, t in self.timers.items() if t.session != 0)
        assert self.server("ZRANGE", KEYS[6], 0, -1) == free and self.server("ZRANGE", KEYS[7], 0, -1) == held
        assert self.hash("key") == {t.key: eight(serial) for serial, t in self.timers.items() if t.key}
        assert set(letters) == set(map(eight, self.dead))
        for serial, timer in self.dead.items():
            letter = letters[eight(serial)]
            assert letter[8:32] == eight(timer.attempt) + head(timer) and letter[36:] == tail(timer), (serial, timer)
        buried = sorted(head(t)[8:12] + eight(serial) for serial, t in self.dead.items())
        assert self.server("ZRANGE", KEYS[10], 0, -1) == buried and self.server("ZCARD", KEYS[11]) == len(buried)

    def run(self):
        for step in range(STEPS):
            try:
                self.random.choice([self.commit, self.commit, self.commit, self.claim, self.release, self.list, self.end_session])(
                    self.random.choice(self.sessions))
                self.check()
            except AssertionError:
                print(f"seed {SEED}, step {step}")
                raise


if __name__ == "__main__":
    redis = Server(["appendonly no"])
    try:
        Random(redis.start()).run()
    finally:
        redis.end()
