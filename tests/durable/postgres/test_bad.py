#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers and schemas that cannot be used. For each, the open or a later call must return the right code, and no
acknowledged timer may be lost.

usage: test_bad.py WORKER [unittest's arguments]
"""
import errno
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server, schema_text

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from proxy import Proxy  # pylint: disable=wrong-import-position

WORKER = sys.argv[1]
SCHEMA = "tickwheel"
FAILED, CUT = 1, 5
ABSENT = 5


class Bad(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(["wal_level = replica", "max_wal_senders = 3"]).start()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="twpb", dir="/tmp"))

    @classmethod
    def tearDownClass(cls):
        cls.server.end()
        subprocess.run(["rm", "-rf", str(cls.folder)], check=True)

    def setUp(self):
        self.server.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; BEGIN; {schema_text(SCHEMA)} COMMIT;")
        self.log = self.folder / "log"
        self.log.write_text("")

    def address(self, user="postgres", database="postgres", folder=None):
        return f"host={folder or self.server.folder} user={user} dbname={database}"

    def worker(self, address, **more):
        return subprocess.Popen([WORKER, address, SCHEMA, str(self.log), "w", "1000"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, **more)

    def refused(self, code, address=None, **more):
        process = self.worker(address or self.address(), **more)
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3, said)
        self.assertIn(f"open: {os.strerror(code)}", said)
        return said

    def wait(self, *texts):
        """Waits until the log has one of the texts."""
        end = time.monotonic() + 120
        while not any(text in self.log.read_text() for text in texts):
            self.assertLess(time.monotonic(), end, f"no {texts!r}: {self.log.read_text()}")
            time.sleep(0.02)

    def test_no_server(self):
        self.refused(errno.ECONNREFUSED, self.address(folder=self.folder))

    def test_no_such_user_or_database(self):
        self.assertIn("does not exist", self.refused(errno.EACCES, self.address(user="nobody_there")))
        self.refused(errno.EACCES, self.address(database="nowhere"))

    def test_a_wrong_password(self):
        self.server.sql("CREATE ROLE secret LOGIN PASSWORD 'right'")
        rules = self.server.folder / "data/pg_hba.conf"
        text = rules.read_text()
        try:
            rules.write_text("local all secret scram-sha-256\n" + text)
            self.server.sql("SELECT pg_reload_conf()")
            end = time.monotonic() + 60
            while "password" not in subprocess.run(["psql", self.address(user="secret") + " password=wrong", "-c", ""], capture_output=True,
                                                   text=True, check=False).stderr:
                self.assertLess(time.monotonic(), end)
            self.refused(errno.EACCES, self.address(user="secret") + " password=wrong")
        finally:
            rules.write_text(text)
            self.server.sql("SELECT pg_reload_conf(); DROP ROLE secret")

    def test_a_server_elsewhere(self):
        """127.0.0.2 is this machine, but the library treats it as the address of another one."""
        socket = self.server.folder / ".s.PGSQL.5432"
        for host, warned in (("127.0.0.1", False), ("127.0.0.2", True)):
            proxy = Proxy(socket, None).start_tcp(host)
            self.addCleanup(proxy.end)
            process = self.worker(f"host={host} port={proxy.port} user=postgres dbname=postgres")
            self.wait("w open\n")
            _, said = process.communicate("close\n", timeout=120)
            self.assertEqual((process.returncode, "not verified" in said), (0, warned), said)
            self.log.write_text("")

    def test_no_schema(self):
        self.server.sql(f"DROP SCHEMA {SCHEMA} CASCADE")
        self.refused(errno.ENOENT)

    def test_a_schema_of_the_future(self):
        self.server.sql(f"UPDATE {SCHEMA}.meta SET version = 3, serves = 3")
        self.refused(errno.ENOTSUP)

    def test_a_schema_of_the_future_that_serves_this_library(self):
        self.server.sql(f"UPDATE {SCHEMA}.meta SET version = 3, serves = 2")
        with self.worker(self.address()) as process:
            self.wait("w open\n")
            _, said = process.communicate("close\n", timeout=120)
        self.assertEqual(process.returncode, 0, said)

    def test_a_schema_of_the_past(self):
        self.server.sql(f"UPDATE {SCHEMA}.meta SET version = 1")
        self.refused(errno.ENOTSUP)

    def test_a_schema_of_another_program(self):
        self.server.sql(f"DROP SCHEMA {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.bookmarks (url text)")
        self.refused(errno.EUCLEAN)

    def test_an_altered_table(self):
        self.server.sql(f"ALTER TABLE {SCHEMA}.kind DROP COLUMN paused; ALTER TABLE {SCHEMA}.kind RENAME name TO title")
        self.refused(errno.EUCLEAN)

    def test_a_table_that_does_not_survive_a_crash(self):
        self.server.sql(f"ALTER TABLE {SCHEMA}.timer SET UNLOGGED")
        self.refused(errno.ENOTSUP)

    def test_a_lesser_promise_of_the_server(self):
        self.server.sql("CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET synchronous_commit = off")
        try:
            self.refused(errno.ENOTSUP, self.address(user="hasty"))
        finally:
            self.server.sql("DROP ROLE hasty")

    def test_reading_only(self):
        self.server.sql("CREATE ROLE reader LOGIN SUPERUSER; ALTER ROLE reader SET default_transaction_read_only = on")
        try:
            self.refused(errno.EROFS, self.address(user="reader"))
        finally:
            self.server.sql("DROP ROLE reader")

    def test_no_permission(self):
        self.server.sql(f"CREATE ROLE stranger LOGIN; GRANT USAGE ON SCHEMA {SCHEMA} TO stranger")
        try:
            self.refused(errno.EACCES, self.address(user="stranger"))
        finally:
            self.server.sql("DROP OWNED BY stranger; DROP ROLE stranger")

    def test_the_permissions_that_the_page_names_are_enough(self):
        self.server.sql("CREATE ROLE guest LOGIN; ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
        self.setUp()
        self.server.sql(f"ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC; GRANT USAGE ON SCHEMA {SCHEMA} TO guest;"
                        f"GRANT ALL ON ALL TABLES IN SCHEMA {SCHEMA} TO guest; GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO guest;"
                        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {SCHEMA} TO guest")
        try:
            with self.worker(self.address(user="guest")) as process:
                self.wait("w open\n")
                process.stdin.write("schedule 10 job 10\n")
                process.stdin.flush()
                end = time.monotonic() + 120
                while self.log.read_text().count("w end ") < 10:
                    self.assertLess(time.monotonic(), end, self.log.read_text())
                _, said = process.communicate("close\n", timeout=120)
            self.assertEqual(process.returncode, 0, said)
        finally:
            self.server.sql("DROP OWNED BY guest; DROP ROLE guest")

    def fails(self, text, *codes):
        """Breaks the schema while a set has it open. Expects one of the codes."""
        with self.worker(self.address()) as process:
            self.wait("w open\n")
            process.stdin.write("schedule 10 job 3600000\n")
            process.stdin.flush()
            end = time.monotonic() + 120
            while self.log.read_text().count("w ack ") < 10:
                self.assertLess(time.monotonic(), end, self.log.read_text())
            self.server.sql(text)
            process.stdin.write("schedule 1 job 3600000\n")
            process.stdin.flush()
            self.wait(*(f"w state {FAILED} {-code}\n" for code in codes))
            process.communicate("close\n", timeout=120)
        self.assertEqual(process.returncode, 3)

    def test_a_table_that_is_altered_under_it(self):
        self.fails(f"ALTER TABLE {SCHEMA}.timer RENAME due TO deadline", errno.EUCLEAN)
        self.assertEqual(self.server.sql(f"SELECT count(*) FROM {SCHEMA}.timer"), [["10"]])

    def test_a_schema_that_no_longer_serves_the_library(self):
        """A later version may replace functions by ones that refuse."""
        self.fails(f"CREATE OR REPLACE FUNCTION {SCHEMA}.batch_begin(s bigint, n bigint, claims boolean) RETURNS bigint LANGUAGE plpgsql AS "
                   "$$ BEGIN RAISE EXCEPTION 'later' USING ERRCODE = 'TW002'; END $$", errno.ENOTSUP)

    def test_a_schema_that_is_dropped_under_it(self):
        # The set must fail with ENOENT, not EUCLEAN, even if the drop makes a claim under way find a table missing.
        self.fails(f"DROP SCHEMA {SCHEMA} CASCADE", errno.ENOENT)

    def test_a_server_that_goes_away(self):
        with self.worker(self.address()) as process:
            self.wait("w open\n")
            self.server.kill()
            # Sends a request that only the server can answer, and then schedules timers.
            process.stdin.write("unkey nothing\nschedule 10 job 3600000\n")
            process.stdin.flush()
            self.wait(f"w state {CUT} ")
            self.assertNotIn(" ack ", self.log.read_text())
            self.assertNotIn(" cancelled ", self.log.read_text())
            self.server.start()
            self.wait("w state 0 ")
            end = time.monotonic() + 120
            while self.log.read_text().count("w ack ") < 10:
                self.assertLess(time.monotonic(), end, self.log.read_text())
            _, said = process.communicate("close\n", timeout=120)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn(f"w cancelled 0-0 {ABSENT}\n", self.log.read_text())
        self.assertEqual(self.server.sql(f"SELECT count(*) FROM {SCHEMA}.timer"), [["10"]])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
