#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ends the server in five ways while requests run and reminders are pending.

usage: try.py GRACEFUL_STOP

No check depends on how long anything takes: the grace time is either an hour or zero.

Seen to fail with each of these defects of the server: it does not close the listener; it does not wait for
requests; it passes no hook to the stop; it does not read the file; it leaves SIGTERM blocked after the
first one; it exits with code 0 after it cut off a request.
"""
import signal
import socket
import subprocess
import sys
import tempfile

HOUR_MS = 3_600_000


class Server:
    running = []

    def __init__(self, grace_ms, path):
        self.process = subprocess.Popen([sys.argv[1], "0", str(grace_ms), path], stdout=subprocess.PIPE, text=True)
        Server.running.append(self.process)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def open(self, line=""):
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(line.encode())
        return connection

    def ask(self, line):
        return read(self.open(line))

    def run(self, ms):
        """Begins a request, and returns when it runs: the server handles connections one after the other."""
        connection = self.open(f"run {ms}\n")
        check(self.ask("later -1 x\n"), "refused\n")
        return connection

    def terminate(self):
        """Waits until the server has said that it stops. Returns how many requests run then."""
        self.process.send_signal(signal.SIGTERM)
        words = self.process.stdout.readline().split()
        check([words[0], *words[2:]], ["stopping,", "requests", "run"])
        return int(words[1])

    def end(self, code):
        out = self.process.communicate(timeout=100)[0]
        check(self.process.returncode, code)
        return out


def check(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r}, not {wanted!r}")


def read(connection):
    """Returns everything that the server sends before it closes the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(100), b"")).decode()


def file_lines(path):
    with open(path) as file:
        return sorted((text.rstrip("\n"), int(ms)) for ms, text in (line.split(" ", 1) for line in file))


def graceful(path):
    """After the signal running requests end, the stop hands back the reminders, and new connections are
    refused. Returns how many requests ran when the signal came; on a busy machine some have ended before."""
    server = Server(HOUR_MS, path)
    reminders = [f"reminder {i}" for i in range(100)]
    for text in reminders:
        check(server.ask(f"later {HOUR_MS} {text}\n"), "accepted\n")
    check(server.ask("later 0 now\n"), "accepted\n")
    check(server.process.stdout.readline(), "reminder: now\n")
    requests = [server.run(2000) for _ in range(10)]
    idle = server.open()
    check(server.ask("later -1 x\n"), "refused\n")  # connections are accepted in order, so `idle` is accepted now
    running = server.terminate()
    try:
        server.open()
        raise AssertionError("it still listens")
    except ConnectionRefusedError:
        pass
    check(read(idle), "")
    for request in requests:
        check(read(request), "done\n")
    check(server.end(0), "")
    found = file_lines(path)
    check([text for text, _ in found], sorted(reminders))
    check([ms for _, ms in found if not 0 <= ms <= HOUR_MS], [])
    return running


def next_start(path):
    """The reminders that were handed back are pending again, with less time than before."""
    before = file_lines(path)
    server = Server(0, path)
    check(server.terminate(), 0)
    server.end(0)
    after = file_lines(path)
    check([text for text, _ in after], [text for text, _ in before])
    check(all(new <= old for (_, new), (_, old) in zip(after, before)), True)


def grace_over(path):
    """The grace time ends before the requests do, so the server cuts them off."""
    server = Server(0, path)
    requests = [server.run(HOUR_MS) for _ in range(3)]
    check(server.terminate(), 3)
    for request in requests:
        check(read(request), "cut off\n")
    server.end(1)


def second(path):
    """The second SIGTERM ends the server, although a request runs and the grace time is not over."""
    server = Server(HOUR_MS, path)
    request = server.run(HOUR_MS)
    check(server.terminate(), 1)
    server.process.send_signal(signal.SIGTERM)
    server.end(-signal.SIGTERM)
    check(read(request), "")


def nothing(path):
    server = Server(HOUR_MS, path)
    check(server.terminate(), 0)
    server.end(0)


def main():
    try:
        with tempfile.TemporaryDirectory() as folder:
            rounds, running = 0, 0
            while running == 0:
                rounds += 1
                check(rounds < 50, True)
                path = f"{folder}/reminders-{rounds}"
                running = graceful(path)
            next_start(path)
            for number, step in enumerate((grace_over, second, nothing)):
                step(f"{folder}/{number}")
    finally:
        for process in Server.running:
            process.kill()
    print(f"{running} requests ended in their grace time, "
          "100 reminders handed back and pending again, 3 requests cut off")


if __name__ == "__main__":
    main()
