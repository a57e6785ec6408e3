#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the page of the shop in Chromium, with the WebDriver protocol: opens orders, pays one, waits until one closes.

usage: browser.py ORDER_AUTO_CLOSE [FOLDER]

With FOLDER it writes pictures of the page there: light, dark, narrow. Without chromedriver it exits with code 77,
unless TESTS_BROWSER_REQUIRED is set.

Seen to fail: if the page has no button; if the page shows no rows.
"""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from shop import Shop

PATIENCE_S = 60
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync"]


class Browser:
    def __init__(self, folder):
        # The server prints the port that it has chosen.
        self.driver = subprocess.Popen([shutil.which("chromedriver"), "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = f"http://127.0.0.1:{line.rstrip('.').split()[-1].rstrip('.')}"
                break
        options = {"args": [*ARGUMENTS, f"--user-data-dir={folder}"]}
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self.base += f"/session/{answer['sessionId']}"

    def ask(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]

    def run(self, script):
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def click(self, selector):
        # Finds and clicks in one step, because the page may replace its rows between two requests.
        self.run(f"document.querySelector('{selector}').click()")

    def picture(self, path, width, scheme):
        self.ask("POST", "/window/rect", {"width": width, "height": 600})
        self.ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia",
                                               "params": {"features": [{"name": "prefers-color-scheme", "value": scheme}]}})
        pathlib.Path(path).write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def end(self):
        self.ask("DELETE", "")
        self.driver.terminate()
        self.driver.wait()


def wait_until(what, holds):
    until = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"wrong: {what}")
        time.sleep(0.1)


def rows(browser):
    return browser.run("return [...document.querySelectorAll('#orders tr')].map(row => row.innerText)")


def visit(shop, browser):
    browser.ask("POST", "/url", {"url": shop.url})
    wait_until("'No order is open.' is not shown", lambda: browser.run("return !document.getElementById('none').hidden"))


def orders_pay(shop, browser, pictures):
    visit(shop, browser)
    browser.click("#open")
    wait_until("an order that was opened is not shown", lambda: len(rows(browser)) == 1)
    name = shop.open_orders()[0]["order"]
    row = rows(browser)[0]
    if name not in row or " min " not in row or "Pay" not in row:
        sys.exit(f"wrong: the row is {row!r}")
    browser.click("#open")
    wait_until("the second order is not shown", lambda: len(rows(browser)) == 2)
    for picture in (("light", 800, "light"), ("dark", 800, "dark"), ("narrow", 380, "light")) if pictures else ():
        browser.picture(f"{pictures}/{picture[0]}.png", *picture[1:])
    browser.click("#orders button")
    wait_until("a paid order is still shown", lambda: len(rows(browser)) == 1)
    left = [order["order"] for order in shop.open_orders()]
    if len(left) != 1 or left[0] == name:
        sys.exit(f"wrong: {name} was paid, and open are {left}")


def order_closes(shop, browser):
    visit(shop, browser)
    browser.click("#open")
    wait_until("an order does not close", lambda: len(shop.closed()) == 1)
    wait_until("a closed order is still shown", lambda: rows(browser) == [])


def main():
    if shutil.which("chromedriver") is None:
        print("skipped: no chromedriver")
        sys.exit(1 if "TESTS_BROWSER_REQUIRED" in os.environ else 77)
    with tempfile.TemporaryDirectory() as folder:
        patient, hasty = (Shop(sys.argv[1], f"{folder}/{seconds}", seconds) for seconds in (3600, 1))
        with contextlib.ExitStack() as ends:
            for shop in (patient, hasty):
                shop.closed_file.parent.mkdir()
                shop.start()
                ends.callback(shop.stop)
            browser = Browser(f"{folder}/browser")
            ends.callback(browser.end)
            orders_pay(patient, browser, sys.argv[2] if len(sys.argv) > 2 else None)
            order_closes(hasty, browser)
    print("the page: good")


main()
