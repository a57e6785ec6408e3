#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Customers open orders and pay for some, while the script kills the shop ten times (signal 9). Then the disk is full.

usage: try.py ORDER_AUTO_CLOSE

Ends with 0 if each order that was opened is paid or closed, and none is both.

Seen to fail with each of these defects of the shop: it answers before the commit of the order; it accepts a
payment while the order closes; it accepts a payment before the commit of the payment.
"""
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from shop import Shop

KILLS, CUSTOMERS, PATIENCE_S = 10, 12, 120
opened, paid, unknown, wrong = set(), set(), set(), []
over = threading.Event()


def need(holds, *what):
    """If the condition does not hold, notes this in `wrong`, which main() reads, and ends the calling thread."""
    if not holds:
        wrong.append(" ".join(map(str, what)))
        sys.exit("wrong: " + wrong[-1])


def pay(shop, name):
    answer = shop.ask(f"pay/{name}")
    if answer is None:
        unknown.add(name)
    elif answer[0] == 200:
        paid.add(name)
    else:
        need(answer[0] == 409, name, answer)


def customer(shop):
    while not over.is_set():
        answer = shop.ask("orders")
        if answer is None:
            time.sleep(0.01)
            continue
        need(answer[0] == 201, answer)
        opened.add(answer[1]["order"])
        # Some customers pay at once, some at the last moment, some never.
        if random.random() < 0.6:
            time.sleep(random.choice((0, 0, 0.95, 1)))
            pay(shop, answer[1]["order"])


def kills(program):
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(program, folder, 1)
        shop.start()
        customers = [threading.Thread(target=customer, args=(shop,), daemon=True) for _ in range(CUSTOMERS)]
        for thread in customers:
            thread.start()
        for _ in range(KILLS):
            time.sleep(random.uniform(0.2, 0.6))
            shop.kill()
            shop.start()
        over.set()
        for thread in customers:
            thread.join()
        need(not wrong, "a customer got a wrong answer")
        until = time.monotonic() + PATIENCE_S
        while shop.open_orders() and time.monotonic() < until:
            time.sleep(0.1)
        need(shop.open_orders() == [], "orders are still open")
        shop.stop()
        closed = shop.closed()
        need(opened - paid - unknown <= set(closed), "lost:", opened - paid - unknown - set(closed))
        need(not paid & set(closed), "paid and closed:", paid & set(closed))
        need(paid and set(closed) and len(opened) > 20, "hardly any order")
        print(f"{len(opened)} orders, {len(paid)} paid, {len(set(closed))} closed, {len(closed) - len(set(closed))} twice, "
              f"{KILLS} kills: good")


def full_disk(program, folder):
    """Runs the shop in a file system of 24 MiB, which another file nearly fills."""
    shop = Shop(program, folder, 600)
    shop.start()
    first = shop.ask("orders")[1]["order"]
    with open(f"{folder}/filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(65536))
        except OSError:
            pass
    refused = 0
    for _ in range(200000):
        status, _ = shop.ask("orders")
        need(status in (201, 503), status)
        refused = refused + 1 if status == 503 else 0
        if refused == 3:
            break
    need(refused == 3, "the disk was never full")
    need(shop.ask(f"pay/{first}")[0] == 200, "a payment while the disk is full")
    subprocess.run(["rm", f"{folder}/filler"], check=True)
    until = time.monotonic() + PATIENCE_S
    while shop.ask("orders")[0] != 201 and time.monotonic() < until:
        time.sleep(0.1)
    need(shop.ask("orders")[0] == 201, "the disk has room, and the shop does not go on")
    shop.kill()
    shop.start()
    need(shop.ask(f"pay/{first}")[0] == 409, "a payment that was accepted is gone")
    shop.stop()
    print("a full disk: good")


def inside(program):
    """Mounts a file system and runs full_disk in it. Called as root in a mount namespace of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [shutil.which("mount") or "false", "-t", "tmpfs", "-o", "size=24m", "none", folder]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            print("a full disk: left out, because nothing can be mounted here")
            return
        try:
            full_disk(program, folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def main():
    program = sys.argv[1]
    if len(sys.argv) > 2:
        inside(program)
        return
    kills(program)
    command = [sys.executable, "-B", __file__, program, "inside"]
    unshare = shutil.which("unshare")
    possible = unshare and subprocess.run([unshare, "-rm", "true"], check=False, capture_output=True).returncode == 0
    sys.exit(subprocess.run([unshare, "-rm", *command] if possible else command, check=False).returncode)


main()
