#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures BIND's named with many idle TCP connections under dnsperf, as it is and with the preloaded library.

usage: preload.py LIBRARY [--connections N] [--clients N] [--seconds N] [--rounds N] [--check]

LIBRARY is build/src/hosts/preload/libtickwheel-uv-preload.so. Each round starts a private named once
without and once with the library; the order alternates. The script opens idle connections (default: 10,000), each of
which asks one question and stays open. Then dnsperf asks over TCP on 50 connections for 5 seconds. The script prints
the medians of the rounds (default: 5). The CPU time is that of named alone, user and system.

The answers to a set of questions must be the same each time, byte for byte. An idle connection must be closed after
its time, and not before. The others must stay open, and named must exit without an error. If perf works on this
machine, the script also prints which part of named's CPU time the timers take. With --check it makes only the checks,
and prints no figure.

Seen to fail with these defects: a timer's callback never runs, or runs too early; a loop does not close; one answer
differs; another library is preloaded.

Exit code: 0: all checks passed; 1: a check failed; 77: a program is missing.
"""
import argparse
import contextlib
import re
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dns
import named

SKIPPED = 77
SPARE_FILES = 1000
# Symbols of libuv's own timers, and the libraries that take their place.
TIMERS = re.compile(r"libuv\.so\S*\s.*\buv_(?:timer|_run_timers|_next_timeout)\w*|libtickwheel\S*\.so|liburcu\S*\.so")


def read_arguments():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("library", type=lambda path: Path(path).resolve(strict=True))
    for name, default in (("connections", 10000), ("clients", 50), ("seconds", 5), ("rounds", 5)):
        reader.add_argument(f"--{name}", type=int, default=default)
    reader.add_argument("--check", action="store_true")
    return reader.parse_args()


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def prepare(connections):
    for program in ("named", "dnsperf"):
        if shutil.which(program) is None:
            skip(f"{program} is not installed")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = max(most, connections + SPARE_FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    except (ValueError, OSError):
        skip(f"{wanted} file descriptors are needed, and the limit is {most}")


def open_idle(port, count, stack):
    """Opens connections. Each asks one question, and asks the server to keep it open."""
    ends = []
    for number in range(count):
        ends.append(stack.enter_context(dns.connect(port)))
        dns.ask_on(ends[-1], dns.question("www.example", "A", number & 0xFFFF, keepalive=True))
    return ends


def closed_count(ends):
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    return len(poll.poll(0))


def wait_until_closed(end, since):
    end.settimeout(dns.SECONDS)
    if end.recv(1) != b"":
        raise ValueError("data on an idle connection")
    seconds = time.monotonic() - since
    if seconds < named.IDLE_SECONDS * 0.9:
        raise ValueError(f"an idle connection was closed after {seconds:.3f} s")


def run_dnsperf(server, arguments):
    """Returns how many questions were answered, and how many a second."""
    command = ["dnsperf", "-m", "tcp", "-s", "127.0.0.1", "-p", str(server.port), "-d", "questions"]
    command += ["-l", str(arguments.seconds), "-c", str(arguments.clients), "-q", "1000"]
    limit = arguments.seconds + 120
    done = subprocess.run(command, cwd=server.folder, capture_output=True, text=True, check=True, timeout=limit)
    answered = int(re.search(r"Queries completed:\s+(\d+)", done.stdout)[1])
    return answered, float(re.search(r"Queries per second:\s+([\d.]+)", done.stdout)[1])


def timers_share(server, arguments):
    """Returns which part of named's samples is in timers, while dnsperf asks. None: perf does not work here."""
    data = str(server.folder / "perf.data")
    record = ["perf", "record", "-q", "-o", data, "-F", "999", "-p", str(server.process.pid)]
    with subprocess.Popen(record, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as perf:
        run_dnsperf(server, arguments)
        perf.send_signal(2)
    report = ["perf", "report", "-i", data, "--stdio", "--sort", "dso,symbol"]
    done = subprocess.run(report, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if re.match(r"\s+[\d.]+%", line)]
    if not lines:
        return None
    return sum(float(line.split("%")[0]) for line in lines if TIMERS.search(line))


def measure(server, arguments):
    cpu_s = server.cpu_s()
    answered, rate = run_dnsperf(server, arguments)
    return {"queries/s": rate, "CPU per query, us": (server.cpu_s() - cpu_s) * 1e6 / max(answered, 1)}


def use(server, arguments, work):
    """Checks the server, and calls `work` while the connections are idle. Returns the answers and the figures."""
    if server.library is not None and not server.has_mapped(server.library):
        raise ValueError("the library is not mapped")
    with contextlib.ExitStack() as stack:
        answers = dns.ask_all(server.port)
        since = time.monotonic()
        short = stack.enter_context(dns.connect(server.port))
        dns.ask_on(short, dns.question("www.example", "A", 1))
        before = server.rss_bytes()
        ends = open_idle(server.port, arguments.connections, stack)
        grown = (server.rss_bytes() - before) / arguments.connections
        figures = work(server, arguments)
        memory = {"RSS, MiB": server.rss_bytes() / (1 << 20), "RSS per idle connection, bytes": grown}
        wait_until_closed(short, since)
        if closed_count(ends) != 0:
            raise ValueError(f"{closed_count(ends)} connections were closed")
        if dns.ask_all(server.port) != answers:
            raise ValueError("the answers change")
    return answers, figures, memory


def serve(arguments, library, work):
    with tempfile.TemporaryDirectory(prefix="tickwheel-named-") as folder:
        server = named.Named(folder, library, max(arguments.connections * 2, 1000))
        try:
            result = use(server, arguments, work)
        finally:
            code = server.stop()
        if code != 0:
            raise ValueError(f"named ended with {code}:\n" + server.log())
    return result


def run_round(arguments, turned):
    """Returns the figures without and with the library."""
    rows = {}
    for library in (arguments.library, None) if turned else (None, arguments.library):
        answers, figures, memory = serve(arguments, library, measure)
        rows[library] = answers, {**figures, **memory}
    if rows[None][0] != rows[arguments.library][0]:
        raise ValueError("the answers differ")
    return rows[None][1], rows[arguments.library][1]


def print_table(arguments, rounds):
    print(
        f"{arguments.connections:,} idle connections, dnsperf on {arguments.clients} more for {arguments.seconds} s, "
        f"medians of {len(rounds)}\n"
    )
    print("| | stock | preloaded | ratio | of the rounds |\n|---|---|---|---|---|")
    for name in rounds[0][0]:
        stock, ours = (statistics.median(row[side][name] for row in rounds) for side in (0, 1))
        digits = 0 if stock > 100 else 2
        ratios = [row[1][name] / max(row[0][name], 1e-9) for row in rounds]
        print(f"| {name} | {stock:,.{digits}f} | {ours:,.{digits}f} | {ours / max(stock, 1e-9):.2f} ", end="")
        print(f"| {min(ratios):.2f} to {max(ratios):.2f} |")


def print_shares(arguments):
    if shutil.which("perf") is None:
        print("\nthe timers' share of the CPU: perf is not installed")
        return
    shares = [serve(arguments, library, timers_share)[1] for library in (None, arguments.library)]
    if None in shares:
        print("\nthe timers' share of the CPU: perf takes no samples here")
    else:
        print(f"\nthe timers' share of named's CPU: stock {shares[0]:.2f} %, preloaded {shares[1]:.2f} %")


def main():
    arguments = read_arguments()
    prepare(arguments.connections)
    if not named.binds_to(arguments.library):
        raise ValueError("named's calls of uv_timer_start do not reach the library")
    rounds = [run_round(arguments, turn % 2 == 1) for turn in range(arguments.rounds)]
    print("answers: the same bytes; idle connections: closed in time; named: ended well")
    if not arguments.check:
        print_table(arguments, rounds)
        print_shares(arguments)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"preload.py: {error}")
