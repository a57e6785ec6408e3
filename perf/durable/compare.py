#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares durable timers with other keepers of timers: beanstalkd, Redis, a table of PostgreSQL, and a raw log.

usage: tickwheel-perf durable [--folder FOLDER] [--repeat N] [--seconds S] [--fill N] [--only NAME,...]
                              [--write PAGE] [--chart FILE]

Each round starts its server anew, in a new folder below FOLDER (default: the current one; it must not be in memory).
The server listens on a Unix socket, and is killed at the end of the round. The rounds of all keepers are interleaved.
One client sends batches of a thousand timers and waits for each batch. Prints a table of medians. --only compares the
file with these keepers (log, beanstalkd, redis, postgres, ...) alone. --write puts the table into a page, between its
marks. --chart draws a picture (SVG).
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import chart

NOBODY = 65534
BEGIN, END = "<!-- durable compare: begin -->", "<!-- durable compare: end -->"
HEADINGS = {"schedule": "schedule", "cancel": "cancel", "fire": "fire and end", "recover": "read after a kill"}
COLUMNS = tuple(HEADINGS)


def binary(name, *more):
    for folder in (*os.environ["PATH"].split(":"), "/usr/sbin", *more):
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    return None


POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin")) if pathlib.Path("/usr/lib/postgresql").is_dir() else []


class Keeper:
    """A keeper that runs inside the client, without a server."""

    def __init__(self, title, client, package=None):
        self.title, self.client, self.package = title, client, package
        self.folder = self.process = None

    def there(self):
        return True

    def begin(self, folder):
        self.folder = folder

    def address(self):
        return str(self.folder)

    def start(self):
        pass

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Server(Keeper):
    def __init__(self, title, client, package, command, socket, user=None):
        super().__init__(title, client, package)
        self.command, self.socket, self.user = command, socket, user

    def there(self):
        return self.command[0] is not None

    def begin(self, folder):
        super().begin(folder)
        os.chmod(folder, 0o755)
        if self.user is not None:
            os.chown(folder, self.user, -1)

    def address(self):
        return f"{self.folder}/{self.socket}"

    def start(self):
        pathlib.Path(self.address()).unlink(missing_ok=True)
        command = [part.replace("FOLDER", str(self.folder)) for part in self.command]
        with open(self.folder.parent / "log", "ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, user=self.user,
                                            start_new_session=True)


class Postgres(Server):
    """A keeper with a PostgreSQL server, which refuses to run as root."""

    def begin(self, folder):
        super().begin(folder)
        subprocess.run([str(POSTGRES[-1] / "initdb"), "-D", f"{folder}/data", "-U", "postgres", "--no-instructions"],
                       user=self.user, check=True, stdout=subprocess.DEVNULL)

    def address(self):
        return str(self.folder)

    def start(self):
        Keeper.start(self)
        command = [str(POSTGRES[-1] / "postgres"), "-D", f"{self.folder}/data", "-k", str(self.folder), "-h", ""]
        with open(self.folder.parent / "log", "ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, user=self.user,
                                            start_new_session=True)

    def kill(self):
        if self.process is not None:
            # SIGQUIT ends the server at once, without a checkpoint. After SIGKILL its helper processes would keep the
            # memory.
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            self.process = None


def keepers():
    beanstalkd, redis = binary("beanstalkd"), binary("redis-server")
    files = ["--port", "0", "--unixsocket", "FOLDER/socket", "--save", "", "--appendonly", "yes", "--daemonize", "no"]
    return [
        Keeper("raw log, a sync for each batch", "log"),
        Keeper("tickwheel, the file", "tickwheel"),
        Server("beanstalkd `-f 0`", "beanstalkd", "beanstalkd",
               [beanstalkd, "-l", "unix:FOLDER/socket", "-b", "FOLDER", "-f", "0"], "socket"),
        Server("beanstalkd `-f 50`", "beanstalkd", "beanstalkd",
               [beanstalkd, "-l", "unix:FOLDER/socket", "-b", "FOLDER", "-f", "50"], "socket"),
        Server("Redis, `appendfsync always`", "redis", "redis-server", [redis, *files, "--appendfsync", "always"], "socket"),
        Server("Redis, `appendfsync everysec`", "redis", "redis-server", [redis, *files, "--appendfsync", "everysec"],
               "socket"),
        Postgres("tickwheel, PostgreSQL", "tickwheel-postgres", "postgresql", [str(POSTGRES[-1]) if POSTGRES else None], "",
                 NOBODY if os.geteuid() == 0 else None),
        Postgres("PostgreSQL, `SKIP LOCKED`", "postgres", "postgresql", [str(POSTGRES[-1]) if POSTGRES else None], "",
                 NOBODY if os.geteuid() == 0 else None),
    ]


def chosen(only):
    """Returns the keepers of these names (None: all) whose packages are installed."""
    known = {keeper.client for keeper in keepers()}
    if only and not known.issuperset(only):
        sys.exit(f"tickwheel-perf: durable: --only knows {', '.join(sorted(known))}")
    named = [keeper for keeper in keepers() if not only or keeper.client in (*only, "tickwheel")]
    for keeper in named:
        if not keeper.there():
            print(f"left out: {keeper.title} (package {keeper.package})", file=sys.stderr)
    return [keeper for keeper in named if keeper.there()]


def client_run(client, keeper, *arguments):
    done = subprocess.run([client, keeper.client, keeper.address(), *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def wait_for(client, keeper):
    """Waits until the server accepts an open. Returns how many seconds that open took."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        text = client_run(client, keeper, "open")
        if text:
            return float(text)
        time.sleep(0.002)
    sys.exit(f"{keeper.title}: does not start; see {keeper.folder.parent}/log")


def recover(client, keeper, count):
    """Kills a filled keeper. Returns how many timers a second it reads until it can be used again.

    The time begins with the start of the server, or with the open if there is no server.
    """
    with subprocess.Popen([client, keeper.client, keeper.address(), "fill", str(count)], stdout=subprocess.PIPE,
                          text=True) as filler:
        if filler.stdout.readline() != "filled\n":
            sys.exit(f"{keeper.title}: not filled")
        keeper.kill()
        filler.kill()
    begin = time.monotonic()
    keeper.start()
    opened = wait_for(client, keeper)
    took = opened if not isinstance(keeper, Server) else time.monotonic() - begin
    return count / took


def one_round(client, keeper, options):
    folder = pathlib.Path(tempfile.mkdtemp(dir=options.folder)) / "store"
    folder.mkdir()
    os.chmod(folder.parent, 0o755)
    try:
        keeper.begin(folder)
        keeper.start()
        wait_for(client, keeper)
        text = client_run(client, keeper, str(options.seconds))
        if text is None:
            sys.exit(f"{keeper.title}: the client failed")
        figures = json.loads(text)
        # beanstalkd -f 0 is left out, because filling it with a sync for each timer takes as long as all other
        # measurements. tickwheel-postgres is left out, because a shared set reads nothing when it is opened.
        if "fire" in figures and "-f 0" not in keeper.title and keeper.client != "tickwheel-postgres":
            figures["recover"] = recover(client, keeper, options.fill)
        return figures
    finally:
        keeper.kill()
        shutil.rmtree(folder.parent)


def cell(figures, name, floor):
    values = [one[name] for one in figures if name in one]
    if not values:
        return "–"
    middle = statistics.median(values)
    text = f"{middle / 1000:,.1f} k" if middle < 10000 else f"{middle / 1000:,.0f} k"
    if floor is None or floor == middle:
        return text
    return f"{text} (1/{floor / middle:.3g})" if middle < floor else f"{text} ({middle / floor:.3g} ×)"


def table(measured):
    """Returns the table. Its ratios are relative to tickwheel's figure in the same run."""
    ours = measured["tickwheel, the file"]
    own = {name: statistics.median([one[name] for one in ours]) for name in COLUMNS}
    lines = [f"| timers a second, in batches of 1,000 | {' | '.join(HEADINGS.values())} |", "|---|---|---|---|---|"]
    for title, figures in measured.items():
        lines.append(f"| {title} | " + " | ".join(cell(figures, name, own[name]) for name in COLUMNS) + " |")
    return "\n".join(lines)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def page_write(path, text):
    page = pathlib.Path(path).read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    pathlib.Path(path).write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="tickwheel-perf durable", description=__doc__.splitlines()[0])
    parser.add_argument("client", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--fill", type=int, default=200000)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--write")
    parser.add_argument("--chart")
    options = parser.parse_args()
    options.folder = str(pathlib.Path(options.folder).resolve())
    if not os.path.isdir(options.folder):
        sys.exit(f"tickwheel-perf: durable: {options.folder}: no such folder")
    all_keepers = chosen(options.only)
    measured = {keeper.title: [] for keeper in all_keepers}
    for number in range(options.repeat):
        for keeper in all_keepers:
            measured[keeper.title].append(one_round(options.client, keeper, options))
            print(number + 1, keeper.title, measured[keeper.title][-1], file=sys.stderr)
    about = f"{processor()}, {os.cpu_count()} processors; medians of {options.repeat}, in turns."
    text = f"{about} In brackets: divided by tickwheel's figure.\n\n{table(measured)}"
    print(text)
    if options.write:
        page_write(options.write, text)
    if options.chart:
        pathlib.Path(options.chart).write_text(chart.draw(measured, HEADINGS.items(), about), encoding="utf-8")


if __name__ == "__main__":
    main()
