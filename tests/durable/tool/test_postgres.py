#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests tickwheel-durable --postgres: what it shows of timers in a server, what it changes, and its messages for
bad input.

Seen to fail with these defects: hours before 1970 are rounded up; a list omits claimed timers, or has those
of another kind; a dump has the wrong next serial, so that a serial is used twice; a cancel leaves the dead
letter; a revive changes a timer that is pending; a check does not report claims whose session is gone.

usage: test_postgres.py TOOL [unittest's arguments]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/durable/postgres"))
from server import Server, schema_text  # pylint: disable=wrong-import-position

TOOL = sys.argv[1]
GOOD, NOT, USAGE, TROUBLE = range(4)
SCHEMA = "tickwheel"
TEXT = schema_text(SCHEMA)
HOUR = 3600 * 10**9
FAR = 2000000000 * 10**9
# Makes two kinds with a gap in their numbers, free and claimed timers, one that runs, one that is due before
# 1970, keys, and dead letters.
FILL = f"""
INSERT INTO {SCHEMA}.kind (name) VALUES ('mail'), ('lost'), ('retry.x');
DELETE FROM {SCHEMA}.kind WHERE name = 'lost';
UPDATE {SCHEMA}.meta SET serial = 100, session = 7;
INSERT INTO {SCHEMA}.session (id, name, pid, version) VALUES (7, 'web "1"', 4242, 2);
INSERT INTO {SCHEMA}.beat VALUES (7, {SCHEMA}.now_ns() + 3600000000000);
INSERT INTO {SCHEMA}.timer (serial, place, due, attempt, session, version, kind, started, open, key, payload) VALUES
  (1, {FAR // (64 * 10**9)}, {FAR}, 0, 0, 5, 1, false, false, 'order-1', 'pay'),
  (2, {FAR // (64 * 10**9)}, {FAR - 1}, 2, 7, 0, 3, false, true, NULL, '\\x00ff'),
  (3, {FAR // (64 * 10**9)}, {FAR + HOUR}, 1, 7, 0, 1, true, true, NULL, ''),
  (4, -1, -1, 0, 0, 0, 1, false, false, '\\x01', '');
INSERT INTO {SCHEMA}.dead VALUES (5, -7, {FAR}, 9, 0, 3, 'k', 'body', 1000000000), (6, 2, {FAR}, 1, 0, 1, NULL, '', 2000000000);
"""


class Tool(unittest.TestCase):
  @classmethod
  def setUpClass(cls):
    cls.server = Server(["fsync = off"]).start()

  @classmethod
  def tearDownClass(cls):
    cls.server.end()

  def setUp(self):
    self.server.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; BEGIN; {TEXT} {FILL} COMMIT;")

  def run_tool(self, *words, address=None):
    # Ids of deadlines before 1970 begin with a minus sign, as options do.
    words = [word for part in words for word in (["--", part] if part[0] == "-" and part[1:2].isdigit() else [part])]
    return subprocess.run([TOOL, "--postgres", address or self.server.address, *words], capture_output=True, text=True, timeout=100, check=False)

  def good(self, *words):
    done = self.run_tool(*words)
    self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
    return done.stdout

  def lines(self, *words):
    return [json.loads(line) for line in self.good("--json", *words).splitlines()]

  def ids(self, *words):
    return [line["id"] for line in self.lines(*words)]

  def count(self, table):
    return int(self.server.sql(f"SELECT count(*) FROM {SCHEMA}.{table}")[0][0])

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

  def test_list(self):
    places = FAR // (64 * 10**9)
    self.assertEqual(self.ids("list"), ["-1-4", f"{places}-2", f"{places}-1", f"{places}-3"])
    self.assertEqual(self.ids("list", "--limit", "2"), ["-1-4", f"{places}-2"])
    self.assertEqual(self.ids("list", "--kind", "retry.x"), [f"{places}-2"])
    self.assertEqual(self.ids("dead"), ["-7-5", "2-6"])
    self.assertEqual(self.ids("dead", "--limit", "1"), ["-7-5"])
    self.assertIn(f"2033-05-18T03:33:20.000Z  {places}-1  mail  attempt 0  key order-1  payload 3 bytes\n", self.good("list"))

  def test_show_and_find(self):
    self.assertEqual(self.lines("show", "-7-5"), [
      {"id": "-7-5", "due_ns": FAR, "due": "2033-05-18T03:33:20.000Z", "kind": "retry.x", "attempt": 9, "version": 0, "dead": True,
       "ended_ns": 10**9, "key": "k", "payload": "body"}])
    self.assertEqual(self.ids("find", "order-1"), [f"{FAR // (64 * 10**9)}-1"])
    for words in (("find", "order-2"), ("find", "k"), ("show", "-7-4"), ("cancel", "9-9"), ("revive", "-1-4"), ("pause", "lost")):
      done = self.run_tool(*words)
      self.assertEqual((done.returncode, done.stdout, done.stderr), (NOT, "", f"tickwheel-durable: {words[1]}: there is none\n"), words)

  def test_dump_becomes_a_file(self):
    dump = self.good("dump")
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, "timers")
      loaded = subprocess.run([TOOL, path, "load", "-"], input=dump, capture_output=True, text=True, check=False)
      self.assertEqual((loaded.returncode, loaded.stderr), (GOOD, ""))
      again = subprocess.run([TOOL, path, "dump"], capture_output=True, text=True, check=True).stdout
    head, *rows, last = dump.splitlines()
    self.assertEqual(json.loads(head), {"tickwheel_durable_dump": 1, "serial": 100, "clean": True, "kinds": ["mail", "retry.x"]})
    self.assertEqual(last, '{"rows":6}')
    self.assertEqual(sorted(rows), sorted(again.splitlines()[1:-1]))

  def test_a_dump_gives_no_serial_away_twice(self):
    self.server.sql(f"SELECT {SCHEMA}.schedule('mail', now() + interval '1 day')")
    head = json.loads(self.good("dump").splitlines()[0])
    self.assertEqual(head["serial"], 2**62 + 1)

  def test_sessions(self):
    line, = self.lines("sessions")
    self.assertGreater(line.pop("left_s"), 3000)
    self.assertEqual(line, {"session": 7, "timers": 2, "running": 1, "backend": 4242, "name": 'web "1"'})
    self.server.sql(f"UPDATE {SCHEMA}.beat SET expires = 0")
    self.assertIn("  over for ", self.good("sessions"))

  def test_cancel(self):
    place = FAR // (64 * 10**9)
    running = self.run_tool("cancel", f"{place}-3")
    self.assertEqual((running.returncode, running.stderr), (TROUBLE, f"tickwheel-durable: the schema {SCHEMA}: the timer runs now\n"))
    for timer in (f"{place}-1", f"{place}-2", "-1-4", "-7-5"):
      self.good("cancel", timer)
      self.assertEqual(self.run_tool("show", timer).returncode, NOT, timer)
    self.assertEqual((self.count("timer"), self.count("dead")), (1, 1))

  def test_revive(self):
    before = int(self.server.sql(f"SELECT {SCHEMA}.now_ns()")[0][0])
    self.good("revive", "-7-5")
    line, = self.lines("show", "-7-5")
    self.assertGreaterEqual(line["due_ns"], before)
    self.assertEqual((line["attempt"], line["payload"], "key" in line), (0, "body", False))
    self.assertEqual(self.server.sql(f"SELECT session, started, open FROM {SCHEMA}.timer WHERE serial = 5"), [["0", "f", "f"]])
    self.assertEqual(self.count("dead"), 1)
    # After it became a dead letter, the timer was scheduled again. A revive must leave that timer as it is.
    self.server.sql(f"INSERT INTO {SCHEMA}.timer (serial, place, due, kind) VALUES (6, 2, {FAR}, 1)")
    self.assertEqual(self.run_tool("revive", "2-6").returncode, NOT)
    self.assertEqual(self.count("dead"), 1)

  def test_pause(self):
    self.good("pause", "mail")
    self.assertEqual(self.lines("count")[-1], {"kind": "mail", "paused": True})
    self.assertEqual(self.server.sql(f"SELECT name FROM {SCHEMA}.kind WHERE paused"), [["mail"]])
    self.good("resume", "mail")
    self.assertEqual(self.server.sql(f"SELECT name FROM {SCHEMA}.kind WHERE paused"), [])

  def test_check(self):
    self.assertEqual(self.good("check"), "6 rows, 0 defects\n")
    self.server.sql(f"""UPDATE {SCHEMA}.timer SET kind = 2 WHERE serial = 1; UPDATE {SCHEMA}.dead SET kind = 9 WHERE serial = 5;
      UPDATE {SCHEMA}.timer SET session = 8 WHERE serial = 2; UPDATE {SCHEMA}.timer SET session = 0 WHERE serial = 3;
      UPDATE {SCHEMA}.meta SET serial = 6; INSERT INTO {SCHEMA}.beat VALUES (9, 1)""")
    done = self.run_tool("check")
    self.assertEqual(done.returncode, NOT)
    place = FAR // (64 * 10**9)
    self.assertEqual(done.stdout.splitlines(), [
      f"timer {place}-1: is of a kind that has no name", "dead -7-5: is of a kind that has no name",
      f"timer {place}-2: is of a session that is not there", f"timer {place}-3: runs, and no session has it",
      "dead 2-6: has a serial that was not given out", "session 9: is half there", "6 rows, 6 defects"])
    self.assertEqual(self.run_tool("check", "--json").stdout, '{"rows":6,"defects":6}\n')

  def test_it_is_no_session(self):
    for words in (["list"], ["dump"], ["count"], ["cancel", "-1-4"], ["revive", "2-6"]):
      self.good(*words)
    self.assertEqual(self.count("session"), 1)
    self.assertEqual(self.server.sql(f"SELECT session FROM {SCHEMA}.meta"), [["7"]])

  def test_bad_input(self):
    for words in ([], ["lists"], ["list", "more"], ["show"], ["show", "x"], ["load", "dump"], ["backup", "copy"], ["--limit", "x", "list"]):
      done = self.run_tool(*words)
      self.assertEqual((done.returncode, done.stdout), (USAGE, ""), words)
    done = subprocess.run([TOOL, "--schema", "s", "file", "list"], capture_output=True, check=False)
    self.assertEqual(done.returncode, USAGE)

  def trouble(self, *words, address=None):
    done = self.run_tool(*words, address=address)
    self.assertEqual((done.returncode, done.stdout), (TROUBLE, ""), words)
    return done.stderr

  def test_bad_servers(self):
    self.assertIn("PostgreSQL: ", self.trouble("list", address="host=/nonexistent"))
    self.assertIn("the schema absent: there is no such schema", self.trouble("--schema", "absent", "list"))
    self.assertIn("Invalid argument", self.trouble("--schema", "a; DROP", "list"))
    self.server.sql(f"UPDATE {SCHEMA}.meta SET version = 3, serves = 3")
    self.assertIn("it has another version", self.trouble("list"))
    self.server.sql(f"DELETE FROM {SCHEMA}.meta")
    self.assertIn("not a schema of durable timers", self.trouble("list"))
    self.server.sql(f"UPDATE {SCHEMA}.meta SET version = 2; INSERT INTO {SCHEMA}.meta VALUES (true, 2, 1, 0, 2); ALTER TABLE {SCHEMA}.timer DROP COLUMN key")
    self.assertIn('column "key" does not exist', self.trouble("list"))


if __name__ == "__main__":
  unittest.main(argv=[__file__, *sys.argv[2:]])
