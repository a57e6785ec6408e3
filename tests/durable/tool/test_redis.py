#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests tickwheel-durable --redis: what it shows of timers in a server, what it changes, and its messages for
bad input.

Seen to fail with these defects: hours before 1970 are rounded up; a count omits claimed timers; a list has
timers of another kind; a dump writes a timer twice, or has the wrong next serial, so that a serial is used
twice; a timer that runs is cancelled; a cancel leaves the key or the dead letter; a revive changes a timer
that is pending; a check does not read one of the tables.

usage: test_redis.py TOOL [unittest's arguments]
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/durable/redis"))
from server import Server  # pylint: disable=wrong-import-position

TOOL = sys.argv[1]
GOOD, NOT, USAGE, TROUBLE = range(4)
PREFIX = "tickwheel"
HOUR = 3600 * 10**9
FAR = 2000000000 * 10**9
FAR_PLACE = FAR // (64 * 10**9)
MAIL, RETRY = 1, 3
SESSION = 7
STARTED, OPEN, KEYED = 1, 2, 4


def key(name):
  return f"{{{PREFIX}:0}}:{name}"


def u32(number):
  return struct.pack(">I", number)


def u64(number):
  return struct.pack(">Q", number)


def due_bytes(due):
  return u64(due + 2**63)


def place_bytes(place):
  return u32(place + 2**31)


def head(due, place, kind):
  return due_bytes(due) + place_bytes(place) + u32(kind)


def timer(due, place, kind, version=0, name=b"", payload=b""):
  return head(due, place, kind) + u32(version) + bytes([len(name)]) + name + payload


def run(due, place, kind, session=0, attempt=0, marks=0):
  return head(due, place, kind) + u64(session) + u64(0) + u64(attempt) + bytes([marks])


def free(due, place, kind, serial):
  return u32(kind) + due_bytes(due) + place_bytes(place) + u64(serial)


def held(session, due, place, serial):
  return u64(session) + due_bytes(due) + place_bytes(place) + u64(serial)


def letter(ended, attempt, value):
  return due_bytes(ended) + u64(attempt) + value


# Makes two kinds with a gap in their numbers, free and claimed timers, one that runs, one that is due before
# 1970, keys, and dead letters.
TIMERS = {
  1: timer(FAR, FAR_PLACE, MAIL, 5, b"order-1", b"pay"),
  2: timer(FAR - 1, FAR_PLACE, RETRY, 0, b"", b"\0\xff"),
  3: timer(FAR + HOUR, FAR_PLACE, MAIL),
  4: timer(-1, -1, MAIL, 0, b"\1"),
}
RUNS = {2: run(FAR - 1, FAR_PLACE, RETRY, SESSION, 2, OPEN), 3: run(FAR + HOUR, FAR_PLACE, MAIL, SESSION, 1, STARTED + OPEN)}
LETTERS = {5: letter(10**9, 9, timer(FAR, -7, RETRY, 0, b"k", b"body")), 6: letter(2 * 10**9, 1, timer(FAR, 2, MAIL))}
FILL = [
  ("HSET", key("meta"), "version", 1, "id", "a.b", "serial", 100, "session", SESSION, "kinds", 3),
  ("HSET", key("kind"), "mail", MAIL, "retry.x", RETRY),
  ("HSET", key("session"), u64(SESSION), u64(0) + b"\0" + b'web "1"'),
  ("ZADD", key("beat"), 4 * 10**15, u64(SESSION)),
  *[("HSET", key("timer"), u64(serial), value) for serial, value in TIMERS.items()],
  *[("HSET", key("run"), u64(serial), value) for serial, value in RUNS.items()],
  *[("HSET", key("dead"), u64(serial), value) for serial, value in LETTERS.items()],
  ("ZADD", key("free"), 0, free(FAR, FAR_PLACE, MAIL, 1), 0, free(-1, -1, MAIL, 4)),
  ("ZADD", key("held"), 0, held(SESSION, FAR - 1, FAR_PLACE, 2), 0, held(SESSION, FAR + HOUR, FAR_PLACE, 3)),
  ("HSET", key("key"), "order-1", u64(1), b"\1", u64(4)),
  ("ZADD", key("buried"), 0, place_bytes(-7) + u64(5), 0, place_bytes(2) + u64(6)),
  ("ZADD", key("ended"), 0, due_bytes(10**9) + u64(5), 0, due_bytes(2 * 10**9) + u64(6)),
]


class Tool(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.server = Server(["appendonly no"])
    cls.server.start()
    cls.redis = cls.server.client

  @classmethod
  def tearDownClass(cls):
    cls.server.end()

  def setUp(self):
    self.redis("FLUSHALL")
    self.redis.many(FILL)

  def run_tool(self, *words, address=None, environment=None):
    # Ids of deadlines before 1970 begin with a minus sign, as options do.
    words = [word for part in words for word in (["--", part] if part[0] == "-" and part[1:2].isdigit() else [part])]
    return subprocess.run([TOOL, "--redis", address or self.server.address, *words], capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, **(environment or {})})

  def good(self, *words):
    done = self.run_tool(*words)
    self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
    return done.stdout

  def lines(self, *words):
    return [json.loads(line) for line in self.good("--json", *words).splitlines()]

  def ids(self, *words):
    return [line["id"] for line in self.lines(*words)]

  def count(self, table):
    return self.redis("HLEN" if table in ("timer", "run", "dead", "key", "session") else "ZCARD", key(table))

  def counts(self):
    return {table: self.count(table) for table in ("timer", "run", "free", "held", "key", "dead", "buried", "ended")}

  def test_count(self):
    hour = "2033-05-18T03:00:00.000Z"
    self.assertEqual(self.lines("count"), [
      {"kind": "mail", "hour": "1969-12-31T23:00:00.000Z", "count": 1},
      {"kind": "mail", "hour": hour, "count": 1},
      {"kind": "mail", "hour": "2033-05-18T04:00:00.000Z", "count": 1},
      {"kind": "retry.x", "hour": hour, "count": 1},
      {"kind": "mail", "dead": True, "count": 1},
      {"kind": "retry.x", "dead": True, "count": 1},
    ])
    self.assertEqual([line["count"] for line in self.lines("count", "--kind", "retry.x")], [1, 1])
    self.assertEqual(self.good("count", "--kind", "absent"), "")

  def test_count_at_the_edges(self):
    # Adds the earliest and the latest possible deadline, and three deadlines in one hour. A session has claimed
    # one of the three.
    most, least = 2**63 - 2, -2**63
    for serial, due in ((10, least), (11, most), (12, HOUR), (13, 2 * HOUR - 1), (14, 2 * HOUR)):
      self.redis("HSET", key("timer"), u64(serial), timer(due, 0, RETRY))
      self.redis("ZADD", key("free"), 0, free(due, 0, RETRY, serial))
    self.redis("HSET", key("timer"), u64(15), timer(HOUR + 1, 0, RETRY))
    self.redis("HSET", key("run"), u64(15), run(HOUR + 1, 0, RETRY, SESSION))
    self.redis("ZADD", key("held"), 0, held(SESSION, HOUR + 1, 0, 15))
    self.assertEqual([line["count"] for line in self.lines("count", "--kind", "retry.x") if "hour" in line], [1, 3, 1, 1, 1])

  def test_list(self):
    self.assertEqual(self.ids("list"), ["-1-4", f"{FAR_PLACE}-2", f"{FAR_PLACE}-1", f"{FAR_PLACE}-3"])
    self.assertEqual(self.ids("list", "--limit", "2"), ["-1-4", f"{FAR_PLACE}-2"])
    self.assertEqual(self.ids("list", "--kind", "retry.x"), [f"{FAR_PLACE}-2"])
    self.assertEqual(self.ids("dead"), ["-7-5", "2-6"])
    self.assertEqual(self.ids("dead", "--limit", "1"), ["-7-5"])
    self.assertEqual(self.ids("dead", "--kind", "mail"), ["2-6"])
    self.assertIn(f"2033-05-18T03:33:20.000Z  {FAR_PLACE}-1  mail  attempt 0  key order-1  payload 3 bytes\n", self.good("list"))

  def test_show_and_find(self):
    self.assertEqual(self.lines("show", "-7-5"), [
      {"id": "-7-5", "due_ns": FAR, "due": "2033-05-18T03:33:20.000Z", "kind": "retry.x", "attempt": 9, "version": 0, "dead": True,
       "ended_ns": 10**9, "key": "k", "payload": "body"}])
    started, = self.lines("show", f"{FAR_PLACE}-3")
    self.assertEqual((started["started"], started["attempt"]), (True, 1))
    self.assertEqual(self.ids("find", "order-1"), [f"{FAR_PLACE}-1"])
    for words in (("find", "order-2"), ("find", "k"), ("show", "-7-4"), ("show", "1-5"), ("cancel", "9-9"), ("cancel", f"{2**40}-1"),
                  ("revive", "-1-4"), ("pause", "lost")):
      done = self.run_tool(*words)
      self.assertEqual((done.returncode, done.stdout, done.stderr), (NOT, "", f"tickwheel-durable: {words[1]}: there is none\n"), words)

  def test_dump_becomes_a_file(self):
    dump = self.good("dump")
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, "timers")
      loaded = subprocess.run([TOOL, path, "load", "-"], input=dump, capture_output=True, text=True, check=False)
      self.assertEqual((loaded.returncode, loaded.stderr), (GOOD, ""))
      again = subprocess.run([TOOL, path, "dump"], capture_output=True, text=True, check=True).stdout
    first, *rows, last = dump.splitlines()
    self.assertEqual(json.loads(first), {"tickwheel_durable_dump": 1, "serial": 100, "clean": True, "kinds": ["mail", "retry.x"]})
    self.assertEqual(last, '{"rows":6}')
    self.assertEqual(sorted(rows), sorted(again.splitlines()[1:-1]))

  def test_a_dump_writes_a_moved_timer_once(self):
    # Makes the state in which the timer has been moved while the dump was between two pages.
    self.redis("ZADD", key("free"), 0, free(FAR + 1, FAR_PLACE, MAIL, 1))
    self.assertEqual(json.loads(self.good("dump").splitlines()[-1]), {"rows": 6})
    self.assertEqual(len(self.good("list").splitlines()), 5)

  def test_a_dump_gives_no_serial_away_twice(self):
    # Makes the state in which timers 4 and later were scheduled after the dump had begun.
    self.redis("HSET", key("meta"), "serial", 4)
    head_line, *rows, last = [json.loads(line) for line in self.good("dump").splitlines()]
    self.assertEqual((head_line["serial"], last), (4, {"rows": 3}))
    self.assertEqual([row["id"].rsplit("-", 1)[1] for row in rows], ["2", "1", "3"])

  def test_many(self):
    # Adds more than a page of timers and of dead letters, and so many that Redis keeps the hash as a table.
    commands = []
    for serial in range(1000, 3500):
      commands += [("HSET", key("timer"), u64(serial), timer(serial, 0, MAIL)), ("ZADD", key("free"), 0, free(serial, 0, MAIL, serial)),
                   ("HSET", key("dead"), u64(serial + 5000), letter(serial, 1, timer(serial, 0, MAIL))),
                   ("ZADD", key("buried"), 0, place_bytes(0) + u64(serial + 5000)), ("ZADD", key("ended"), 0, due_bytes(serial) + u64(serial + 5000))]
    self.redis.many(commands)
    self.redis("HSET", key("meta"), "serial", 9000)
    self.assertEqual(len(self.ids("list", "--limit", "0")), 2504)
    self.assertEqual(len(set(self.ids("list", "--limit", "1700"))), 1700)
    self.assertEqual(len(set(self.ids("dead", "--limit", "0"))), 2502)
    self.assertEqual(len(self.ids("dead", "--limit", "1234")), 1234)
    self.assertEqual([line["count"] for line in self.lines("count") if line.get("dead")], [2501, 1])
    self.assertEqual(json.loads(self.good("dump").splitlines()[-1]), {"rows": 5006})
    self.assertEqual(self.good("check"), "5006 rows, 0 defects\n")

  def test_sessions(self):
    line, = self.lines("sessions")
    self.assertGreater(line.pop("left_s"), 3000)
    self.assertEqual(line, {"session": 7, "timers": 2, "running": 1, "name": 'web "1"'})
    self.redis("ZADD", key("beat"), 0, u64(SESSION))
    self.assertIn("  over for ", self.good("sessions"))

  def test_cancel(self):
    running = self.run_tool("cancel", f"{FAR_PLACE}-3")
    self.assertEqual((running.returncode, running.stderr), (TROUBLE, f"tickwheel-durable: Redis: the prefix {PREFIX}: the timer runs now\n"))
    for name in (f"{FAR_PLACE}-1", f"{FAR_PLACE}-2", "-1-4", "-7-5"):
      self.good("cancel", name)
      self.assertEqual(self.run_tool("show", name).returncode, NOT, name)
    self.assertEqual(self.counts(), {"timer": 1, "run": 1, "free": 0, "held": 1, "key": 0, "dead": 1, "buried": 1, "ended": 1})
    # Ends the session of the timer, which then does not run any more.
    self.redis("ZADD", key("beat"), 0, u64(SESSION))
    self.good("cancel", f"{FAR_PLACE}-3")
    self.assertEqual(self.good("check"), "1 rows, 0 defects\n")

  def test_a_cancel_leaves_the_key_of_another(self):
    self.redis("HSET", key("key"), "order-1", u64(2))
    self.good("cancel", f"{FAR_PLACE}-1")
    self.assertEqual(self.redis("HGET", key("key"), "order-1"), u64(2))

  def test_revive(self):
    self.good("revive", "-7-5")
    line, = self.lines("show", "-7-5")
    self.assertGreater(line["due_ns"], 1600000000 * 10**9)
    self.assertEqual((line["attempt"], line["payload"], "key" in line, "dead" in line), (0, "body", False, False))
    self.assertEqual(self.counts(), {"timer": 5, "run": 2, "free": 3, "held": 2, "key": 2, "dead": 1, "buried": 1, "ended": 1})
    self.assertEqual(self.good("check"), "6 rows, 0 defects\n")
    # Schedules the timer again after it became a dead letter. A revive must leave that timer as it is.
    self.redis("HSET", key("timer"), u64(6), timer(FAR, 2, MAIL))
    self.assertEqual(self.run_tool("revive", "2-6").returncode, NOT)
    self.assertEqual(self.count("dead"), 1)

  def test_pause(self):
    self.good("pause", "mail")
    self.assertEqual(self.lines("count")[-1], {"kind": "mail", "paused": True})
    self.assertEqual(json.loads(self.good("dump").splitlines()[0])["paused"], ["mail"])
    self.assertEqual(self.redis("SMEMBERS", key("paused")), [b"mail"])
    self.good("resume", "mail")
    self.assertEqual(self.redis("SMEMBERS", key("paused")), [])

  def test_check(self):
    self.assertEqual(self.good("check"), "6 rows, 0 defects\n")
    late = (2**63 - 1).to_bytes(8, "big")
    for command, defect in (
        (("HSET", key("timer"), u64(1), timer(FAR, FAR_PLACE, 2, 5, b"order-1", b"pay")), "1: is of a kind that has no name"),
        (("HSET", key("dead"), u64(6), letter(2 * 10**9, 1, timer(FAR, 2, 9))), "6: is of a kind that has no name"),
        (("HSET", key("meta"), "serial", 6), "6: has a serial that was not given out"),
        (("ZREM", key("free"), free(-1, -1, MAIL, 4)), "4: is not listed where it must be, and is not found by its deadline"),
        (("ZADD", key("free"), 0, free(FAR - 1, FAR_PLACE, RETRY, 2)), "2: is not listed where it must be, and is not found by its deadline"),
        (("ZREM", key("beat"), u64(SESSION)), "2: is of a session that is not there"),
        (("HSET", key("run"), u64(4), run(-1, -1, MAIL, 0, 1, STARTED)), "4: runs, and no session has it"),
        (("HDEL", key("key"), "order-1"), "1: has a key that names another timer, or none"),
        (("HSET", key("key"), "lost", late), f"{2**63 - 1}: has a key, and is not there"),
        (("HSET", key("run"), late, run(0, 0, MAIL)), f"{2**63 - 1}: has a run, and is not there"),
        (("ZADD", key("free"), 0, free(0, 0, MAIL, 8)), "8: is listed, and is not there"),
        (("ZADD", key("held"), 0, held(SESSION, 0, 0, 8)), "8: is listed, and is not there"),
        (("ZADD", key("buried"), 0, place_bytes(0) + u64(8)), "8: is listed, and is not there"),
        (("ZADD", key("ended"), 0, due_bytes(0) + u64(8)), "8: is listed, and is not there"),
        (("ZREM", key("buried"), place_bytes(-7) + u64(5)), "5: is a dead letter that is not listed"),
        (("ZREM", key("ended"), due_bytes(10**9) + u64(5)), "5: is a dead letter that is not listed"),
        (("HSET", key("timer"), u64(3), "short"), "3: is not as it must be"),
        (("HSET", key("run"), u64(3), "short"), "3: has a run that is not as it must be"),
        (("HSET", key("dead"), u64(5), "short"), "5: is a dead letter that is not as it must be"),
        (("HSET", key("session"), u64(9), u64(0) + b"\0"), "9: is a session that is half there"),
        (("ZADD", key("beat"), 1, u64(9)), "9: is a session that is half there"),
    ):
      self.setUp()
      self.redis(*command)
      done = self.run_tool("check")
      self.assertEqual((done.returncode, done.stderr), (NOT, ""), defect)
      self.assertIn(defect, done.stdout.splitlines())
      self.assertTrue(json.loads(self.run_tool("check", "--json").stdout)["defects"] > 0)

  def test_it_is_no_session(self):
    for words in (["list"], ["dump"], ["count"], ["cancel", "-1-4"], ["revive", "2-6"]):
      self.good(*words)
    self.assertEqual(self.count("session"), 1)
    self.assertEqual(self.redis("HGET", key("meta"), "session"), b"7")

  def test_bad_input(self):
    for words in ([], ["lists"], ["list", "more"], ["show"], ["show", "x"], ["load", "dump"], ["backup", "copy"], ["--limit", "x", "list"],
                  ["--database", "16", "list"], ["--database", "x", "list"], ["--schema", "s", "list"], ["--postgres", "a", "list"]):
      done = self.run_tool(*words)
      self.assertEqual((done.returncode, done.stdout), (USAGE, ""), words)
    for option in ("--prefix", "--user", "--database"):
      done = subprocess.run([TOOL, option, "1", "file", "list"], capture_output=True, check=False)
      self.assertEqual(done.returncode, USAGE)

  def trouble(self, *words, address=None, environment=None):
    done = self.run_tool(*words, address=address, environment=environment)
    self.assertEqual((done.returncode, done.stdout), (TROUBLE, ""), words)
    return done.stderr

  def test_bad_servers(self):
    self.assertIn("Connection refused", self.trouble("list", address="/nonexistent/socket"))
    self.assertIn("there are no durable timers", self.trouble("--prefix", "absent", "list"))
    self.assertIn("there are no durable timers", self.trouble("--database", "3", "list"))
    self.assertIn("Invalid argument", self.trouble("--prefix", "a:b", "list"))
    self.assertIn("Redis: ", self.trouble("--user", "nobody", "list", environment={"REDISCLI_AUTH": "secret"}))
    self.redis("HSET", key("meta"), "version", 2)
    self.assertIn("have the format 2", self.trouble("list"))
    self.redis("SET", key("meta"), "x")
    self.assertIn("not those of durable timers", self.trouble("list"))

  def test_a_full_server(self):
    self.redis("CONFIG", "SET", "maxmemory", 1)
    try:
      self.assertIn("no memory left", self.trouble("revive", "2-6"))
      self.assertEqual(self.count("dead"), 2)
      self.good("cancel", f"{FAR_PLACE}-1")
    finally:
      self.redis("CONFIG", "SET", "maxmemory", 0)


if __name__ == "__main__":
  unittest.main(argv=[__file__, *sys.argv[2:]])
