#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests tickwheel-durable on a file of make_file.c: each command, and files that are in use, foreign, or
damaged.

usage: test_tool.py TICKWHEEL_DURABLE MAKE_FILE [unittest's arguments]

Seen to fail with these defects: a timer is shown although its end is stored; a change removes the mark of a
crash; a file that is open is changed; a copy stays after a failure; `check` does not look for one of its
defects (tried for each).
"""
import datetime
import json
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

TOOL, MAKE = sys.argv[1:3]
TIMERS, BULK = 300, 600
BEGIN_S = 27600000 * 64
SECOND = 10**9


def group(number):
    """Returns the state of a timer of make_file.c."""
    if number >= TIMERS:
        return "plain" if (number - TIMERS) % 3 else "ended"
    if number % 10 == 0:
        return "keyed"
    for each, name in ((11, "ended"), (13, "dead"), (7, "moved"), (17, "started")):
        if number % each == 0:
            return name
    return "plain"


def first_ns(number):
    """Returns the timer's first deadline."""
    return BEGIN_S * SECOND + (number * 100 * SECOND if number < TIMERS else (number - TIMERS) * SECOND // 10)


def due_ns(number):
    return first_ns(number) + (1000 * SECOND if group(number) == "moved" else 0)


def kind(number):
    return "mail" if number >= TIMERS or number % 2 == 0 else "call"


def payload(number):
    return f'order "{number}"' if number < TIMERS else None


NUMBERS = range(TIMERS + BULK)
PENDING = [number for number in NUMBERS if group(number) not in ("ended", "dead")]
DEAD = [number for number in NUMBERS if group(number) == "dead"]
IN_ORDER = sorted(PENDING, key=lambda number: (due_ns(number), first_ns(number) // (64 * SECOND), number))


def crc32c(numbers):
    """Returns the checksum of 64-bit numbers, as the file stores it."""
    crc = 0xFFFFFFFF
    for byte in b"".join(number.to_bytes(8, "little", signed=True) for number in numbers):
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Tool(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.made = cls.folder / "made"
        with subprocess.Popen([MAKE, str(cls.made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as make:
            cls.serial = int(make.stdout.readline().split()[1])
            # While a store has the file open, a part of it is still in the log.
            cls.pid = make.pid
            cls.cancelled = subprocess.run([TOOL, str(cls.made), "cancel", f"{BEGIN_S // 64}-{cls.serial}"],
                                           capture_output=True, text=True, check=False)
            cls.paused = subprocess.run([TOOL, str(cls.made), "pause", "call"], capture_output=True, text=True, check=False)
            cls.copied = subprocess.run([TOOL, str(cls.made), "backup", str(cls.folder / "copy")],
                                        capture_output=True, text=True, check=False)
            # A backup of an open file looks like one after a crash.
            cls.crashed = cls.folder / "copy"
            cls.during = subprocess.run([TOOL, str(cls.made), "list", "--json"], capture_output=True, text=True, check=False)
        assert make.returncode == 0

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.path = self.folder / "timers"
        shutil.copy(self.made, self.path)

    def tearDown(self):
        for path in self.folder.glob("timers*"):
            path.unlink()

    def run_tool(self, *arguments, code=0, path=None):
        ran = subprocess.run([TOOL, str(path or self.path), *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, code, ran.stderr + ran.stdout)
        self.said = ran.stderr
        return ran.stdout

    def rows(self, *arguments):
        return [json.loads(line) for line in self.run_tool(*arguments, "--json").splitlines()]

    def number_of(self, row):
        return int(row["id"].split("-")[-1]) - self.serial

    def id_of(self, number):
        return f"{first_ns(number) // (64 * SECOND)}-{self.serial + number}"

    def sql(self, text):
        database = sqlite3.connect(self.path)
        database.execute(text)
        database.commit()
        changed = database.total_changes
        database.close()
        return changed

    # Commands that show timers.

    def test_list_is_in_order_of_deadline(self):
        rows = self.rows("list", "--limit", "0")
        self.assertEqual([self.number_of(row) for row in rows], IN_ORDER)
        for row in rows:
            number = self.number_of(row)
            self.assertEqual(row["due_ns"], due_ns(number))
            self.assertEqual(row["kind"], kind(number))
            self.assertEqual(row["version"], 3 if number < TIMERS else 0)
            self.assertEqual(row["attempt"], 2 if group(number) in ("moved", "started") else 0)
            self.assertEqual(row.get("started", False), group(number) == "started")
            self.assertEqual(row.get("key"), f"k{number}" if group(number) == "keyed" and number != 20 else None)
            self.assertEqual(row.get("key_hex"), "010222" if number == 20 else None)
            if number == 1:
                self.assertEqual(row["payload_hex"], "0102225cff")
            else:
                self.assertEqual(row.get("payload"), payload(number))

    def test_list_has_a_limit_of_100_and_a_kind(self):
        self.assertEqual([self.number_of(row) for row in self.rows("list")], IN_ORDER[:100])
        calls = [number for number in IN_ORDER if kind(number) == "call"]
        rows = self.rows("list", "--kind", "call", "--limit", "7")
        self.assertEqual([self.number_of(row) for row in rows], calls[:7])
        self.assertEqual(self.rows("list", "--kind", "none"), [])

    def test_list_as_text(self):
        due = datetime.datetime.fromtimestamp(BEGIN_S, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        self.assertEqual(self.run_tool("list", "--limit", "1"),
                         f"{due}  {self.id_of(0)}  mail  attempt 0  key k0  payload 9 bytes\n")

    def test_list_while_the_store_is_open(self):
        self.assertEqual(self.during.returncode, 0, self.during.stderr)
        numbers = [self.number_of(json.loads(line)) for line in self.during.stdout.splitlines()]
        self.assertEqual(numbers, IN_ORDER[:100])

    def test_cancel_while_the_store_is_open_names_the_process(self):
        self.assertEqual(self.cancelled.returncode, 3)
        self.assertIn(f"process {self.pid} has it open", self.cancelled.stderr)

    def test_backup_while_the_store_is_open(self):
        self.assertEqual(self.copied.returncode, 0, self.copied.stderr)
        copy = self.folder / "copy"
        self.assertEqual(copy.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.run_tool("dump", path=copy).splitlines()[1:], self.run_tool("dump").splitlines()[1:])
        self.run_tool("check", path=copy)
        self.run_tool("backup", str(copy), code=3)
        self.assertIn("is there already", self.said)
        self.run_tool("backup", str(self.folder / "none" / "copy"), code=3)
        self.assertIn("No such file", self.said)
        self.run_tool("check", path=copy)

    def test_cancel_ends_one(self):
        for number in (1, 7, 13, 30):
            with self.subTest(group(number)):
                self.assertEqual(self.run_tool("cancel", self.id_of(number)), "")
                self.run_tool("show", self.id_of(number), code=1)
                self.run_tool("cancel", self.id_of(number), code=1)
        self.run_tool("find", "k30", code=1)
        self.assertRegex(self.run_tool("check"), rf"^{len(PENDING) + len(DEAD) - 4} rows, 0 defects\n$")

    def test_revive_makes_a_dead_letter_due(self):
        before = time.time_ns()
        self.run_tool("revive", self.id_of(13))
        row = self.rows("show", self.id_of(13))[0]
        self.assertTrue(before <= row["due_ns"] <= time.time_ns())
        self.assertEqual(row["attempt"], 0)
        self.assertNotIn("dead", row)
        for number in (1, 11, 13):
            self.run_tool("revive", self.id_of(number), code=1)
        self.run_tool("check")

    def test_a_change_keeps_the_mark_of_a_crash(self):
        for path, clean in ((self.made, 1), (self.crashed, 0)):
            shutil.copy(path, self.path)
            self.run_tool("cancel", self.id_of(2))
            database = sqlite3.connect(self.path)
            self.assertEqual(database.execute("SELECT clean FROM meta").fetchone(), (clean,))
            database.close()

    def test_a_backup_without_room_leaves_no_copy(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))

        copy = self.folder / "timers-copy"
        ran = subprocess.run([TOOL, str(self.path), "backup", str(copy)], capture_output=True, text=True, check=False,
                             preexec_fn=limit)
        self.assertEqual(ran.returncode, 3)
        self.assertIn("the copy ", ran.stderr)
        self.assertFalse(copy.exists())

    def test_dead_letters(self):
        rows = self.rows("dead", "--limit", "0")
        self.assertEqual([self.number_of(row) for row in rows], DEAD)
        self.assertTrue(all(row["dead"] and row["attempt"] == 2 for row in rows))
        self.assertEqual(len(self.rows("dead", "--limit", "3")), 3)

    def test_pause_marks_a_kind(self):
        for path, clean in ((self.made, 1), (self.crashed, 0)):
            shutil.copy(path, self.path)
            for _ in range(2):
                self.assertEqual(self.run_tool("pause", "call"), "")
                self.assertEqual([row for row in self.rows("count") if "paused" in row], [{"kind": "call", "paused": True}])
            self.assertEqual(self.run_tool("count").splitlines()[-1].split(), ["paused", "call"])
            self.assertNotIn("paused", self.run_tool("count", "--kind", "mail"))
            database = sqlite3.connect(self.path)
            self.assertEqual(database.execute("SELECT clean FROM meta").fetchone(), (clean,))
            database.close()
            self.run_tool("check")
            text = self.run_tool("dump")
            self.assertEqual(json.loads(text.splitlines()[0])["paused"], ["call"])
            self.assertEqual(self.run_tool("dump", path=self.loaded(text)), text)
            for _ in range(2):
                self.assertEqual(self.run_tool("resume", "call"), "")
                self.assertNotIn("paused", self.run_tool("count"))
            self.assertNotIn("paused", self.run_tool("dump").splitlines()[0])
            for new in self.folder.glob("timers-new*"):
                new.unlink()
        for command in ("pause", "resume"):
            self.run_tool(command, "fax", code=1)

    def test_pause_while_the_store_is_open_names_the_process(self):
        self.assertEqual(self.paused.returncode, 3)
        self.assertIn(f"process {self.pid} has it open", self.paused.stderr)

    def test_a_damaged_mark_is_noticed(self):
        self.run_tool("pause", "call")
        self.sql("UPDATE paused SET crc = crc + 1")
        self.run_tool("count", code=3)
        self.assertIn("is damaged", self.said)

    def test_count_by_kind_and_hour(self):
        want = {}
        for number in PENDING:
            key = (kind(number), due_ns(number) // (3600 * SECOND))
            want[key] = want.get(key, 0) + 1
        counts = self.rows("count")
        hours = {(row["kind"], row["hour"]): row["count"] for row in counts if "hour" in row}
        self.assertEqual(sorted(hours.values()), sorted(want.values()))
        self.assertEqual(len(hours), len(want))
        dead = {row["kind"]: row["count"] for row in counts if row.get("dead")}
        self.assertEqual(dead["mail"] + dead["call"], len(DEAD))
        text = self.run_tool("count").splitlines()
        self.assertEqual(len(text), len(counts))
        self.assertEqual(sum(int(line.split()[1]) for line in text), len(PENDING) + len(DEAD))

    def test_show_finds_each_and_no_other(self):
        for number in range(TIMERS + 10):
            ended = group(number) == "ended"
            text = self.run_tool("show", self.id_of(number), "--json", code=1 if ended else 0)
            if not ended:
                self.assertEqual(json.loads(text)["due_ns"], due_ns(number))
        self.run_tool("show", f"1-{self.serial}", code=1)

    def test_find_by_key(self):
        self.assertEqual(self.number_of(self.rows("find", "k30")[0]), 30)
        self.run_tool("find", "k31", code=1)

    # The commands dump and load.

    def test_dump_has_all(self):
        head, *rows, end = (json.loads(line) for line in self.run_tool("dump").splitlines())
        self.assertEqual(head, {"tickwheel_durable_dump": 1, "serial": self.serial + TIMERS + BULK, "clean": True,
                                "highest_ns": BEGIN_S * SECOND, "boot": 'a "boot"', "base_ns": -5, "step_ns": 7,
                                "kinds": ["mail", "call"]})
        order = [(row.get("dead", False), row["due_ns"] // (64 * SECOND), self.number_of(row)) for row in rows
                 if not row.get("dead")]
        self.assertEqual(order, sorted(order))
        self.assertEqual(sorted(self.number_of(row) for row in rows), sorted(PENDING + DEAD))
        self.assertEqual({row["ended_ns"] for row in rows if row.get("dead")}, {BEGIN_S * SECOND})
        self.assertEqual(end, {"rows": len(PENDING) + len(DEAD)})
        calls = self.run_tool("dump", "--kind", "call").splitlines()[1:-1]
        self.assertEqual(sum('"kind":"call"' in line for line in calls), len(calls))

    def loaded(self, text, code=0):
        """Loads a dump into a new file. If the load has failed, there must be no file."""
        new = self.folder / "timers-new"
        (self.folder / "timers-dump").write_text(text, encoding="latin-1")
        self.run_tool("load", str(self.folder / "timers-dump"), code=code, path=new)
        self.assertEqual(new.exists(), code == 0)
        self.assertEqual([path.name for path in self.folder.glob("timers-new-*")], [])
        return new

    def test_dump_load_dump_is_identical(self):
        for path in (self.made, self.crashed):
            text = self.run_tool("dump", path=path)
            new = self.loaded(text)
            self.assertEqual(self.run_tool("dump", path=new), text)
            self.assertEqual(new.stat().st_mode & 0o777, 0o600)
            self.assertRegex(self.run_tool("check", path=new), r" rows, 0 defects\n$")
            self.assertEqual(self.run_tool("list", "--limit", "0", path=new), self.run_tool("list", "--limit", "0"))
            self.tearDown()
            self.setUp()

    def test_a_loaded_file_goes_on(self):
        new = self.loaded(self.run_tool("dump"))
        self.assertEqual(self.number_of(json.loads(self.run_tool("find", "k30", "--json", path=new))), 30)
        for number in (1, 7, 13, 17, 30):
            self.run_tool("cancel", self.id_of(number), path=new)
        self.run_tool("revive", self.id_of(26), path=new)
        self.assertRegex(self.run_tool("check", path=new), rf"^{len(PENDING) + len(DEAD) - 5} rows, 0 defects\n$")

    def test_load_of_an_empty_dump(self):
        new = self.loaded('{"tickwheel_durable_dump":1,"serial":1,"clean":true,"kinds":[]}\n{"rows":0}\n')
        self.assertEqual(self.run_tool("check", path=new), "0 rows, 0 defects\n")

    def test_load_reads_escapes(self):
        head, *rows, end = self.run_tool("dump").splitlines(keepends=True)
        new = self.loaded(head + rows[0].replace('"k0"', r'"a\\u0000\u00e4"') + '{"rows":1}\n')
        # The key has a backslash and a letter of two bytes.
        self.assertEqual(json.loads(self.run_tool("dump", path=new).splitlines()[1])["key_hex"],
                         r"a\u0000ä".encode().hex())

    def test_load_from_the_input(self):
        new = self.folder / "timers-new"
        text = self.run_tool("dump")
        subprocess.run([TOOL, str(new), "load", "-"], input=text, text=True, check=True)
        self.assertEqual(self.run_tool("dump", path=new), text)

    def test_load_refuses_what_is_no_dump(self):
        head, *rows, end = self.run_tool("dump").splitlines(keepends=True)
        dead = next(line for line in rows if '"dead"' in line)
        keyed = next(line for line in rows if '"key":"k30"' in line)
        plain = rows[0]
        nameless = next(line for line in rows if '"key' not in line)
        last = 2 + len(rows)
        full = [head, *rows, end]

        def change(line, old, new):
            self.assertIn(old, line)
            return line.replace(old, new)

        def instead(line):
            return [head, line, *rows[1:], end]

        other = change(keyed, f'-{self.serial + 30}"', f'-{self.serial + 11}"')
        for number, lines, text in (
                (0, [], "is cut after line 0"),
                (0, full[:-1], f"is cut after line {last - 1}"),
                (0, full[:1], "is cut after line 1"),
                (last, full[:-1] + [end[:-1]], "is cut"),
                (2, [head, plain[:-1]], "is cut"),
                (2, [head, plain[:-10] + "\n"], "is not JSON"),
                (2, [head, "\n"], "is not JSON"),
                (2, [head, "nonsense\n"], "is not JSON"),
                (2, [head, plain[:-1] + "\0\n"], "is not JSON"),
                (2, [head, "[1]\n"], "has a member that a dump of this version does not have"),
                (2, [head, "{}\n"], "lacks a member"),
                (1, rows, "is not the head"),
                (1, [change(head, '_dump":1', '_dump":2')], "is of another version of dumps"),
                (1, [change(head, '"serial":', '"serials":')], "has a member that"),
                (1, [change(head, f'"serial":{self.serial + TIMERS + BULK}', '"serial":0')], "has a number out of range"),
                (1, [change(head, '"mail","call"', '"mail","mail"')], "has a kind twice"),
                (1, [change(head, '"mail","call"', '"mail",7')], "has a kind without a name"),
                (1, [change(head, '"kinds"', '"paused":["fax"],"kinds"')], "pauses a kind that it does not have"),
                (1, [change(head, '"kinds"', '"paused":[7],"kinds"')], "has a kind without a name"),
                (1, [change(head, '"kinds"', '"paused":"mail","kinds"')], "has a member of the wrong type"),
                (1, [change(head, '"base_ns":-5,', '')], "lacks a member"),
                (1, [change(head, 'a \\"boot', 39 * 'x')], "names the boot by too long a text"),
                (2, instead(head), "lacks a member"),
                (2, instead(change(plain, '"attempt":0', '"attempt":0,"rows":0')), "has a member of another line"),
                (1, [change(head, '"clean"', '"key":"k","clean"')], "has a member of another line"),
                (2, instead(change(plain, '"kind":"mail"', '"kind":"fax"')), "has a kind that the head does not have"),
                (2, instead(change(plain, '"attempt":0', '"attempt":"0"')), "has a member of the wrong type"),
                (2, instead(change(plain, '"attempt":0', '"attempt":-1')), "has a number out of range"),
                (2, instead(change(plain, '"version":3', '"version":4294967296')), "has a number out of range"),
                (2, instead(change(plain, '"attempt":0', '"attempt":0,"attempt":0')), "has a member twice"),
                (2, instead(change(plain, '"attempt":0', '"attempt":0,"key_hex":"00"')), "has a member as text and as digits"),
                (2, instead(change(plain, '"key":"k0"', r'"key":"k\u00000"')), "has a NUL in a text"),
                (2, instead(change(plain, '"key":"k0"', r'"key":"k\\\u0000"')), "has a NUL in a text"),
                (2, instead(change(plain, '"key":"k0"', '"key_hex":"0"')), "has an odd number"),
                (2, instead(change(plain, '"key":"k0"', '"key_hex":"0X"')), "has wrong hexadecimal digits"),
                (2, instead(change(plain, '"key":"k0"', f'"key":"{256 * "k"}"')), "has a key of more than 255 bytes"),
                (2, instead(change(plain, f'-{self.serial}"', '"')), "has no id"),
                (2, instead(change(plain, f'-{self.serial}"', f'-{self.serial + 900}"')), "has a serial that the head says"),
                (2, instead(change(plain, f'_ns":{due_ns(0)}', f'_ns":{2**63 - 1}')), "has a deadline out of range"),
                (2, instead(change(dead, '"dead":true,', '')), "is a dead letter without ended_ns"),
                (2, instead(change(dead, '"dead":true,', '"dead":true,"started":true,')), "is a dead letter that runs"),
                (last, [head, *rows, nameless, end], "has an id that a line before it has"),
                (last, [head, *rows, dead, end], "has an id that a line before it has"),
                (3, [head, nameless, change(nameless, '"due_ns":1', '"due_ns":2'), end], "has an id that a line before it has"),
                (3, [head, dead, change(dead, '"dead":true,"ended_ns":', '"highest_ns":')], "has a member of another line"),
                (last, [head, *rows, other, end], "has a key that a timer before it has"),
                (last, [head, *rows, '{"rows":3}\n'], "has another number of timers"),
                (last + 1, [*full, end], "is behind the last line"),
        ):
            with self.subTest(text, number=number):
                self.loaded("".join(lines), code=3)
                self.assertIn(f"timers-dump:{number}: the line {text}" if number else text, self.said)

    def test_load_overwrites_nothing(self):
        text = self.run_tool("dump")
        before = self.path.read_bytes()
        (self.folder / "timers-dump").write_text(text, encoding="ascii")
        self.run_tool("load", str(self.folder / "timers-dump"), code=3)
        self.assertIn("is there already", self.said)
        self.assertEqual(self.path.read_bytes(), before)
        new = self.folder / "timers-new"
        for left, said in (("timers-new-wal", "is there already"), ("timers-new-load", "then remove it")):
            (self.folder / left).write_text("left", encoding="ascii")
            self.run_tool("load", str(self.folder / "timers-dump"), code=3, path=new)
            self.assertIn(said, self.said)
            self.assertEqual((self.folder / left).read_text(encoding="ascii"), "left")
            self.assertFalse(new.exists())
            (self.folder / left).unlink()
        self.run_tool("load", str(self.folder / "none"), code=3, path=new)
        self.assertIn("none: No such file", self.said)
        self.run_tool("load", "-", code=3, path=self.folder / "none" / "new")
        self.assertIn("No such file", self.said)

    def test_a_load_without_room_leaves_no_file(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

        new = self.folder / "timers-new"
        ran = subprocess.run([TOOL, str(new), "load", "-"], input=self.run_tool("dump"), capture_output=True, text=True,
                             check=False, preexec_fn=limit)
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertIn("timers-new-load: ", ran.stderr)
        self.assertEqual(list(self.folder.glob("timers-new*")), [])

    # The file itself: check, and damaged files.

    def test_a_whole_file_has_no_defects(self):
        self.assertRegex(self.run_tool("check"), rf"^{len(PENDING) + len(DEAD)} rows, 0 defects\n$")
        self.assertEqual(self.rows("check"), [{"rows": len(PENDING) + len(DEAD), "defects": 0}])

    def check_finds(self, change, text, defects=1):
        self.assertGreater(self.sql(change), 0)
        said = self.run_tool("check", code=1)
        self.assertIn(text, said)
        self.assertIn(f", {defects} defects\n", said)

    def row_of(self, number):
        return f"serial = {self.serial + number}"

    def table_of(self, number):
        database = sqlite3.connect(self.path)
        inbox = database.execute(f"SELECT count(*) FROM inbox WHERE {self.row_of(number)}").fetchone()[0]
        database.close()
        return "inbox" if inbox else "timer"

    def test_check_finds_a_changed_row(self):
        # If a moved timer is damaged, its pointer is useless, which counts as a defect of its own.
        for table, number, defects in ((self.table_of(1), 1, 1), ("timer", 7, 2), ("dead", 13, 1)):
            with self.subTest(table):
                self.setUp()
                self.check_finds(f"UPDATE {table} SET attempt = attempt + 1 WHERE {self.row_of(number)}",
                                 f"{table} {due_ns(number) // (64 * SECOND)}-{self.serial + number}: is damaged", defects)

    def test_dump_and_list_refuse_a_changed_row(self):
        self.sql(f"UPDATE {self.table_of(1)} SET attempt = 9 WHERE {self.row_of(1)}")
        self.run_tool("dump", code=3)
        self.assertIn("is damaged", self.said)
        self.run_tool("list", "--limit", "0", code=3)

    def test_check_finds_a_moved_timer_without_its_pointer(self):
        self.check_finds(f"DELETE FROM moved WHERE {self.row_of(7)}", f"timer {self.id_of(7)}: is not found by its id")

    def test_check_finds_a_pointer_without_its_timer(self):
        self.check_finds(f"DELETE FROM timer WHERE {self.row_of(7)}", f"moved {self.id_of(7)}: names a timer that is not there")

    def test_check_finds_a_pointer_of_a_timer_that_has_not_moved(self):
        self.check_finds(f"INSERT INTO moved SELECT {first_ns(1) // (64 * SECOND)}, {self.serial + 1}, 0, 0",
                         f"moved {self.id_of(1)}: names a timer that has not moved")

    def test_check_finds_a_timer_without_its_key(self):
        self.check_finds("DELETE FROM key WHERE name = CAST('k30' AS BLOB)", f"{self.id_of(30)}: is not found by its key")

    def test_check_finds_a_key_without_its_timer(self):
        self.check_finds(f"DELETE FROM {self.table_of(30)} WHERE {self.row_of(30)}",
                         f"key {self.id_of(30)}: names a timer that does not have it")

    def test_check_finds_a_timer_that_lies_twice(self):
        if self.table_of(1) != "inbox":
            self.skipTest("no row in the inbox")
        columns = "bucket, serial, place, due, kind, attempt, version, started, key, payload, crc"
        self.check_finds(f"INSERT INTO timer ({columns}) SELECT {columns} FROM inbox WHERE {self.row_of(1)}",
                         f"inbox {self.id_of(1)}: is in the table timer too")

    def test_check_finds_a_kind_without_its_name(self):
        self.sql("DELETE FROM kind WHERE id = 2")
        said = self.run_tool("check", code=1)
        self.assertIn(f"{self.id_of(1)}: is of a kind that has no name", said)

    def test_check_finds_a_serial_that_was_not_given_out(self):
        database = sqlite3.connect(self.path)
        _, epoch, clean, wall, _ = database.execute("SELECT serial, epoch, clean, wall, crc FROM meta").fetchone()
        database.close()
        last = self.serial + TIMERS + BULK - 1
        self.check_finds(f"UPDATE meta SET serial = {last}, crc = {crc32c((last, epoch, clean, wall))}",
                         f"{self.id_of(TIMERS + BULK - 1)}: has a serial that was not given out")

    def test_check_finds_a_damaged_page(self):
        content = bytearray(self.path.read_bytes())
        content[4096 * 4:4096 * 5] = b"\x5a" * 4096
        self.path.write_bytes(content)
        ran = subprocess.run([TOOL, str(self.path), "check"], capture_output=True, text=True, check=False)
        self.assertIn(ran.returncode, (1, 3))
        self.assertTrue("pages: " in ran.stdout or "is damaged" in ran.stderr, ran.stdout + ran.stderr)

    def test_files_that_are_not_ours(self):
        self.run_tool("list", code=3, path=self.folder / "none")
        self.assertIn("no such file", self.said)
        text = self.folder / "timers-text"
        text.write_text("no database\n" * 1000)
        self.run_tool("list", code=3, path=text)
        foreign = self.folder / "timers-foreign"
        database = sqlite3.connect(foreign)
        database.execute("CREATE TABLE timer (id)")
        database.commit()
        database.close()
        self.run_tool("list", code=3, path=foreign)
        self.assertIn("is not a file of durable timers", self.said)
        self.run_tool("list", code=3, path=self.folder)

    def test_files_of_other_versions(self):
        for version in (1, 3, 5):
            self.sql("UPDATE kind SET name = name")
            database = sqlite3.connect(self.path)
            database.execute(f"PRAGMA user_version = {version}")
            database.close()
            self.run_tool("list", code=3)
            self.assertIn("has another version", self.said)

    # Arguments.

    def test_wrong_usage(self):
        for arguments in ((), ("frobnicate",), ("show",), ("show", "12"), ("show", "1-0"), ("show", "1-x"), ("show", "x-1"), ("pause",), ("resume", "a", "b"),
                          ("find",), ("list", "more"), ("cancel", "k1"), ("revive",), ("backup",), ("list", "--limit", "-1"), ("list", "--limit", "x"), ("list", "--none")):
            with self.subTest(arguments):
                self.assertEqual(self.run_tool(*arguments, code=2), "")
                self.assertIn("usage: ", self.said)

    def test_help(self):
        ran = subprocess.run([TOOL, "--help"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0)
        self.assertIn("usage: ", ran.stdout)

    def test_an_output_that_is_full(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            ran = subprocess.run([TOOL, str(self.path), "dump"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(ran.returncode, 3)
        self.assertIn("the output", ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
