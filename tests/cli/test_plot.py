#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests tickwheel-perf plot: the pictures must be readable, and a file without results must be rejected.

usage: test_plot.py TICKWHEEL_PERF [FOLDER]      the folder of the scripts, as seen from an installed program
"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

from perf_case import BAD_INPUT, Case, GOOD, LOST, PERF, perf

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "docs"))
from check_pictures import SVG, boxes, faults  # pylint: disable=wrong-import-position

MACHINE = {"date": "2026-11-22T10:00:00Z", "cpu": "A Processor", "cpus": 2, "memory_bytes": 2**34, "kernel": "Linux 6.1-x", "compiler": "gcc 12",
           "flags": "buildtype=release optimization=3 b_lto=false b_pgo=off b_sanitize=none default_library=both"}
LATE = {"p10": 2e3, "p25": 3e3, "p50": 5e3, "p75": 8e3, "p90": 2e4, "p99": 3e5, "p999": 2e6, "p9999": 4e6, "max": 5e6}


SCRIPTS = ("compare_tables.py", "plot.py", "scale_tables.py", "svg.py")
SCRIPT_FOLDER = sys.argv[2] if len(sys.argv) > 2 else "../share/tickwheel"


def row(workload, engine="tickwheel", producers=1, late=None, **figures):
  return {"workload": workload, "engine": engine, "producers": producers, "repeat": 5, "ns_per_op": 40.0, "ns_per_op_min": 30.0, "ns_per_op_max": 50.0,
          "cpu_ns_per_op": 60.0, "lateness_ns": late or dict.fromkeys(LATE), "lateness_samples": 100000 if late else 0, "lost": 0, "early": 0,
          "checksum": "0", "checksum_ended": "0", **MACHINE, **figures}


def pending():
  for at in (1000, 10000, 100000000):
    for kind, ns in (("fresh", 40.0), ("random", 40.0 + at ** 0.4)):
      yield row(f"scale-pending-{kind}-{at}", part="pending", at=at, ns_per_op=ns, cpu_ns_per_op=ns * 1.5)


def producers():
  for count in (1, 2, 4, 8):
    yield row(f"scale-producers-{count}", producers=count, part="producers", at=count, predicted_ns=33.0)


def late():
  """Returns twelve engines with nearly the same figures, so that their names could overlap."""
  for i, engine in enumerate(("tickwheel", "mutex-wheel", "mutex-heap", "libevent-locked", "asio", "dpdk", "timerfd", "posix-timer", "netty-512",
                              "netty-65536", "jdk", "go")):
    yield row("light", engine, late={key: value * (1 + i / 100) for key, value in LATE.items()}, ratio=1, tick_ns=10000)


def contest():
  for part in ("rdtsc", "cas", "rcu-inlined", "line", "cas-pair"):
    yield row(f"floor-{part}", "none", ns_per_op=14.0 if part == "cas-pair" else 7.0)
  for workload in ("schedule-cancel", "live-ring", "fire"):
    for count in (1, 2):
      for i, engine in enumerate(("tickwheel", "tickwheel-at", "mutex-heap", "libevent-locked", "netty-65536")):
        yield row(workload, engine, count, ratio=1 + i, ns_per_op=40.0 * 4**i / count, cpu_ns_per_op=60.0 * (1 + i))


class Plot(Case):
  def plot(self, rows, *words):
    with open(self.json, "w", encoding="utf-8") as file:
      file.writelines(json.dumps(row) + "\n" for row in rows)
    return perf("plot", self.json, "--output", os.path.join(self.folder.name, "pictures"), *words)

  def drawn(self, rows):
    result = self.plot(rows)
    self.assertEqual(result.returncode, GOOD, result.stderr)
    pictures = {}
    for path in result.stdout.split():
      with open(path, encoding="utf-8") as file:
        pictures[os.path.basename(path)] = file.read()
    return pictures

  def check_picture(self, name, text):
    self.assertEqual(list(faults(text)), [], name)
    found = boxes(xml.fromstring(text))
    all_words = " ".join(words for words, *_ in found)
    self.assertIn("2026-11-22T10:00:00Z; A Processor, 2 CPUs, 16 GiB; Linux 6.1; gcc 12", all_words, name)
    return all_words

  def test_each_can_be_read(self):
    pictures = self.drawn([*pending(), *producers(), *late(), *contest()])
    words = {name: self.check_picture(name, text) for name, text in pictures.items()}
    self.assertEqual(set(words), {"pending.svg", "producers.svg", "lateness-light.svg", "peers-schedule-cancel.svg", "peers-live-ring.svg", "peers-fire.svg"})
    for name, wanted in {
      "pending.svg": ("ns per pair", "timeouts pending (log)", "1 k", "100 M", "medians of 5"),
      "producers.svg": ("million pairs per second", "producers (log)", "predicted", "medians of 5"),
      "lateness-light.svg": ("lateness (log)", "% of the timeouts", "99.99", "ms", "tickwheel's tick is 10 µs", "5 repeats"),
      "peers-schedule-cancel.svg": ("ns per operation (log)", "floor 28.0", "floor 14.0", "1 producer", "2 producers", "medians of 5"),
      "peers-live-ring.svg": ("ns per operation (log)", "floor 28.0", "floor 14.0"),
      "peers-fire.svg": ("ns per operation", "CPU time of all threads", "floor 35.0"),
    }.items():
      for piece in wanted:
        self.assertIn(piece, words[name], name)
    for row_ in late():
      self.assertIn(row_["engine"], words["lateness-light.svg"])

  def test_places_follow_the_figures(self):
    """Draws a chart of two lines. The second line must be higher where its figures are higher."""
    root = xml.fromstring(self.drawn(pending())["pending.svg"])
    curves = [line for line in root.iter(SVG + "polyline") if len(line.get("points").split()) == 3 and line.get("stroke") in ("#0550ae", "#bc4c00")
              and line.get("points").startswith("90,")]
    self.assertEqual(len(curves), 4)
    last = {(line.get("stroke"), bool(line.get("stroke-dasharray"))): [float(part) for part in line.get("points").split()[-1].split(",")] for line in curves}
    self.assertLess(last["#bc4c00", True][1], last["#bc4c00", False][1])
    self.assertLess(last["#bc4c00", False][1], last["#0550ae", False][1])
    bars = xml.fromstring(self.drawn(contest())["peers-fire.svg"]).findall(SVG + "rect")[1:6]
    widths = [float(bar.get("width")) for bar in bars]
    self.assertEqual(widths, sorted(widths))
    self.assertAlmostEqual(widths[4] / widths[0], 5, delta=0.05)

  def test_dots_on_a_logarithmic_axis(self):
    root = xml.fromstring(self.drawn(contest())["peers-schedule-cancel.svg"])
    self.assertEqual(len(root.findall(SVG + "rect")), 1, "bars, which have no zero to begin from")
    places = [float(dot.get("cx")) for dot in root.findall(SVG + "circle")[:5]]
    steps = [right - left for left, right in zip(places, places[1:])]
    self.assertGreater(steps[0], 10)
    for step in steps:
      self.assertAlmostEqual(step, steps[0], delta=0.2)

  def test_the_same_twice(self):
    rows = [*pending(), *late(), *contest()]
    self.assertEqual(self.drawn(rows), self.drawn(rows))

  def test_few_samples_have_no_nines(self):
    few = dict(row("light", late=LATE), lateness_samples=50)
    words = self.check_picture("few", self.drawn([few])["lateness-light.svg"])
    self.assertNotIn("99.9", words)

  def test_of_one_point(self):
    for rows in (list(pending())[:1], list(producers())[:1], [row("fire", late=LATE)]):
      for name, text in self.drawn(rows).items():
        self.check_picture(name, text)

  def test_without_a_floor(self):
    rows = [row for row in contest() if row["engine"] != "none"]
    self.assertNotIn("floor", "".join(self.drawn(rows).values()))

  def test_what_is_no_result(self):
    for content, wanted in (
      ("", "empty"), ("\n\n", "empty"), ("nonsense\n", "no JSON"), ("[]\n", "no row"), ("5\n", "no row"), ("{}\n", "no row"),
      (json.dumps(row("fire", late=LATE, cpus="two")) + "\n", "cpus"), (json.dumps(row("floor-cas", "none")) + "\n", "nothing to draw"),
      (json.dumps(row("fire", late=LATE)) + "\n" + json.dumps(row("light", late=LATE, cpu="Another")) + "\n", "different machines"),
    ):
      with open(self.json, "w", encoding="utf-8") as file:
        file.write(content)
      result = perf("plot", self.json, "--output", self.folder.name)
      self.assertEqual((result.returncode, result.stdout), (BAD_INPUT, ""), content)
      self.assertIn(wanted, result.stderr)
      self.assertNotIn("Traceback", result.stderr)

  def test_files_that_are_not_there(self):
    self.assertEqual(perf("plot", "/nonexistent.json").returncode, BAD_INPUT)
    result = self.plot(pending(), "--output", "/dev/null/pictures")
    self.assertEqual(result.returncode, LOST)
    self.assertIn("/dev/null", result.stderr)

  def test_a_loss_is_not_drawn(self):
    for bad in ({"lost": 1}, {"checksum_ended": "1"}):
      self.assertEqual(self.plot([row("fire", late=LATE, **bad)]).returncode, LOST)

  @unittest.skipIf(os.path.isabs(SCRIPT_FOLDER), "not seen from the program")
  def test_installed_elsewhere(self):
    """The program must find its scripts in a tree that was moved as a whole. Without the scripts it must report
    an error.
    """
    build = os.path.dirname(os.path.abspath(PERF))
    folder = os.path.join(self.folder.name, "a", "b", "bin")
    scripts = os.path.join(folder, SCRIPT_FOLDER)
    os.makedirs(folder)
    program = shutil.copy(PERF, folder)
    words = [program, "plot", self.json, "--output", self.folder.name]
    libraries = [os.path.join(build, "..", part) for part in ("src", "src/durable")]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}
    self.plot(pending())
    for wanted in (LOST, GOOD):
      result = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False, env=environment)
      self.assertEqual(result.returncode, wanted, result.stderr)
      os.makedirs(scripts, exist_ok=True)
      for name in SCRIPTS:
        shutil.copy(os.path.join(build, name), scripts)
    self.assertEqual(sorted(os.listdir(scripts)), list(SCRIPTS))

  def test_bad_words(self):
    for words in (["plot"], ["run", "fire", "--output", "x"], ["plot", "x.json", "--json", "y.json"]):
      result = perf(*words)
      self.assertEqual((result.returncode, result.stdout), (BAD_INPUT, ""), words)
      self.assertRegex(result.stderr, r"plot", words)

  def test_of_a_run(self):
    rows = self.rows("run", "fire", "--ops", "5000", "--repeat", "1")
    names = ["p10", "p25", "p50", "p75", "p90", "p99", "p999", "p9999", "max"]
    values = [rows[0]["lateness_ns"][name] for name in names]
    self.assertEqual(values, sorted(values))
    result = perf("plot", self.json, "--output", self.folder.name)
    self.assertEqual(result.returncode, GOOD, result.stderr)
    self.assertRegex(result.stdout, re.compile(r"^\S+/lateness-fire\.svg$"))


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
