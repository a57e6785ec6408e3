#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two monitors share one Redis server, which this script starts. The script kills one of them again and again.

usage: try.py MONITOR [ROUNDS]

In each round some nodes fall silent. Each of these must be reported once, and no other node may be reported. If a
node's heartbeats were late by this script's clock, because the machine is busy, a report of it is ignored.

Seen to fail with each of these defects of the monitor: it answers "ok" but does not reschedule an existing
timer; it does not report silent nodes.
"""
import collections
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests/durable/redis"))
from server import Server  # noqa: E402

MONITOR, ROUNDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
LIMIT_S, NODES, SILENT, PATIENCE_S = 1.5, 40, 4, 240


class Monitor:
    def __init__(self, address, reports):
        self.reports, self.answers, self.changed = reports, [], threading.Condition()
        self.process = subprocess.Popen([MONITOR, address, str(int(LIMIT_S * 1000))], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            word, node, *id = line.split()
            if word == "silent":
                # The set removes repetitions, because a repeated run has the same id.
                self.reports[node].add(id[0])
                continue
            with self.changed:
                self.answers.append((word, node))
                self.changed.notify()

    def ask(self, word, nodes):
        """Returns the nodes that were answered "ok"."""
        self.answers = []
        self.process.stdin.write("".join(f"{word} {node}\n" for node in nodes))
        self.process.stdin.flush()
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.answers) == len(nodes), PATIENCE_S):
                sys.exit(f"no answers from a monitor: {len(self.answers)} of {len(nodes)}")
            return {node for said, node in self.answers if said == "ok"}

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def close(self):
        self.process.stdin.close()
        self.reader.join()
        return self.process.wait()


def main():
    server, monitors, reports = Server(), [], collections.defaultdict(set)
    live, silent, late, beaten = [f"node-{i}" for i in range(NODES)], [], set(), {}
    try:
        server.start()
        monitors += [Monitor(server.address, reports) for _ in range(2)]

        def heartbeats():
            """Sends a heartbeat of each node, to any monitor. A node is late if its timer may have expired before."""
            for monitor, nodes in zip(monitors, (live[::2], live[1::2]) if random.random() < 0.5 else (live[1::2], live[::2])):
                sent = time.monotonic()
                kept = monitor.ask("beat", nodes)
                now = time.monotonic()
                late.update(node for node in nodes if node not in kept or now - beaten.get(node, now) > LIMIT_S)
                beaten.update((node, sent) for node in nodes)

        for round_number in range(ROUNDS):
            for _ in range(8):
                heartbeats()
                time.sleep(0.1)
            for _ in range(SILENT):
                silent.append(live.pop(random.randrange(len(live))))
            monitors[round_number % 2].kill()
            monitors[round_number % 2] = Monitor(server.address, reports)
        end = time.monotonic() + PATIENCE_S
        while any(node not in reports for node in silent) and time.monotonic() < end:
            heartbeats()
            time.sleep(0.1)
        while live and time.monotonic() < end:
            gone = monitors[0].ask("bye", live)
            live, rest = [node for node in live if node not in gone], live
            late.update(live)
            beaten = {node: beaten[node] for node in rest}
        wrong = [f"a monitor ended with {code}" for code in [monitor.close() for monitor in monitors] if code != 0]
        wrong += [f"{node} is silent and has {len(reports[node])} reports" for node in silent
                  if not reports[node] or (len(reports[node]) > 1 and node not in late)]
        wrong += [f"{node} sends heartbeats and is reported" for node in reports if node not in silent and node not in late]
        wrong += ["timers are left"] if server("HLEN", "{monitors:0}:timer") else []
    finally:
        for monitor in monitors:
            monitor.process.kill()
        server.end()
    print("\n".join(wrong) or f"{NODES} nodes: {len(silent)} fell silent and were reported once, {len(late)} were late; {ROUNDS} kills")
    sys.exit(1 if wrong else 0)


main()
