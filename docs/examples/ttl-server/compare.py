#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts the same load on ttl-server and on the real redis-server, one after the other. Prints the medians as a table.

usage: compare.py PATH-OF-TTL-SERVER [ROUNDS [REQUESTS]]    (exit 77: redis-server or redis-tools are missing)

Each round starts both servers anew, in an order that alternates, without persistence. redis-benchmark is the
client. Then it loads 100,000 keys of 1 to 3 s. DBSIZE, every 20 ms, shows how many are still in memory after
their deadline.
"""
import csv
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import time

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
REQUESTS = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
KEYS = 100_000
COMMANDS = {
    "`SET key value`": ["SET", "key:__rand_int__", "value"],
    "`SET key value EX 1000`": ["SET", "key:__rand_int__", "value", "EX", "1000"],
    "`GET key`": ["GET", "key:__rand_int__"],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, name):
        self.port = free_port()
        command = {
            "ttl-server": [sys.argv[1], "--port", str(self.port)],
            "redis-server": ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"],
        }[name]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while True:
            try:
                self.connection = socket.create_connection(("127.0.0.1", self.port))
                return
            except ConnectionRefusedError:
                time.sleep(0.01)

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def benchmark(self, depth, command):
        words = ["redis-benchmark", "-p", str(self.port), "--csv", "-n", str(REQUESTS), "-r", "100000", "-c", "50",
                 "-P", str(depth), *command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
        return float([row for row in csv.reader(done.stdout.splitlines()) if len(row) > 1][1][1])

    def ask(self, line):
        self.connection.sendall(line)
        return int(self.connection.makefile("rb").readline()[1:])

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def expiry(server):
    """Returns the CPU and the memory that the keys take, and how many are in memory after their deadline."""
    ttls = [random.randint(1000, 3000) for _ in range(KEYS)]
    lines = "".join(f"SET e:{i} value PX {ttl}\r\n" for i, ttl in enumerate(ttls)).encode()
    before_mib = server.memory_mib()
    begin = time.monotonic()
    subprocess.run(["redis-cli", "-p", str(server.port), "--pipe"], input=lines, capture_output=True, check=True)
    end = time.monotonic()
    memory, cpu = server.memory_mib() - before_mib, server.cpu_s()
    ends = sorted(end + ttl / 1000 for ttl in ttls)  # the latest possible deadlines
    overdue, most, at = 0, 0, 0
    while (size := server.ask(b"DBSIZE\r\n")) > 0:
        now = time.monotonic()
        while at < KEYS and ends[at] <= now:
            at += 1
        overdue = size - (KEYS - at)
        most = max(most, overdue)
        if now - begin > 60:
            sys.exit(f"{size} keys stay")
        time.sleep(0.02)
    return {"MiB for 100,000 keys of 1 to 3 s": memory, "ms of CPU while they expire": 1000 * (server.cpu_s() - cpu),
            "most keys in memory after their deadline": most,
            "ms from the last deadline until the memory is free": 1000 * max(0, time.monotonic() - ends[-1])}


def round_of(name):
    server = Server(name)
    try:
        figures = expiry(server)
        for depth in (1, 16):
            for words, command in COMMANDS.items():
                figures[f"{words}{', `-P 16`' if depth > 1 else ''}: requests/s"] = server.benchmark(depth, command)
        return figures
    finally:
        server.end()


def main():
    if not all(map(shutil.which, ("redis-server", "redis-benchmark", "redis-cli"))):
        print("redis-server, redis-benchmark or redis-cli is missing (packages redis-server, redis-tools)")
        sys.exit(77)
    names = ["ttl-server", "redis-server"]
    found = {name: [] for name in names}
    for number in range(ROUNDS):
        for name in names if number % 2 == 0 else names[::-1]:
            found[name].append(round_of(name))
    print("| | " + " | ".join(names) + " |\n|---|---|---|")
    for what in found[names[0]][0]:
        cells = []
        for name in names:
            values = sorted(figures[what] for figures in found[name])
            cells.append(f"{statistics.median(values):,.0f} ({values[0]:,.0f} to {values[-1]:,.0f})")
        print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
