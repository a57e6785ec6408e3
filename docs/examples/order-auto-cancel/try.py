#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two processes of the shop share one server, which this script starts. The script kills one of them again and again.

usage: try.py SHOP [ROUNDS]. Each order must be paid or cancelled, and cancelled exactly once.
"""
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests/durable/postgres"))
from server import Server  # noqa: E402

SHOP, ROUNDS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
# The time within which an order must be paid. A real shop would use half an hour.
TIME_MS = 700


class Shop:
    def __init__(self, address):
        self.process = subprocess.Popen([SHOP, address, str(TIME_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() == "yes\n"

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def close(self):
        self.process.communicate()
        return self.process.returncode


def main():
    server = Server()
    try:
        server.start()
        subprocess.run([SHOP, server.address, "setup"], check=True)
        shops = [Shop(server.address), Shop(server.address)]
        made, paid, number = [], set(), 0
        for round_number in range(ROUNDS):
            for _ in range(60):
                number += 1
                if random.choice(shops).ask(f"order {number}"):
                    made.append(str(number))
                # Pays a random order through either process. Some orders are never paid.
                order = str(random.randint(1, 2 * number))
                if random.choice(shops).ask(f"pay {order}"):
                    paid.add(order)
            victim = round_number % 2
            shops[victim].kill()
            shops[victim] = Shop(server.address)
        end = time.monotonic() + 240
        while server.sql("SELECT count(*) FROM orders WHERE state = 'open'") != [["0"]]:
            if time.monotonic() > end:
                sys.exit(f"orders stay open: {server.sql('SELECT * FROM orders WHERE state = $$open$$')}")
            time.sleep(0.05)
        orders = {row[0]: (row[1], int(row[2])) for row in server.sql("SELECT id, state, cancels FROM orders")}
        wrong = [f"{order} is missing" for order in made if order not in orders]
        wrong += [f"{order}: {state}, cancelled {cancels} times" for order, (state, cancels) in orders.items()
                  if (state, cancels) != (("paid", 0) if order in paid else ("cancelled", 1))]
        wrong += [f"a timer is left: {row}" for row in server.sql("SELECT * FROM shop_timers.timer")]
        wrong += [f"a shop ended with {code}" for code in [shop.close() for shop in shops] if code != 0]
    finally:
        server.end()
    print("\n".join(wrong) or f"{len(orders)} orders: {len(paid)} paid, {len(orders) - len(paid)} cancelled once; {ROUNDS} kills")
    sys.exit(1 if wrong else 0)


main()
