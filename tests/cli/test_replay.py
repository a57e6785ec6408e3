#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays traces in virtual time. The results must be exactly the numbers that expect.py has computed without a
wheel.

usage: test_replay.py TICKWHEEL_PERF TRACE_FOLDER
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ENDS = ("scheduled", "cancelled", "expired", "unexpired")


def replay(perf, trace, tick_ns, json_path):
  subprocess.run([perf, "replay", trace, "--tick", str(tick_ns), "--json", json_path], check=True, timeout=100,
                 stdout=subprocess.DEVNULL)
  return json.loads(json_path.read_text())


def main():
  perf, folder = sys.argv[1], pathlib.Path(sys.argv[2])
  wrong = 0
  with tempfile.TemporaryDirectory() as scratch:
    for expected in json.loads((folder / "expected.json").read_text()):
      row = replay(perf, folder / expected["trace"], expected["tick_ns"], pathlib.Path(scratch) / "rows.json")
      good = all(row[end] == expected[end] for end in ENDS) and row["lost"] == 0
      wrong += not good
      print("ok" if good else "WRONG", expected, {end: row[end] for end in ENDS})
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())
