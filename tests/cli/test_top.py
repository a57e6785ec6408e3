#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests tickwheel-perf top. Its figures must add up. In a terminal of 80 x 24 its output must stay inside and
follow a change of size. However the program ends, the terminal must be restored. A recording must be a
picture that can be read.

usage: test_top.py TICKWHEEL_PERF      as in perf_case.py
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from perf_case import BAD_INPUT, Case, GOOD, LOST, PERF, perf

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/docs"))
import check_pictures  # has the rules for pictures, which apply to a recording as well

LOAD = ("--ops", "20000", "--pending", "5000", "--hold", "500", "--interval", "300")
TAKEN, GIVEN = b"\x1b[?1049h", b"\x1b[?1049l"
HOME = b"\x1b[H"
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
# The colours of title, headings, rates and bars, and the sequence that ends a colour. The colour of an alarm is
# not required, because only a busy machine has alarms.
COLOURS = {b"\x1b[0;1m", b"\x1b[0;1;34m", b"\x1b[0;32m", b"\x1b[0;36;46m", b"\x1b[0m"}
ALARM = b"\x1b[0;1;31m"
PATIENCE_S = 60
DURABLE = b"was built without" not in subprocess.run([PERF, "top", "--durable", ".", "--repeat", "1"], capture_output=True).stderr


def number(text):
  return int(text.replace(",", ""))


class Frame:
  """One frame of the output, as text."""

  def __init__(self, text):
    self.lines = text.splitlines()

  def cell(self, name, column):
    """Returns a number of the line that begins with the name; `column` counts from the left."""
    line = next(line for line in self.lines if line.startswith(name))
    return number(re.findall(r"[\d,]+(?=\s|$)", line[len(name):])[column])

  def held(self, name):
    return number(re.search(rf"  {name} +([\d,]+)$", "\n".join(self.lines), re.M)[1])

  def levels(self):
    return sum(number(row[1]) for row in
               (re.match(r"level \d+ +slots of [\d.]+ \w+ +([\d,]+)", line) for line in self.lines) if row)

  def interval_s(self):
    return float(re.search(r"last ([\d.]+) s", self.lines[1])[1])


class Figures(Case):
  def near(self, one, other, share, more=0):
    self.assertLessEqual(abs(one - other), share * max(one, other) + more, (one, other))

  def frames(self, *words):
    begin = time.monotonic()
    result = perf("top", *LOAD, *words)
    self.passed_s = time.monotonic() - begin
    self.assertEqual(result.returncode, GOOD, result.stderr)
    self.assertNotIn("\x1b", result.stdout)
    *frames, verdict = result.stdout.rstrip("\n").split("\n\ntickwheel-perf top")
    verdict, last = verdict.split("\n\n")[-1], verdict.rsplit("\n\n", 1)[0]
    return [Frame(text) for text in [*frames, last]], verdict

  def test_figures_add_up(self):
    frames, verdict = self.frames("--frames", "3", "--producers", "2")
    self.assertEqual(len(frames), 3)
    # Each interval is rounded to a hundredth of a second.
    self.assertLessEqual(sum(frame.interval_s() for frame in frames), self.passed_s + 0.015)
    for before, frame in zip(frames, frames[1:]):
      for line in frame.lines:
        self.assertLessEqual(len(line), 80)
      self.assertLessEqual(len(frame.lines), 24)
      for name in ("scheduled", "cancelled", "expired"):
        came = frame.cell(name, 1) - before.cell(name, 1)
        self.near(came, frame.cell(name, 0) * frame.interval_s(), 0.05, 2)
        self.assertGreater(came, 0)
      # The program does not read all counters at one moment, so the sums are only near each other.
      self.near(frame.cell("scheduled", 1),
                frame.cell("cancelled", 1) + frame.cell("expired", 1) + frame.held("pending"), 0.1, 500)
      self.near(frame.levels(), frame.held("pending"), 0.3, 500)
      self.near(frame.cell("lateness", -1), frame.cell("expired", 0) * frame.interval_s(), 0.2, 500)
    scheduled, expired, cancelled, back = (int(word) for word in re.findall(r"(\d+) [sech]", verdict))
    self.assertEqual(scheduled, expired + cancelled + back)
    self.assertGreaterEqual(scheduled, frames[-1].cell("scheduled", 1))
    self.assertTrue(verdict.endswith(": ok"), verdict)

  def test_hashed_wheel(self):
    frames, verdict = self.frames("--frames", "1", "--wheel", "hashed", "--tick", "2000000")
    self.assertIn("hashed wheel, tick 2000 us", frames[0].lines[0])
    self.assertTrue(verdict.endswith(": ok"), verdict)

  def test_bad_words(self):
    for words in (["top", "fire"], ["top", "--json", "x"], ["top", "--repeat", "2"], ["top", "--loop"], ["top", "--at"],
                  ["run", "fire", "--frames", "2"], ["run", "fire", "--hold", "2"], ["top", "--interval", "0"],
                  ["run", "fire", "--durable", "."]):
      result = perf(*words)
      self.assertEqual(result.returncode, BAD_INPUT, words)
      self.assertEqual(result.stdout, "", words)


@unittest.skipUnless(DURABLE, "built without durable timers")
class Durable(Figures):
  """Tests with a set of durable timers."""

  def test_figures_add_up(self):
    frames, verdict = self.frames("--frames", "3", "--producers", "2", "--durable", self.folder.name)
    self.assertEqual(len(frames), 3)
    for before, frame in zip(frames, frames[1:]):
      for line in frame.lines:
        self.assertLessEqual(len(line), 80)
      for name in ("scheduled", "commits", "operations", "runs"):
        self.assertGreater(frame.cell(name, 1), before.cell(name, 1))
      self.assertEqual(frame.cell("unknown", 1), 0)
      self.assertEqual(frame.cell("dead letters", 1), 0)
      self.near(frame.cell("lateness", -1), frame.cell("runs", 0) * frame.interval_s(), 0.2, 500)
    scheduled, run, cancelled, left = (int(word) for word in re.findall(r"(\d+) [srcl]", verdict))
    self.assertEqual(scheduled, run + cancelled + left)
    self.assertGreaterEqual(run, frames[-1].cell("runs", 1))
    self.assertTrue(verdict.endswith(": ok"), verdict)
    self.assertEqual(os.listdir(self.folder.name), [])

  def test_hashed_wheel(self):
    self.skipTest("a matter of the engine")

  def test_bad_words(self):
    result = perf("top", "--durable", os.path.join(self.folder.name, "absent"), "--frames", "1")
    self.assertEqual(result.returncode, LOST)
    self.assertIn("absent: No such file or directory", result.stderr)


class Screen:
  """Runs the program in a terminal of its own."""

  def __init__(self, rows, columns, *words, **variables):
    self.seen = b""
    self.pid, self.terminal = pty.fork()
    if self.pid == 0:
      time.sleep(0.1)
      environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
      os.execve(PERF, [PERF, "top", *LOAD, *words], {**environment, "TERM": "xterm", **variables})
    self.resize(rows, columns)
    self.before = termios.tcgetattr(self.terminal)

  def resize(self, rows, columns):
    fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

  def read(self):
    if select.select([self.terminal], [], [], 0.05)[0]:
      try:
        self.seen += os.read(self.terminal, 65536)
      except OSError:
        return False
    return True

  def wait_for(self, done):
    end = time.monotonic() + PATIENCE_S
    while not done(self.seen):
      if time.monotonic() > end or not self.read():
        raise AssertionError(f"not seen in {self.seen[-2000:]!r}")

  def frames(self):
    """Returns the lines of each frame that was drawn in full."""
    return [ESCAPE.sub(b"", part).decode().replace("\r", "").split("\n") for part in self.seen.split(HOME)[1:-1]]

  def end(self):
    while self.read():
      pass
    after = termios.tcgetattr(self.terminal)
    os.close(self.terminal)
    return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), after


class Terminal(unittest.TestCase):
  def ends(self, how, rows=24, columns=80):
    screen = Screen(rows, columns)
    screen.wait_for(lambda seen: seen.count(HOME) > 2)
    how(screen)
    screen.wait_for(lambda seen: GIVEN in seen)
    frames = screen.frames()
    code, after = screen.end()
    self.assertEqual(code, GOOD, screen.seen[-500:])
    self.assertEqual(after, screen.before)
    self.assertEqual(screen.seen.count(TAKEN), 1)
    self.assertIn(b"\x1b[?25h", screen.seen)
    self.assertIn(b"handed back: ok", screen.seen.split(GIVEN)[1])
    for lines in frames:
      self.assertLessEqual(len(lines), rows)
      for line in lines:
        self.assertLessEqual(len(line), columns)
    return frames

  def test_key(self):
    frames = self.ends(lambda screen: os.write(screen.terminal, b"xq"))
    self.assertGreater(len(frames[-1]), 20)

  def test_interrupt_key(self):
    self.ends(lambda screen: os.write(screen.terminal, b"\x03"))

  def test_terminated(self):
    self.ends(lambda screen: os.kill(screen.pid, signal.SIGTERM))

  def test_small(self):
    frames = self.ends(lambda screen: os.write(screen.terminal, b"q"), rows=9, columns=30)
    self.assertEqual(len(frames[-1]), 9)

  def escapes(self, **variables):
    """Returns the kinds of escape sequences that set colours."""
    screen = Screen(24, 80, "--frames", "2", **variables)
    self.assertEqual(screen.end()[0], GOOD)
    return set(re.findall(rb"\x1b\[[\d;]*m", screen.seen))

  def test_colours(self):
    self.assertEqual(self.escapes() - {ALARM}, COLOURS)
    self.assertEqual(self.escapes(NO_COLOR="") - {ALARM}, COLOURS)
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
      self.assertEqual(self.escapes(**variables), {b"\x1b[0m", b"\x1b[0;1m"}, variables)

  def test_resized(self):
    screen = Screen(24, 80, "--interval", "700")
    screen.wait_for(lambda seen: seen.count(HOME) > 1)
    screen.resize(30, 120)
    screen.wait_for(lambda seen: any(len(line) > 80 for line in screen.frames()[-1] if line.startswith("level")))
    os.write(screen.terminal, b"q")
    self.assertEqual(screen.end()[0], GOOD)


class Recording(unittest.TestCase):
  def test_picture(self):
    done = subprocess.run([sys.executable, "-B", ROOT / "perf/report/recording.py", PERF, *LOAD], capture_output=True, encoding="utf-8")
    self.assertEqual(done.returncode, GOOD, done.stderr)
    self.assertEqual(list(check_pictures.faults(done.stdout)), [])
    self.assertEqual(done.stdout.count('<g class="frame">'), 6)
    # Parts that do not change are in the recording once, the others in each frame.
    self.assertEqual(done.stdout.count(">cancelled<"), 1)
    self.assertEqual(len(re.findall(r">up \d+ s, figures", done.stdout)), 6)

  def test_failure(self):
    command = [sys.executable, "-B", ROOT / "perf/report/recording.py", PERF, "--loop"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    self.assertNotEqual(done.returncode, GOOD)
    self.assertEqual(done.stdout, "")
    self.assertIn("--loop", done.stderr)


if __name__ == "__main__":
  unittest.main(argv=[__file__])
