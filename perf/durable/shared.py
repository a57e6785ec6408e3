#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures processes that share timers in PostgreSQL, on a server that this script starts.

usage: shared.py DURABLE_SHARED SCHEMA_SQL [--repeat N] [--far N]

    fire     two processes run timers that others have scheduled, all due within one second: timers ended per second
    late     two processes run 1,000 timers a second for 10 s: how late a run begins; and the same with a file
    bare     a single worker without tickwheel takes due rows with SKIP LOCKED, once a second: how late it takes them
    kill     one of two processes is killed: how long it takes until all due timers have run
    idle     no timer is due soon: transactions per second and process
    bloat    --bloat N: N timers come and go while a transaction holds a snapshot for --held S seconds: the bytes of the
             tables for each, how late runs begin then, and how long until the dead rows are gone
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
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
        """Ends the processes. Returns what each of them reports."""
        said = [json.loads(process.communicate()[0]) for process in self.processes if process.poll() is None]
        self.processes = []
        self.server.sql("TRUNCATE tickwheel.timer")
        return said

    def put(self, count, first_ns, step_ns):
        self.server.sql(PUT.format(count=count, first=first_ns, step=step_ns))

    def number(self, text):
        return int(self.server.sql(text)[0][0])

    def drain(self, pause_s=0.02):
        """Waits until the table is empty. Returns the server's time then."""
        while self.number("SELECT count(*) FROM (SELECT 1 FROM tickwheel.timer LIMIT 1) AS one"):
            time.sleep(pause_s)
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


def late_file(bench):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        with subprocess.Popen([bench.program, "file", f"{folder}/timers", "10000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(20)
            said = json.loads(process.communicate()[0])
    return said["p50_us"] / 1000, said["p99_us"] / 1000


def bare(bench):
    """Does what most programs do: takes the due rows once a second."""
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


SIZE = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = 'tickwheel'::regnamespace AND relkind = 'r'"
DEAD = "SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'tickwheel'"


def waves(bench, count):
    """Schedules and runs `count` timers, 100,000 at a time. Returns how late they were, in ms."""
    bench.start(2)
    for _ in range(count // 100000):
        bench.put(100000, 6 * SECOND, SECOND * 4 // 100000)
        # The question whether the table is empty reads all dead rows, so it is not asked while timers run.
        time.sleep(9)
        bench.drain(0.5)
    said = [json.loads(process.communicate()[0]) for process in bench.processes]
    bench.processes = []
    return max(one["p99_us"] for one in said) / 1000


def bloat(bench, count, held_s):
    bench.server.sql("VACUUM tickwheel.timer")
    quiet = waves(bench, 200000)
    size, begin = bench.number(SIZE), time.monotonic()
    psql = [str(bench.server.bin / "psql"), "-h", str(bench.server.folder), "-U", "postgres", "-Xq"]
    with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as holder:
        holder.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tickwheel.meta;\n")
        holder.stdin.flush()
        late_held = waves(bench, count)
        time.sleep(max(0, held_s - (time.monotonic() - begin)))
        grown = bench.number(SIZE) - size
        holder.communicate("COMMIT;\n")
    released = time.monotonic()
    while bench.number(DEAD) > 20000 and time.monotonic() - released < 300:
        time.sleep(1)
    return grown / count, quiet, late_held, time.monotonic() - released


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("schema")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--far", type=int, default=1000000)
    parser.add_argument("--bloat", type=int)
    parser.add_argument("--held", type=int, default=600)
    options = parser.parse_args()
    bench = Bench(options.program, options.schema)
    try:
        if options.bloat:
            each, quiet, held, gone = bloat(bench, options.bloat, options.held)
            print(f"a snapshot held for {options.held} s, {options.bloat:,} timers came and went: {each:.0f} bytes for each; runs late by p99 "
                  f"{held:.1f} ms ({quiet:.1f} ms before); dead rows gone {gone:.0f} s after the release")
            return
        fired, lates, files, bares = [], [], [], []
        for number in range(options.repeat):
            fired.append(fire(bench))
            lates.append(late(bench))
            files.append(late_file(bench))
            bares.append(bare(bench))
            print(number + 1, fired[-1], lates[-1], files[-1], bares[-1], file=sys.stderr)
        middle = statistics.median
        print(f"fired and ended by two processes: {middle(fired) / 1000:.0f} k/s")
        print(f"late: p50 {middle(one[0] for one in lates):.1f} ms, p99 {middle(one[1] for one in lates):.1f} ms; "
              f"by a file: {middle(one[0] for one in files):.1f} ms, {middle(one[1] for one in files):.1f} ms; "
              f"by a poll of 1 s: {middle(one[0] for one in bares):.0f} ms, {middle(one[1] for one in bares):.0f} ms")
        print(f"after a kill -9 the latest run was {kill(bench):.1f} s late")
        print(f"idle beside {options.far:,} far timers: {idle(bench, options.far):.2f} transactions per second and process")
    finally:
        for process in bench.processes:
            process.kill()
        bench.server.end()


main()
