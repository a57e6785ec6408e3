#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests tickwheel-perf compare: it makes the same operations with every engine, and must report each
difference.

usage: test_compare.py TICKWHEEL_PERF [SLOW_CLOCK LOSSY_EVENT FORGETFUL_EVENT]      as in perf_case.py

Engines that are programs of their own take seconds to start, and have their own tests.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from perf_case import BAD_INPUT, Case, FORGETFUL_EVENT, KEYS, LOSSY_EVENT, LOST, SLOW_CLOCK, perf

COMPARE_KEYS = KEYS | {"version", "ns_min", "ns_max", "ratio", "cpu_ratio", "checksum"}
TABLES = os.path.join(os.path.dirname(__file__), "..", "..", "perf", "report", "compare_tables.py")
REQUIRED = ("netty-512", "netty-65536", "jdk", "go", "libevent", "libuv", "dpdk", "mutex-heap", "mutex-wheel")


def engines(wanted):
  """Returns those of the wanted engines that are built in."""
  listed = perf("list").stdout.split("engines:\n")[1].splitlines()
  return [name for name in wanted if name in listed]


class Engines(Case):
  SHARED = engines(("tickwheel", "mutex-wheel", "mutex-heap", "libevent-locked"))
  LOOPS = engines(("tickwheel", "libevent", "libev", "libuv"))

  def compare(self, workload, names, ops, producers=1, repeat=1):
    rows = self.rows("compare", workload, "--allow-missing", "--engine", ",".join(names), "--ops", str(ops),
                     "--repeat", str(repeat), "--producers", str(producers))
    self.probes = [row for row in rows if row["engine"] == "none"]
    rows = [row for row in rows if row["engine"] != "none"]
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

  def tables(self):
    return subprocess.run([sys.executable, TABLES, self.json], capture_output=True, text=True, check=True).stdout

  def test_schedule_cancel(self):
    for producers in (1, 2):
      rows = self.compare("schedule-cancel", [*self.SHARED[:1], "tickwheel-at", "tickwheel-coarse", *self.SHARED[1:]], 20000, producers,
                          producers)
      self.assertEqual({row["cancelled"] for row in rows}, {20000 * producers})

  def test_live_ring(self):
    rows = self.compare("live-ring", self.SHARED[:2], 2000, 2)
    self.assertEqual({(row["cancelled"], row["unexpired"]) for row in rows}, {(2000, 1000000)})
    tables = self.tables()
    self.assertIn("`live-ring`, 2 producers, 2,000 operations, medians of 1:", tables)
    for row in rows:
      self.assertIn(f"| {row['engine']} | {row['ns_per_op']:,.1f} |", tables)
      self.assertIn(f"{row['engine']} {row['version']}", tables.splitlines()[-1])

  def test_fire(self):
    rows = self.compare("fire", self.SHARED, 4000, 2)
    self.assertEqual({(row["expired"], row["cancelled"]) for row in rows}, {(4000, 0)})
    for row in rows:
      self.assertEqual(row["lateness_samples"], 500)

  def test_light(self):
    for row in self.compare("light", self.SHARED, 40):
      self.assertEqual(row["lateness_samples"], 40)
      self.assertLess(row["lateness_ns"]["p50"], 1e9)
      self.assertTrue(row["early"] == 0 or row["engine"].startswith("libevent"), row)
    probes = [row["workload"] for row in self.probes]
    self.assertEqual(probes[-2:], ["floor-oversleep-p50", "floor-oversleep-p99"])
    self.assertLessEqual({"floor-cas", "floor-line", "floor-rcu-inlined", "floor-loop-bare"}, set(probes))
    tables = self.tables()
    self.assertIn("tickwheel has a tick of 10 us here", tables)
    self.assertIn("`light`, 1 producer: lateness p99 (a tick + 2 ×", tables)

  def test_loop(self):
    for row in self.compare("loop-1k", self.LOOPS, 3000, repeat=2):
      self.assertEqual((row["scheduled"], row["expired"], row["cancelled"]), (8000, 0, 6000))

  def test_run_with_an_engine(self):
    for name in self.SHARED:
      row = self.rows("run", "schedule-cancel", "--engine", name, "--ops", "1000", "--repeat", "1")[0]
      self.check_row(row)
      self.assertEqual(row["engine"], name)

  def test_ratio_without_ours(self):
    row = self.rows("compare", "schedule-cancel", "--allow-missing", "--engine", "tickwheel-at", "--ops", "1000",
                    "--repeat", "2")[-1]
    self.assertEqual((row["ratio"], row["repeat"]), (None, 2))

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

  @unittest.skipUnless(FORGETFUL_EVENT and "libevent-locked" in SHARED, "no module to load first, or no libevent")
  def test_cancelling_what_was_not_pending_counts_as_lost(self):
    for workload, engine, asked in (("schedule-cancel", "libevent-locked", 10), ("loop-1k", "libevent", 10)):
      result = perf("compare", workload, "--allow-missing", "--engine", f"tickwheel,{engine}", "--ops", str(asked * 64),
                    "--repeat", "1", preload=FORGETFUL_EVENT)
      self.assertEqual(result.returncode, LOST, result.stdout)
      self.assertIn(f"{engine} lost timeouts", result.stderr)

  @unittest.skipUnless(SLOW_CLOCK, "no module to load first")
  def test_early_of_ours_fails_the_comparison(self):
    result = perf("compare", "light", "--allow-missing", "--engine", "tickwheel", "--ops", "10", "--repeat", "1",
                  preload=SLOW_CLOCK)
    self.assertEqual(result.returncode, LOST, result.stdout)


def row_of(workload, engine, producers=1, lateness=(None, None), **figures):
  figures = {"ns_per_op": 10, "cpu_ns_per_op": 10, "tick_ns": 10000, **figures}
  return {
    "workload": workload, "engine": engine, "producers": producers, "ops": 1, "repeat": 1, "lost": 0, "checksum": "0", "checksum_ended": "0",
    "version": "1", "ratio": 1, "cpu_ratio": 1, "ns_per_op_min": 1, "ns_per_op_max": 1, "lateness_ns": dict(zip(("p50", "p99"), lateness)),
    "date": "2000-01-02T03:04:05Z", "cpu": "a CPU", "cpus": 2, "memory_bytes": 3 << 30, "kernel": "Linux 1", "compiler": "cc 1",
    "flags": "fast", **figures,
  }


class Targets(unittest.TestCase):
  """The tables, from figures whose outcome is known."""

  def tables(self, *rows):
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, "rows.json")
      with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
      return subprocess.run([sys.executable, TABLES, path], capture_output=True, text=True, check=True).stdout.splitlines()

  def line(self, tables, begin):
    found = [line for line in tables if line.startswith(f"| {begin} |")]
    self.assertEqual(len(found), 1, (begin, tables))
    return [cell.strip() for cell in found[0].strip("|").split("|")][1:]

  def test_against_the_best_of_the_others(self):
    tables = self.tables(
      row_of("schedule-cancel", "tickwheel", ns_per_op=20), row_of("schedule-cancel", "tickwheel-at", ns_per_op=14),
      row_of("schedule-cancel", "tickwheel-coarse", ns_per_op=30),
      row_of("schedule-cancel", "go", ns_per_op=90), row_of("schedule-cancel", "mutex-heap", ns_per_op=40),
      row_of("schedule-cancel", "netty-512", ns_per_op=50), row_of("schedule-cancel", "tickwheel", 2, ns_per_op=21),
      row_of("schedule-cancel", "dpdk", 2, ns_per_op=40))
    one = "`schedule-cancel`, 1 producer"
    self.assertEqual(self.line(tables, f"{one}: wall, whatever the clock"), ["20.0", "mutex-heap 40.0", "0.50", "≤ 0.9 ×", "met", "", ""])
    self.assertEqual(self.line(tables, f"{one}: wall, no coarse clock")[:3], ["20.0", "netty-512 50.0", "0.40"])
    self.assertEqual(self.line(tables, f"{one}: wall, coarse clocks")[:3], ["30.0", "mutex-heap 40.0", "0.75"])
    self.assertEqual(self.line(tables, f"{one}: wall, against Netty"), ["20.0", "netty-512 50.0", "0.40", "≤ 0.35 ×", "0.40 ×", "", ""])
    given = [line for line in tables if "at a given time" in line]
    self.assertEqual([line.split("|")[-4].strip() for line in given], ["0.35 ×", "met"])
    self.assertEqual(self.line(tables, "`schedule-cancel`, 2 producers: wall")[-3], "0.53 ×")
    self.assertEqual(tables[0], "2000-01-02T03:04:05Z; a CPU, 2 CPUs, 3 GiB; Linux 1; cc 1, fast.")

  def test_cpu_time_too_short_to_be_measured_is_not_the_best(self):
    tables = self.tables(row_of("live-ring", "tickwheel", 2, cpu_ns_per_op=50), row_of("live-ring", "jdk", 2, cpu_ns_per_op=0),
                         row_of("live-ring", "go", 2, cpu_ns_per_op=80), row_of("live-ring", "tickwheel", cpu_ns_per_op=50),
                         row_of("live-ring", "mutex-wheel", cpu_ns_per_op=40))
    self.assertEqual(self.line(tables, "`live-ring`, 2 producers: CPU"), ["50.0", "go 80.0", "0.62", "≤ 0.6 ×", "0.62 ×", "", ""])
    self.assertEqual(self.line(tables, "`live-ring`, 1 producer: CPU, against mutex-wheel"), ["50.0", "mutex-wheel 40.0", "1.25", "≤ 1.2 ×", "1.25 ×", "", ""])

  def test_both_clocks_of_both_sides(self):
    tables = self.tables(
      *(row_of(workload, engine, ns_per_op=at + 1, cpu_ns_per_op=at + 11, lateness=(at * 1e3, at * 2e3))
        for at, engine in enumerate(("tickwheel", "mutex-heap", "mutex-heap-monotonic", "go")) for workload in ("schedule-cancel", "fire")))
    at = next(at for at, line in enumerate(tables) if line.startswith("Which clock"))
    self.assertEqual(tables[at + 4:at + 7], [
      "| tickwheel | time stamp counter | 1.0 | 11.0 | 11.0 | 0.0 | 0.0 |", "| mutex-heap-monotonic | monotonic | 3.0 | 13.0 | 13.0 | 2.0 | 4.0 |",
      "| mutex-heap | coarse | 2.0 | 12.0 | 12.0 | 1.0 | 2.0 |"])

  def test_limits(self):
    tables = self.tables(
      row_of("fire", "tickwheel", cpu_ns_per_op=195, lateness=(1, 20e6)), row_of("fire", "netty-65536", cpu_ns_per_op=390),
      row_of("loop-1k", "tickwheel", ns_per_op=6), row_of("loop-1k", "libev", ns_per_op=6), row_of("loop-1k", "libuv", ns_per_op=7),
      row_of("floor-oversleep-p50", "none", ns_per_op=30e3), row_of("floor-oversleep-p99", "none", ns_per_op=70e3),
      row_of("light", "tickwheel", lateness=(46e3, 225e3)))
    self.assertEqual(self.line(tables, "`fire`, 1 producer: CPU"), ["195.0 ns", "", "", "≤ 130.0 ns", "1.50 × that", "", ""])
    self.assertEqual(self.line(tables, "`fire`, 1 producer: CPU, against Netty's large wheel")[-3], "met")
    self.assertEqual(self.line(tables, "`fire`, 1 producer: lateness p99")[-3], "met")
    loops = [line.split("|")[-4].strip() for line in tables if line.startswith("| `loop-1k`, 1 producer: wall")]
    self.assertEqual(loops, ["met", "1.00 ×", "met"])
    light = [line.split("|")[-4].strip() for line in tables if line.startswith("| `light`, 1 producer: lateness")]
    self.assertEqual(light, ["met", "1.50 × that"])

  def test_floors(self):
    parts = {"rdtsc": 10, "cas": 5, "cas-pair": 8, "rcu-inlined": 2, "line": 9, "loop-bare": 4, "clock-coarse": 6}
    tables = self.tables(
      *(row_of(f"floor-{part}", "none", ns_per_op=ns) for part, ns in parts.items()),
      row_of("schedule-cancel", "tickwheel", ns_per_op=38), row_of("schedule-cancel", "go", ns_per_op=90),
      row_of("live-ring", "tickwheel", 2, ns_per_op=54, cpu_ns_per_op=80), row_of("live-ring", "go", 2, ns_per_op=90, cpu_ns_per_op=90),
      row_of("fire", "tickwheel", cpu_ns_per_op=66), row_of("loop-1k", "tickwheel", ns_per_op=6))
    self.assertEqual(self.line(tables, "`schedule-cancel`, 1 producer: wall, whatever the clock")[-2:], ["19.0", "2.0 ×"])
    self.assertEqual(self.line(tables, "`live-ring`, 2 producers: wall")[-2:], ["13.5", "4.0 ×"])
    self.assertEqual(self.line(tables, "`live-ring`, 2 producers: CPU")[-2:], ["40.0", "2.0 ×"])
    self.assertEqual(self.line(tables, "`fire`, 1 producer: CPU")[-2:], ["33.0", "2.0 ×"])
    self.assertEqual(self.line(tables, "`loop-1k`, 1 producer: wall")[-2:], ["4.0", "1.5 ×"])

  def test_what_was_not_measured_has_no_target(self):
    self.assertFalse([line for line in self.tables(row_of("fire", "go")) if "Targets" in line])


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
