#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A shop that fails half of the time, and a notifier that is killed ten times with signal 9.

usage: kills.py NOTIFIER [ORDERS]

Ends with 0 if each order was notified, and all notifications of an order had the same id.
"""
import http.server
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


def main():
    notifier, orders = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400
    shop = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/notifications.db"
        subprocess.run([notifier, store, "accept", str(orders), str(DIVISOR)], check=True)
        for _ in range(KILLS):
            process = serve(notifier, store, shop.server_port)
            time.sleep(random.uniform(0.05, 0.5))
            process.kill()
            process.wait()
        process = serve(notifier, store, shop.server_port)
        end = time.monotonic() + PATIENCE_S
        while sum(1 for count in answered.values() if count) < orders and time.monotonic() < end:
            time.sleep(0.1)
        process.terminate()
        code = process.wait()
    notified = sum(1 for count in answered.values() if count)
    twice = sum(1 for count in answered.values() if count > 1)
    several = sum(1 for found in ids.values() if len(found) > 1)
    print(f"{KILLS} kills: {notified} of {orders} orders notified, {twice} of them more than once; {several} with several ids")
    return code != 0 or notified != orders or several != 0


if __name__ == "__main__":
    sys.exit(main())
