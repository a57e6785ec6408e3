#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays a shop that fails half of the time, and kills the notifier ten times with signal 9.

usage: kills.py NOTIFIER [ORDERS] [--postgres | --redis]

With --postgres or --redis there are two notifiers, on a server that this script starts; it kills one of them at a time.
Ends with 0 if each order was notified, and all notifications of an order had the same id.
"""
import contextlib
import http.server
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict

KILLS = 10
DIVISOR = 1000
PATIENCE_S = 300
ids, answered = defaultdict(set), defaultdict(int)
lock = threading.Lock()


class Shop(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with lock:
            ids[self.path].add(self.headers["Idempotency-Key"])
            works = random.random() < 0.5
            answered[self.path] += works
        self.send_response(200 if works else 503)
        self.end_headers()

    def log_message(self, *_):
        pass


def serve(notifier, store, port):
    process = subprocess.Popen([notifier, store, "serve", str(port), str(DIVISOR)], stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "serving\n":
        sys.exit("the notifier does not start")
    return process


@contextlib.contextmanager
def file_store():
    with tempfile.TemporaryDirectory() as folder:
        yield f"{folder}/notifications.db"


@contextlib.contextmanager
def server_store(name):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests/durable" / name))
    from server import Server
    server = Server()
    try:
        yield f"{name}:{server.start().address}"
    finally:
        server.end()


def main():
    words = [word for word in sys.argv[1:] if word not in ("--postgres", "--redis")]
    shared = [word[2:] for word in sys.argv[1:] if word not in words]
    notifier, orders = words[0], int(words[1]) if len(words) > 1 else 400
    shop = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    with (server_store(shared[0]) if shared else file_store()) as store:
        subprocess.run([notifier, store, "accept", str(orders), str(DIVISOR)], check=True)
        processes = [serve(notifier, store, shop.server_port) for _ in range(2 if shared else 1)]
        for _ in range(KILLS):
            time.sleep(random.uniform(0.05, 0.5))
            processes[0].kill()
            processes.pop(0).wait()
            processes.append(serve(notifier, store, shop.server_port))
        end = time.monotonic() + PATIENCE_S
        while sum(1 for count in answered.values() if count) < orders and time.monotonic() < end:
            time.sleep(0.1)
        for process in processes:
            process.terminate()
        codes = [process.wait() for process in processes]
    notified = sum(1 for count in answered.values() if count)
    twice = sum(1 for count in answered.values() if count > 1)
    several = sum(1 for found in ids.values() if len(found) > 1)
    print(f"{KILLS} kills: {notified} of {orders} orders notified, {twice} of them more than once; {several} with several ids")
    return any(codes) or notified != orders or several != 0


if __name__ == "__main__":
    sys.exit(main())
