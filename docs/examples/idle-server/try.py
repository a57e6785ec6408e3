#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client with thousands of connections, and a test of the trap of stale events.

usage: try.py IDLE_SERVER IDLE_SERVER_WITHOUT_GUARD

Server and client share a machine and a clock. The server counts the idle time from its last answer.
So it may close a connection when this time has passed since the client began its last answered
request. An earlier close is an error, however busy the machine is; a later one is not.

Seen to fail: if both arguments are the server without the guard; if the idle time of the server is 1 %
shorter than the client expects; if the server does not reschedule.
"""
import os
import random
import resource
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

IDLE_MS = 1000
IDLE_NS = IDLE_MS * 1_000_000
ROUNDS_MOST = 60


class Server:
    running = []

    def __init__(self, program):
        self.process = subprocess.Popen([program, "0", str(IDLE_MS)], stdout=subprocess.PIPE, text=True)
        Server.running.append(self.process)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        """Returns the server's numbers: accepted, closed as idle, closed by their peer, left, stale events."""
        self.process.send_signal(signal.SIGTERM)
        out = self.process.communicate(timeout=60)[0]
        if self.process.returncode != 0:
            sys.exit(f"the server ended with {self.process.returncode}: {out}")
        return [int(word) for word in out.replace(",", "").split() if word.isdigit()]


class Connection:
    def __init__(self, port, kind):
        self.kind, self.asked, self.answers, self.closed = kind, None, 0, None
        self.heard = time.monotonic_ns()
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.next = self.next_time(self.heard)

    def next_time(self, now):
        """Returns when the connection sends next (None: never). "edge" means: at about the end of its idle time."""
        if self.kind == "idle":
            return None
        return now + (IDLE_NS // 5 if self.kind == "active" else IDLE_NS + random.randint(-5_000_000, 15_000_000))

    def ask(self):
        self.asked, self.next = time.monotonic_ns(), None
        try:
            self.socket.send(b"?")
        except OSError:
            pass  # the server has closed the connection; read() notices this

    def read(self):
        """Returns False if the connection is closed."""
        try:
            data = self.socket.recv(16)
        except BlockingIOError:
            return True
        except ConnectionError:
            data = b""
        if data == b"":
            self.closed = time.monotonic_ns()
            self.socket.close()
            return False
        assert data == b"?" and self.asked is not None, data
        self.heard, self.asked = self.asked, None
        self.answers += 1
        self.next = self.next_time(self.heard)
        return True


def room():
    """Returns how many connections of each kind the limit of descriptors allows."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 1000 if hard == resource.RLIM_INFINITY else max(10, min(1000, hard // 4))


def crowd(program):
    """Opens thousands of connections. Some are silent, some send often, some send at about the end of the idle time."""
    server, count = Server(program), room()
    connections = [Connection(server.port, kind) for _ in range(count) for kind in ("idle", "active", "edge")]
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    talk_until, end = time.monotonic_ns() + 3 * IDLE_NS, time.monotonic() + 200
    while selector.get_map():
        if time.monotonic() > end:
            sys.exit(f"{len(selector.get_map())} connections stay open")
        for key, _ in selector.select(0.002):
            if not key.data.read():
                selector.unregister(key.fileobj)
        now = time.monotonic_ns()
        for connection in connections:
            if connection.closed is None and connection.next is not None and connection.next <= now < talk_until:
                connection.ask()
    early = sum(c.closed - c.heard < IDLE_NS for c in connections)
    account = server.end()
    answers = {kind: sum(c.answers for c in connections if c.kind == kind) for kind in ("active", "edge")}
    print(f"{len(connections)} connections: {answers['active']} answers to the active ones, "
          f"{answers['edge']} at the edge; all closed, {early} early")
    if early or account[0] != len(connections) or account[3] != 0:
        sys.exit(f"{early} closed early; the server's account: {account}")


def trap(server, count=200):
    """Makes the server get one batch of events: first that of the engine's descriptor, then that of the listener, then
    those of connections that the server has closed by then. The timeouts become due while the server is stopped.
    Then new peers connect, and the old ones leave. Returns how many new connections were closed too early."""
    old = [Connection(server.port, "edge") for _ in range(count)]
    for connection in old:
        connection.ask()
        connection.socket.setblocking(True)
        if not connection.read():  # the machine was slow, so the server has closed the connection
            break
    server.pause()
    time.sleep(1.3 * IDLE_MS / 1000)
    new = [Connection(server.port, "idle") for _ in range(count)]
    for connection in old:
        # Closes the connection with a reset, so its event says that the connection is over.
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.socket.close()
    server.resume()
    wrong = 0
    for connection in new:
        connection.socket.setblocking(True)
        connection.ask()
        while connection.closed is None and connection.answers == 0:
            connection.read()
        wrong += connection.closed is not None and connection.closed - connection.heard < IDLE_NS
        connection.socket.close()
    return wrong


def trap_guarded(program):
    """Plays rounds until there were stale events, and checks that none does harm."""
    for rounds in range(1, ROUNDS_MOST + 1):
        server = Server(program)
        wrong = trap(server)
        stale = server.end()[4]
        if wrong:
            sys.exit(f"{wrong} new connections were closed by events of old ones")
        if stale:
            print(f"{stale} stale events ignored (round {rounds}), no new connection harmed")
            return
    sys.exit(f"no stale event in {ROUNDS_MOST} rounds")


def trap_without_guard(program):
    """Plays rounds with the server without the guard. In one of them a stale event must do harm."""
    for rounds in range(1, ROUNDS_MOST + 1):
        server = Server(program)
        wrong = trap(server)
        server.end()
        if wrong:
            print(f"without the guard: {wrong} new connections closed by events of old ones (round {rounds})")
            return
    sys.exit(f"without the guard no harm in {ROUNDS_MOST} rounds")


def main():
    try:
        crowd(sys.argv[1])
        trap_guarded(sys.argv[1])
        trap_without_guard(sys.argv[2])
    finally:
        for process in Server.running:
            process.kill()


if __name__ == "__main__":
    main()
