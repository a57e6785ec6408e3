#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes what a replay of the traces in virtual time must give, without any wheel.

A timeout that is armed at t with delay d fires at the first tick boundary after t + d, or at t if d is 0. A
recorded cancel or a new arm counts only if it comes before the timeout fires. Recorded fire lines belong to
the recorded system and do not count.
"""
import json
import pathlib
import subprocess

TICKS_NS = (1_000_000, 10_000_000, 100_000_000)


def operations(path):
  text = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True, text=True).stdout
  before_ns = 0
  for number, line in enumerate(text.splitlines(), 1):
    if not line.startswith("#"):
      fields = line.split()
      if int(fields[0]) < before_ns:
        raise SystemExit(f"{path}:{number}: the time is before that of the operation before it")
      before_ns = int(fields[0])
      yield before_ns, fields[1], fields[2], int(fields[3]) if fields[1] == "arm" else 0


def end_of(boundary_ns, now_ns):
  return "expired" if boundary_ns <= now_ns else "cancelled"


def fires_at(now_ns, delay_ns, tick_ns):
  return now_ns if delay_ns <= 0 else ((now_ns + delay_ns) // tick_ns + 1) * tick_ns


def expect(path, tick_ns):
  count = {"scheduled": 0, "cancelled": 0, "expired": 0, "unexpired": 0}
  boundary_ns = {}
  now_ns = 0
  for now_ns, operation, timer, delay_ns in operations(path):
    if operation in ("arm", "cancel") and timer in boundary_ns:
      count[end_of(boundary_ns.pop(timer), now_ns)] += 1
    if operation == "arm":
      count["scheduled"] += 1
      boundary_ns[timer] = fires_at(now_ns, delay_ns, tick_ns)
  for boundary in boundary_ns.values():
    count["expired" if boundary <= now_ns else "unexpired"] += 1
  return {"trace": path.name, "tick_ns": tick_ns, **count}


def main():
  folder = pathlib.Path(__file__).resolve().parent
  rows = [expect(path, tick) for path in sorted(folder.glob("*.trace.zst")) for tick in TICKS_NS]
  print("[\n  " + ",\n  ".join(json.dumps(row) for row in rows) + "\n]")


if __name__ == "__main__":
  main()
