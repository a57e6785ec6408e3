#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers that cannot be used. For each, the open or a later call must return the right code, and no
acknowledged timer may be lost.

usage: test_bad.py WORKER [unittest's arguments]
"""
import errno
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from server import Client, ReplyError, Server

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from proxy import Proxy  # pylint: disable=wrong-import-position

WORKER = sys.argv[1]
PREFIX = "tickwheel"
FAILED, CUT, RUNS = 1, 5, 0
TIMERS = f"{{{PREFIX}:0}}:timer"


class Bad(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="twrb", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = self.folder / "log"
        self.log.touch()

    def server(self, *settings):
        server = Server(settings)
        self.addCleanup(server.end)
        return server.start()

    def worker(self, address, **more):
        return subprocess.Popen([WORKER, str(address), PREFIX, str(self.log), "w", "1000"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={**os.environ, **more})

    def refused(self, code, address, **more):
        _, said = (process := self.worker(address, **more)).communicate(timeout=120)
        self.assertEqual(process.returncode, 3, said)
        self.assertIn(f"open: {os.strerror(code)}", said)
        return said

    def wait(self, text, count=1):
        end = time.monotonic() + 120
        while self.log.read_text().count(text) < count:
            self.assertLess(time.monotonic(), end, f"no {text!r}: {self.log.read_text()}")
            time.sleep(0.02)

    def say(self, process, text):
        process.stdin.write(text)
        process.stdin.flush()

    def good(self, address, **more):
        """Schedules ten timers, which must run."""
        with self.worker(address, **more) as process:
            self.wait("w open\n")
            self.say(process, "schedule 10 job 10\n")
            self.wait("w end ", 10)
            _, said = process.communicate("close\n", timeout=120)
        self.assertEqual(process.returncode, 0, said)
        return said

    def test_no_server(self):
        self.refused(errno.ECONNREFUSED, self.folder / "nothing")
        self.refused(errno.ECONNREFUSED, "127.0.0.1:1")
        self.refused(errno.ECONNREFUSED, "127.0.0.1:99999")

    def test_passwords(self):
        server = self.server()
        server("CONFIG", "SET", "requirepass", "right")
        self.refused(errno.EACCES, server.address)
        self.refused(errno.EACCES, server.address, TESTS_REDIS_PASSWORD="wrong")
        self.good(server.address, TESTS_REDIS_PASSWORD="right")

    def test_a_server_elsewhere(self):
        """127.0.0.2 is this machine, but the library treats it as the address of another one."""
        server = self.server()
        for host, warned in (("127.0.0.1", False), ("127.0.0.2", True)):
            proxy = Proxy(server.socket, None).start_tcp(host)
            self.addCleanup(proxy.end)
            self.log.write_text("")
            self.assertEqual("not encrypted" in self.good(f"{host}:{proxy.port}"), warned, host)
        self.log.write_text("")
        self.assertNotIn("not encrypted", self.good(server.address))

    def test_a_cluster(self):
        self.assertIn("cluster", self.refused(errno.ENOTSUP, self.server("cluster-enabled yes", "port 0").address))

    def test_a_replica(self):
        self.assertIn("replica", self.refused(errno.EROFS, self.server("replicaof 127.0.0.1 1", "replica-serve-stale-data yes").address))

    def test_lesser_promises(self):
        for settings, level in ((["appendfsync everysec"], 2), (["appendfsync no"], 1), (["appendonly no"], 1),
                                (["no-appendfsync-on-rewrite yes"], 1)):
            with self.subTest(settings):
                server = self.server(*settings)
                self.refused(errno.ENOTSUP, server.address)
                if level < 3:
                    self.refused(errno.ENOTSUP, server.address, TESTS_LEVEL=str(level + 1))
                self.log.write_text("")
                self.good(server.address, TESTS_LEVEL=str(level))

    def test_settings_that_cannot_be_read(self):
        server = self.server()
        server("ACL", "SETUSER", "default", "-config")
        self.assertIn("CONFIG", self.refused(errno.EACCES, server.address))
        self.good(server.address, TESTS_REDIS_STATED="1")

    def test_a_user_who_may_too_little(self):
        """Redis does not undo a script that fails in the middle. So the open must try each command that the
        scripts use."""
        server = self.server()
        commands = ("exists", "hdel", "hexists", "hget", "hgetall", "hincrby", "hkeys", "hmget", "hset", "smembers", "type", "zadd", "zcard",
                    "zlexcount", "zrange", "zrangebylex", "zrangebyscore", "zrem", "zscore")
        for command in commands:
            with self.subTest(command):
                server("ACL", "SETUSER", "default", "-" + command)
                self.refused(errno.EACCES, server.address)
                server("ACL", "SETUSER", "default", "+" + command)
        # Gives the rights that docs/machines.md lists.
        server("ACL", "SETUSER", "default", "resetkeys", f"~{{{PREFIX}:0}}:*", *(
            "-@all +@hash +@sortedset +@set +exists +type +time +info +select +eval +evalsha +script|load +config|get".split()))
        self.good(server.address)

    def test_eviction(self):
        self.assertIn("noeviction", self.refused(errno.ENOTSUP, self.server("maxmemory-policy allkeys-lru").address))

    def test_keys_of_another_program(self):
        server = self.server()
        server("SET", TIMERS, "bookmarks")
        self.refused(errno.EUCLEAN, server.address)
        server("DEL", TIMERS)
        server("HSET", TIMERS, "url", "x")
        self.refused(errno.EUCLEAN, server.address)

    def test_a_format_of_the_future(self):
        server = self.server()
        server("HSET", f"{{{PREFIX}:0}}:meta", "version", 2)
        self.refused(errno.ENOTSUP, server.address)

    def test_no_memory(self):
        server = self.server()
        server("CONFIG", "SET", "maxmemory", "100kb")
        self.refused(errno.ENOSPC, server.address)

    def running(self, server, break_it, code):
        """Schedules ten timers, which are acknowledged. Then breaks the server, so that the set fails with this
        code.
        """
        with self.worker(server.address) as process:
            self.wait("w open\n")
            self.say(process, "schedule 10 job 3600000\n")
            self.wait("w ack ", 10)
            break_it()
            self.say(process, "schedule 1 job 3600000\n")
            self.wait(f"w state {FAILED} {-code}\n")
            _, said = process.communicate("close\n", timeout=120)
        self.assertEqual(process.returncode, 3)
        return said

    def test_eviction_that_is_switched_on_under_it(self):
        server = self.server()
        self.assertIn("may vanish", self.running(server, lambda: server("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"), errno.ENOTSUP))
        self.assertEqual(server("HLEN", TIMERS), 10 if server("HLEN", TIMERS) == 10 else 11)

    def test_a_server_that_is_emptied(self):
        server = self.server()
        self.assertIn("emptied", self.running(server, lambda: server("FLUSHALL"), errno.ENOENT))

    def test_a_key_that_becomes_another(self):
        server = self.server()
        self.running(server, lambda: server("SET", TIMERS, "x"), errno.EUCLEAN)

    def cut(self, server, break_it, mend):
        """Breaks the server for a while. Meanwhile no timer may be acknowledged, and none may be lost."""
        with self.worker(server.address) as process:
            self.wait("w open\n")
            self.say(process, "schedule 10 job 3600000\n")
            self.wait("w ack ", 10)
            break_it()
            self.say(process, "unkey nothing\nschedule 10 job 3600000\n")
            self.wait(f"w state {CUT} ")
            self.assertEqual(self.log.read_text().count(" ack "), 10)
            self.assertNotIn(" cancelled ", self.log.read_text())
            mend()
            self.wait("w ack ", 20)
            self.wait("w cancelled 0-0 5\n")
            _, said = process.communicate("close\n", timeout=120)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(server("HLEN", TIMERS), 20)
        return said

    def test_a_server_that_goes_away(self):
        server = self.server()
        self.cut(server, server.kill, server.start)

    def test_a_server_that_becomes_a_replica(self):
        server = self.server()
        self.assertIn("READONLY", self.cut(server, lambda: server("REPLICAOF", "127.0.0.1", "1"), lambda: server("REPLICAOF", "NO", "ONE")))

    def test_a_server_that_cannot_save(self):
        """After a failed snapshot, Redis refuses writes. The test removes the server's folder, so the snapshot
        fails even for root.
        """
        server = self.server("dbfilename nowhere.rdb")

        def break_it():
            server("CONFIG", "SET", "save", "3600 1")
            (server.folder / "nowhere.rdb").mkdir()
            server("BGSAVE")
            end = time.monotonic() + 60
            while b"rdb_last_bgsave_status:err" not in server("INFO", "persistence"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)

        def mend():
            server("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")

        self.assertIn("MISCONF", self.cut(server, break_it, mend))

    def test_a_server_that_loads(self):
        """While the server loads its data, it answers, but rejects each command."""
        server = self.server("appendonly no", "enable-debug-command yes")
        for at in range(0, 200000, 10000):
            server.client.many([("SET", f"key{at + i}", "x" * 100) for i in range(10000)])
        server("SAVE")
        server("CONFIG", "SET", "appendonly", "yes")
        server("CONFIG", "SET", "appendonly", "no")
        server.kill()
        text = (server.folder / "redis.conf").read_text()
        (server.folder / "redis.conf").write_text(text + "\nkey-load-delay 20\nloading-process-events-interval-bytes 1024\n")
        with open(server.folder / "log", "ab") as log:
            server.process = subprocess.Popen([server.program, str(server.folder / "redis.conf")], stdout=log, stderr=log, cwd="/",
                                              start_new_session=True)
        end = time.monotonic() + 60
        while True:
            self.assertLess(time.monotonic(), end)
            try:
                Client(server.socket)("PING")
                self.skipTest("it has loaded already")
            except ReplyError:
                break
            except OSError:
                time.sleep(0.01)
        self.assertIn("loads", self.refused(errno.EAGAIN, server.address, TESTS_LEVEL="1"))
        server.client = Client(server.socket)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
