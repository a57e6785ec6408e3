#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tickwheel-perf compare: the same operations by every engine, and what fails a comparison.

usage: test_compare.py TICKWHEEL_PERF [SLOW_CLOCK LOSSY_EVENT]      as in perf_case.py

Engines that are programs of their own take seconds to start, and have their own tests.
"""
import os
import subprocess
import sys
import unittest

from perf_case import BAD_INPUT, Case, KEYS, LOSSY_EVENT, LOST, SLOW_CLOCK, perf

COMPARE_KEYS = KEYS | {"version", "ns_min", "ns_max", "ratio", "cpu_ratio", "checksum"}
TABLES = os.path.join(os.path.dirname(__file__), "..", "..", "perf", "compare_tables.py")
REQUIRED = ("netty-512", "netty-65536", "jdk", "go", "libevent", "libuv", "dpdk", "mutex-heap", "mutex-wheel")


def engines(wanted):
  """Those of them that are built in."""
  listed = perf("list").stdout.split("engines:\n")[1].splitlines()
  return [name for name in wanted if name in listed]


class Engines(Case):
  SHARED = engines(("tickwheel", "mutex-wheel", "mutex-heap", "libevent-locked"))
  LOOPS = engines(("tickwheel", "libevent", "libev", "libuv"))

  def compare(self, workload, names, ops, producers=1, repeat=1):
    rows = self.rows("compare", workload, "--allow-missing", "--engine", ",".join(names), "--ops", str(ops),
                     "--repeat", str(repeat), "--producers", str(producers))
    self.assertEqual([row["engine"] for row in rows], names)
    for row in rows:
      self.assertLessEqual(COMPARE_KEYS, set(row))
      self.assertEqual((row["workload"], row["producers"], row["ops"]), (workload, producers, ops))
      self.assertEqual((row["lost"], row["checksum"]), (0, row["checksum_ended"]))
      self.assertLessEqual(row["ns_min"], row["ns_per_op"])
      self.assertLessEqual(row["ns_per_op"], row["ns_max"])
      self.assertNotEqual(row["version"], "")
    self.assertEqual(len({(row["checksum"], row["scheduled"], row["expired"]) for row in rows}), 1)
    self.assertEqual((rows[0]["ratio"], rows[0]["cpu_ratio"]), (1, 1))
    return rows

  def test_schedule_cancel(self):
    for producers in (1, 2):
      rows = self.compare("schedule-cancel", [*self.SHARED[:1], "tickwheel-at", *self.SHARED[1:]], 20000, producers, 3)
      self.assertEqual({row["cancelled"] for row in rows}, {60000})

  def test_live_ring(self):
    rows = self.compare("live-ring", self.SHARED[:2], 2000, 2)
    self.assertEqual({(row["cancelled"], row["handed_back"]) for row in rows}, {(2000, 1000000)})
    tables = subprocess.run([sys.executable, TABLES, self.json], capture_output=True, text=True, check=True).stdout
    self.assertIn("`live-ring`, 2 producers, 2,000 operations, medians of 1:", tables)
    for row in rows:
      self.assertIn(f"| {row['engine']} | {row['ns_per_op']:,.1f} |", tables)

  def test_fire(self):
    rows = self.compare("fire", self.SHARED, 4000, 2)
    self.assertEqual({(row["expired"], row["cancelled"]) for row in rows}, {(4000, 0)})
    for row in rows:
      self.assertEqual(row["lateness_samples"], 500)

  def test_light(self):
    for row in self.compare("light", self.SHARED, 40):
      self.assertEqual(row["lateness_samples"], 40)
      self.assertLess(row["lateness_ns"]["p50"], 1e9)

  def test_loop(self):
    for row in self.compare("loop-1k", self.LOOPS, 3000, repeat=3):
      self.assertEqual((row["scheduled"], row["expired"], row["cancelled"]), (12000, 0, 9000))

  def test_run_with_an_engine(self):
    for name in self.SHARED:
      row = self.rows("run", "schedule-cancel", "--engine", name, "--ops", "1000", "--repeat", "1")[0]
      self.check_row(row)
      self.assertEqual(row["engine"], name)

  def test_ratio_without_ours(self):
    row = self.rows("compare", "schedule-cancel", "--allow-missing", "--engine", "tickwheel-at", "--ops", "1000")[0]
    self.assertEqual((row["ratio"], row["repeat"]), (None, 5))

  def test_missing_engines_fail(self):
    missing = [name for name in REQUIRED if not engines([name])]
    if not missing:
      self.skipTest("all are built in")
    result = perf("compare", "schedule-cancel", "--ops", "1000")
    self.assertEqual(result.returncode, LOST)
    self.assertIn(f"not built in: {', '.join(missing)};", result.stderr)
    self.assertEqual(result.stdout, "")
    self.assertEqual(perf("run", "fire", "--engine", missing[0]).returncode, BAD_INPUT)

  def test_bad_words(self):
    for words, told in ((["compare", "--engine", "nonsense"], "is no engine"),
                        (["compare", "nonsense"], "unknown workload"),
                        (["compare", "--engine", ""], "--engine"),
                        (["compare", "--at"], "tickwheel-at"),
                        (["compare", "idle"], "compare does not know"),
                        (["run", "loop", "--engine", "tickwheel-at"], "knows none"),
                        (["run", "fire", "--allow-missing"], "belongs to compare"),
                        (["time", "--engine", "tickwheel"], "belongs to run")):
      result = perf(*words)
      self.assertEqual((result.returncode, result.stdout), (BAD_INPUT, ""), words)
      self.assertIn(told, result.stderr)

  @unittest.skipUnless(LOSSY_EVENT and "libevent-locked" in SHARED, "no module to load first, or no libevent")
  def test_lost_fails_the_comparison(self):
    result = perf("compare", "schedule-cancel", "--allow-missing", "--engine", "tickwheel,libevent-locked", "--ops",
                  "1000", "--repeat", "1", preload=LOSSY_EVENT)
    self.assertEqual(result.returncode, LOST, result.stdout)
    self.assertIn("libevent-locked lost timeouts", result.stderr)

  @unittest.skipUnless(SLOW_CLOCK, "no module to load first")
  def test_early_of_ours_fails_the_comparison(self):
    result = perf("compare", "light", "--allow-missing", "--engine", "tickwheel", "--ops", "10", "--repeat", "1",
                  preload=SLOW_CLOCK)
    self.assertEqual(result.returncode, LOST, result.stdout)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
