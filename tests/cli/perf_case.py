# SPDX-License-Identifier: MIT
"""Shared by the tests of tickwheel-perf.

Their arguments: TICKWHEEL_PERF [SLOW_CLOCK LOSSY_EVENT FORGETFUL_EVENT]

The last three are libraries that the tests preload. SLOW_CLOCK has a tw_engine_now that is a minute behind
(slow_clock.c). LOSSY_EVENT has an event_del that removes an event but reports that it was not there
(lossy_event.c). FORGETFUL_EVENT has an event_add that reports success but may do nothing
(forgetful_event.c).
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PERF = sys.argv[1]
SLOW_CLOCK, LOSSY_EVENT, FORGETFUL_EVENT = sys.argv[2:5] if len(sys.argv) > 4 else (None, None, None)
KEYS = {
  "workload", "engine", "wheel", "producers", "ops", "repeat", "ns_per_op", "cpu_ns_per_op", "peak_rss_bytes",
  "bytes_per_pending", "lateness_ns", "early", "expired", "cancelled", "unexpired", "lost", "date", "cpu", "cpus",
  "memory_bytes", "kernel", "compiler", "flags",
}
PERCENTILES = {"p50", "p99", "p999", "max"}
GOOD, LOST, BAD_INPUT = 0, 1, 2


def perf(*words, preload=None):
  environment = {**os.environ, "LD_PRELOAD": preload} if preload else None
  return subprocess.run([PERF, *words], capture_output=True, text=True, timeout=100, check=False, env=environment)


class Case(unittest.TestCase):
  def setUp(self):
    self.folder = tempfile.TemporaryDirectory()
    self.addCleanup(self.folder.cleanup)
    self.json = os.path.join(self.folder.name, "rows.json")

  def rows(self, *words):
    result = perf(*words, "--json", self.json)
    self.assertEqual(result.returncode, GOOD, result.stderr)
    with open(self.json, encoding="utf-8") as file:
      return [json.loads(line) for line in file]

  def trace(self, text):
    path = os.path.join(self.folder.name, "a.trace")
    with open(path, "w", encoding="utf-8") as file:
      file.write(text)
    return path

  def check_row(self, row):
    self.assertLessEqual(KEYS, set(row))
    self.assertLessEqual(PERCENTILES, set(row["lateness_ns"]))
    self.assertEqual(row["lost"], 0)
    self.assertEqual(row["early"], 0)
    self.assertEqual(row["checksum"], row["checksum_ended"])
    self.assertEqual(row["scheduled"], row["expired"] + row["cancelled"] + row["unexpired"])
