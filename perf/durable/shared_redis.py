#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures processes that share timers in Redis, on a server that this script starts.

usage: shared_redis.py DURABLE_SHARED [--repeat N] [--far N] [--sync always|everysec]

    fire      two processes run timers that others have scheduled, all due within one second: timers ended per second
    late      two processes run 1,000 timers a second for 10 s: how late a run begins
    queue     one process uses a plain sorted set with Lua (pop, lease, ack; 1,000 at once): timers put per second, and
              timers popped and acknowledged per second
    schedule  one process calls tw_durable_schedule until all is acknowledged; in turns with it, scripts do only the
              HSET and ZADD of the same rows, 1,000 to a script and four scripts at once, as a commit does: timers
              per second
    kill      one of two processes is killed: how late the last of its timers runs
    idle      no timer is due soon: scripts per second and process; memory per timer
"""
import argparse
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/durable/redis"))
from server import Server, encode  # noqa: E402

SECOND, PAYLOAD = 10**9, b"p" * 64
POP = """local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1000)
for i = 1, #due do redis.call('ZREM', KEYS[1], due[i]) redis.call('ZADD', KEYS[2], ARGV[2], due[i]) end
return #due > 0 and {due, redis.call('HMGET', KEYS[3], unpack(due))} or {}"""
ACK = "redis.call('ZREM', KEYS[1], unpack(ARGV)) return redis.call('HDEL', KEYS[2], unpack(ARGV))"
# Writes the same rows as a commit does, and nothing else.
BARE = """for i = 1, #ARGV, 2 do
redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) redis.call('ZADD', KEYS[2], 0, string.sub(ARGV[i + 1], 1, 16) .. ARGV[i]) end"""
PUT = """for i = 1, #ARGV, 3 do redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i + 2]) end"""


def key(name):
    return f"{{tickwheel:0}}:{name}"


class Bench:
    def __init__(self, program, sync):
        self.program, self.processes = program, []
        self.server = Server([f"appendfsync {sync}"]).start()

    def start(self, count):
        for _ in range(count):
            process = subprocess.Popen([self.program, "redis", self.server.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdout.readline() == "open\n"
            self.processes.append(process)

    def end(self):
        """Ends the processes. Returns what each of them reports."""
        said = [json.loads(process.communicate()[0]) for process in self.processes if process.poll() is None]
        self.processes = []
        return said

    def now_us(self):
        seconds, us = self.server("TIME")
        return int(seconds) * 10**6 + int(us)

    def put(self, count, first_ns, step_ns):
        """Writes timers as commits do. Returns the first deadline, in microseconds."""
        kind = int(self.server("HGET", key("kind"), "perf"))
        first = self.now_us() * 1000 + first_ns
        for at in range(0, count, 1000):
            timers, free = [], []
            for i in range(at, min(at + 1000, count)):
                due, rest = struct.pack(">Q", (first + i * step_ns) ^ 1 << 63), struct.pack(">I", 7 ^ 1 << 31)
                serial = struct.pack(">Q", i + 1)
                timers += [serial, due + rest + struct.pack(">IIB", kind, 0, 0) + PAYLOAD]
                free += [0, struct.pack(">I", kind) + due + rest + serial]
            self.server.client.many([("HSET", key("timer"), *timers), ("ZADD", key("free"), *free)])
        return first // 1000

    def drain(self):
        while self.server("HLEN", key("timer")):
            time.sleep(0.02)
        return self.now_us()


def fire(bench, count=100000):
    bench.start(2)
    first = bench.put(count, 12 * SECOND, SECOND // count)
    took = (bench.drain() - first) / 10**6
    bench.end()
    return count / took


def late(bench):
    bench.start(2)
    bench.put(10000, 8 * SECOND, SECOND // 1000)
    bench.drain()
    said = bench.end()
    return max(one["p50_us"] for one in said) / 1000, max(one["p99_us"] for one in said) / 1000


def queue(bench, count=100000):
    run, began = bench.server, time.monotonic()
    for at in range(0, count, 1000):
        run("EVAL", PUT, 2, "q", "qp", *[word for i in range(at, at + 1000) for word in (at, f"job{i}", PAYLOAD)])
    put = count / (time.monotonic() - began)
    began = time.monotonic()
    while popped := run("EVAL", POP, 3, "q", "ql", "qp", count, 2 * count):
        run("EVAL", ACK, 2, "ql", "qp", *popped[0])
    return put, count / (time.monotonic() - began)


def schedule(bench, count=200000):
    process = subprocess.Popen([bench.program, "redis", bench.server.address, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "open\n"
    began = time.monotonic()
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "scheduled\n"
    ours = count / (time.monotonic() - began)
    process.communicate()
    bench.server("FLUSHALL")
    rows = [word for i in range(1000) for word in (struct.pack(">Q", i), struct.pack(">QIIIB", i, 0, 0, 0, 0) + PAYLOAD)]
    texts = []
    for at in range(0, count, 1000):
        rows[::2] = [struct.pack(">Q", at + i) for i in range(1000)]
        texts.append(encode("EVAL", BARE, 2, "bare", "bare order", *rows))
    began = time.monotonic()
    for at in range(0, len(texts), 4):
        bench.server.client.socket.sendall(b"".join(texts[at:at + 4]))
        for _ in texts[at:at + 4]:
            bench.server.client.reply()
    bare = count / (time.monotonic() - began)
    bench.server("FLUSHALL")
    return ours, bare


def kill(bench):
    bench.start(2)
    bench.put(2000, 6 * SECOND, SECOND // 100)
    time.sleep(10)
    bench.processes[0].kill()
    bench.processes[0].wait()
    bench.drain()
    return max(one["max_us"] for one in bench.end()) / 10**6


def idle(bench, far):
    bench.server("FLUSHALL")
    bench.start(2)
    before = int(bench.server("INFO", "memory").split(b"used_memory:")[1].split()[0])
    bench.put(far, 3600 * SECOND, 1000)
    memory = (int(bench.server("INFO", "memory").split(b"used_memory:")[1].split()[0]) - before) / far
    time.sleep(2)

    def scripts():
        text = bench.server("INFO", "commandstats")
        return sum(int(text.split(f"cmdstat_{name}:calls=".encode())[1].split(b",")[0]) for name in ("evalsha",))

    before, began = scripts(), time.monotonic()
    time.sleep(20)
    calls = (scripts() - before) / (time.monotonic() - began) / 2
    bench.end()
    return calls, memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--far", type=int, default=1000000)
    parser.add_argument("--sync", default="always")
    options = parser.parse_args()
    bench = Bench(options.program, options.sync)
    try:
        fired, lates, queues, puts = [], [], [], []
        for number in range(options.repeat):
            fired.append(fire(bench))
            lates.append(late(bench))
            queues.append(queue(bench))
            puts.append(schedule(bench))
            print(number + 1, fired[-1], lates[-1], queues[-1], puts[-1], file=sys.stderr)
        middle = statistics.median
        print(f"appendfsync {options.sync}: fired and ended by two processes: {middle(fired) / 1000:.0f} k/s")
        print(f"late: p50 {middle(one[0] for one in lates):.1f} ms, p99 {middle(one[1] for one in lates):.1f} ms")
        print(f"plain queue: put {middle(one[0] for one in queues) / 1000:.0f} k/s, popped and acknowledged "
              f"{middle(one[1] for one in queues) / 1000:.0f} k/s")
        print(f"scheduled by one process: {middle(one[0] for one in puts) / 1000:.0f} k/s, the bare script "
              f"{middle(one[1] for one in puts) / 1000:.0f} k/s: {middle(one[0] / one[1] for one in puts):.2f}")
        print(f"after a kill -9 the latest run was {kill(bench):.1f} s late")
        calls, memory = idle(bench, options.far)
        print(f"idle beside {options.far:,} far timers: {calls:.2f} scripts per second and process; {memory:.0f} bytes per timer")
    finally:
        for process in bench.processes:
            process.kill()
        bench.server.end()


main()
