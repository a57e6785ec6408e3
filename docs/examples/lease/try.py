#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small lease server, which cuts off two holders, stops them, and answers them late.

usage: try.py LEASE_HOLDER

Holders and server share a clock. Each step of the work carries the time at which the holder looked at
its clock. That time must be before the end of its lease at the server, however busy the machine is. If a step
arrives after the lease has gone to another holder, the server refuses it by its token.

Seen to fail with each of these defects of the holder: it counts the lease from the answer; its steps do not
read the clock; it has no fence.
"""
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time

LEASE_MS = 400
PATIENCE_S = 120


class Leases:
    """A lease, and the steps that were done with it."""

    def __init__(self):
        self.lock = threading.Condition()
        self.token, self.name, self.ends_ns = 0, None, 0
        self.names, self.steps, self.refused, self.wrong = {}, {}, 0, []
        self.ends = {}  # for each token: the last end of its lease
        self.silent, self.delays = set(), {}  # holders that get no answer; holders that get late answers

    def now_held(self):
        return self.name is not None and time.monotonic_ns() < self.ends_ns

    def extend(self, lease_ms):
        self.ends_ns = time.monotonic_ns() + int(lease_ms) * 1_000_000
        self.ends[self.token] = self.ends_ns

    def acquire(self, name, lease_ms):
        if self.now_held():
            return "denied {}"
        self.token, self.name = self.token + 1, name
        self.names[self.token] = name
        self.extend(lease_ms)
        return f"granted {{}} {self.token}"

    def renew(self, token, lease_ms):
        if int(token) != self.token or not self.now_held():
            return "lost {}"
        self.extend(lease_ms)
        return "renewed {}"

    def put(self, token, ns):
        token = int(token)
        if token != self.token:
            self.refused += 1
        if int(ns) >= self.ends[token]:
            self.wrong.append(f"a step {int(ns) - self.ends[token]} ns after the end of lease {token}")
        self.steps[token] = self.steps.get(token, 0) + 1

    def release(self, token):
        if int(token) == self.token:
            self.name = None

    def wait(self, what, condition):
        with self.lock:
            if not self.lock.wait_for(condition, PATIENCE_S):
                sys.exit(f"waited in vain: {what}; {self.names} {self.steps}")

    def steps_of(self, name):
        return sum(count for token, count in self.steps.items() if self.names[token] == name)


leases = Leases()


class Handler(socketserver.StreamRequestHandler):
    name = None

    def handle(self):
        for line in self.rfile:
            verb, *words = line.decode().split()
            if verb == "acquire":
                self.name = words[0]
            with leases.lock:
                if self.name in leases.silent and verb in ("acquire", "renew"):
                    continue
                request_id = words.pop() if verb in ("acquire", "renew") else None
                answer = getattr(leases, verb)(*words)
                leases.lock.notify_all()
                delay = leases.delays.get(self.name, 0)
            if answer:
                threading.Timer(delay, self.answer, [answer.format(request_id)]).start()

    def answer(self, line):
        try:
            self.request.sendall(line.encode() + b"\n")
        except OSError:
            pass  # the holder has ended


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


class Holder:
    running = []

    def __init__(self, port, name):
        self.process = subprocess.Popen(
            [sys.argv[1], str(port), name, str(LEASE_MS)], stdout=subprocess.PIPE, text=True)
        Holder.running.append(self.process)
        self.said = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with leases.lock:
                self.said.append(line.split())
                leases.lock.notify_all()

    def count(self, word):
        return sum(words[0] == word for words in self.said)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.reader.join()
        if code != 0:
            sys.exit(f"a holder ended with {code}")


def works(name, steps=20):
    """Waits until the holder has done some more steps."""
    before = leases.steps_of(name)
    leases.wait(f"work of {name}", lambda: leases.steps_of(name) > before + steps)


def holds(holder):
    return holder.said and holder.said[-1][0] == "granted"


def until_fenced(a, round_of, steps=20):
    """Plays rounds until A's fence has stopped it once. On a busy machine A may lose its lease earlier."""
    before = a.count("fenced")
    for _ in range(20):
        works("a", steps)
        round_of()
        leases.wait("the end of a's work", lambda: not holds(a))
        if a.count("fenced") > before:
            return
        leases.silent.clear()
    sys.exit("no fence in 20 rounds")


def cut_off(a, port):
    """A gets no answers, so it stops by itself, and B takes over. When B ends, it gives the lease back at once."""
    works("a")
    b = Holder(port, "b")
    until_fenced(a, lambda: leases.silent.add("a"))
    works("b")
    leases.silent.clear()
    b.end()
    works("a")


def stopped(a, port):
    """A signal stops A for longer than its lease, and C takes over. When A continues, it must not work."""
    c = Holder(port, "c")
    a.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, a.process.pid, os.WSTOPPED)
    works("c")
    a.process.send_signal(signal.SIGCONT)
    leases.wait("the end of a's work", lambda: not holds(a))
    works("c")
    c.end()
    works("a")


def late_answers(a):
    """Lets A's answers take nearly a third of the lease. Then A gets no answers. Then its answers take longer than
    the lease, so A must not count any of them."""
    leases.delays["a"] = 0.3 * LEASE_MS / 1000
    until_fenced(a, lambda: leases.silent.add("a"), steps=400)
    leases.delays["a"] = 1.2 * LEASE_MS / 1000
    leases.silent.clear()
    time.sleep(4 * LEASE_MS / 1000)
    leases.delays.clear()
    works("a")


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    try:
        a = Holder(port, "a")
        cut_off(a, port)
        stopped(a, port)
        late_answers(a)
        a.end()
    finally:
        for process in Holder.running:
            process.kill()
    if leases.wrong:
        sys.exit("\n".join(leases.wrong[:5]))
    print(f"{sum(leases.steps.values())} steps in {leases.token} leases, "
          f"{leases.refused} refused by their token, none after its lease")


if __name__ == "__main__":
    main()
