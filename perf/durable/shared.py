#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures processes that share timers in PostgreSQL, on a server that this script starts.

usage: shared.py DURABLE_SHARED SCHEMA_SQL [--repeat N] [--far N]

    fire     two processes, timers that others have scheduled, all due within one second: ended per second
    late     1,000 timers a second for 10 s, two processes: how late a run begins
    bare     a worker by itself that takes rows with SKIP LOCKED, once a second: how late
    kill     one of two processes is killed: how long until all that was due has run
    idle     far timers only: transactions per second and process
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/durable/postgres"))
from server import Server  # noqa: E402

PUT = """INSERT INTO tickwheel.timer (serial, place, due, kind, payload) SELECT nextval('tickwheel.single'), 1,
tickwheel.now_ns() + {first} + i::bigint * {step}, (SELECT id FROM tickwheel.kind WHERE name = 'perf'), repeat('p', 64)::bytea
FROM generate_series(1, {count}) AS i; ANALYZE tickwheel.timer"""
SECOND = 10**9


class Bench:
    def __init__(self, program, schema):
        self.program, self.processes = program, []
        self.server = Server(["shared_buffers = 512MB", "max_wal_size = 4GB"]).start()
        self.server.sql(f"BEGIN; {pathlib.Path(schema).read_text().replace('@schema@', 'tickwheel')} COMMIT")

    def start(self, count):
        for _ in range(count):
            process = subprocess.Popen([self.program, "postgres", self.server.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline() == "open\n"
            self.processes.append(process)

    def end(self):
        """What each of them reports."""
        said = [json.loads(process.communicate()[0]) for process in self.processes if process.poll() is None]
        self.processes = []
        self.server.sql("TRUNCATE tickwheel.timer")
        return said

    def put(self, count, first_ns, step_ns):
        self.server.sql(PUT.format(count=count, first=first_ns, step=step_ns))

    def number(self, text):
        return int(self.server.sql(text)[0][0])

    def drain(self):
        """The server's time at which the table is empty."""
        while self.number("SELECT count(*) FROM (SELECT 1 FROM tickwheel.timer LIMIT 1) AS one"):
            time.sleep(0.02)
        return self.number("SELECT tickwheel.now_ns()")


def fire(bench, count=100000):
    bench.start(2)
    bench.put(count, 8 * SECOND, SECOND // count)
    first = bench.number("SELECT min(due) FROM tickwheel.timer")
    took = (bench.drain() - first) / SECOND
    bench.end()
    return count / took


def late(bench):
    bench.start(2)
    bench.put(10000, 8 * SECOND, SECOND // 1000)
    bench.drain()
    said = bench.end()
    return max(one["p50_us"] for one in said) / 1000, max(one["p99_us"] for one in said) / 1000


def bare(bench):
    """What most do: look once a second, and take what is due."""
    bench.put(10000, 2 * SECOND, SECOND // 1000)
    taken = []
    while len(taken) < 10000:
        rows = bench.server.sql("WITH due AS (SELECT serial FROM tickwheel.timer WHERE session = 0 AND due <= tickwheel.now_ns() ORDER BY due"
                                " LIMIT 10000 FOR UPDATE SKIP LOCKED) DELETE FROM tickwheel.timer t USING due WHERE t.serial = due.serial"
                                " RETURNING tickwheel.now_ns() - t.due")
        taken += [int(row[0]) / 10**6 for row in rows]
        time.sleep(1)
    taken.sort()
    return taken[len(taken) // 2], taken[len(taken) * 99 // 100]


def kill(bench):
    bench.start(2)
    bench.put(2000, 6 * SECOND, SECOND // 100)
    time.sleep(10)
    bench.processes[0].kill()
    bench.processes[0].wait()
    bench.drain()
    return max(one["max_us"] for one in bench.end()) / 10**6


def idle(bench, far):
    bench.start(2)
    bench.put(far, 3600 * SECOND, 1000)
    time.sleep(5)
    count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'"
    before, begin = bench.number(count), time.monotonic()
    time.sleep(20)
    after, took = bench.number(count), time.monotonic() - begin
    bench.end()
    return (after - before) / took / 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("schema")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--far", type=int, default=1000000)
    options = parser.parse_args()
    bench = Bench(options.program, options.schema)
    try:
        fired, lates, bares = [], [], []
        for number in range(options.repeat):
            fired.append(fire(bench))
            lates.append(late(bench))
            bares.append(bare(bench))
            print(number + 1, fired[-1], lates[-1], bares[-1], file=sys.stderr)
        middle = statistics.median
        print(f"fired and ended by two processes: {middle(fired) / 1000:.0f} k/s")
        print(f"late: p50 {middle(one[0] for one in lates):.1f} ms, p99 {middle(one[1] for one in lates):.1f} ms; "
              f"by a poll of 1 s: {middle(one[0] for one in bares):.0f} ms, {middle(one[1] for one in bares):.0f} ms")
        print(f"after a kill -9 the latest run was {kill(bench):.1f} s late")
        print(f"idle beside {options.far:,} far timers: {idle(bench, options.far):.2f} transactions per second and process")
    finally:
        for process in bench.processes:
            process.kill()
        bench.server.end()


main()
