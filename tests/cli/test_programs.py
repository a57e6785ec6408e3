#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests a peer engine that is a program of its own: what it reports to the harness (perf/peer/external.c).

usage: test_programs.py PROGRAM [WORD…]
"""
import subprocess
import sys
import unittest

PROGRAM = sys.argv[1:]
OPS, PRODUCERS, LIVE = 301, 2, 51
KEYS = {"version", "ns_per_op", "cpu_ns_per_op", "scheduled", "expired", "cancelled", "unexpired"}
NOTHING = (0, 0)


def run(*words):
  return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=60, check=False)


def share(total, index):
  return total // PRODUCERS + (index < total % PRODUCERS)


def ids(*totals, skip=0):
  """Returns how many ids the producers use for `totals` timeouts, and the sum of these ids. Each producer has a
  range of ids of its own. The first `skip` timeouts do not count. Of each number a producer has its share.
  """
  chosen = []
  for index in range(PRODUCERS):
    first = (index << 40) + 1
    chosen += range(first + share(skip, index), first + sum(share(total, index) for total in totals))
  return len(chosen), sum(chosen) % 2**64


class Told:
  def __init__(self, text):
    lines = text.splitlines()
    assert lines[-1] == "end", text
    pairs = [line.split(" ", 1) for line in lines[:-1]]
    self.values = {key: value for key, value in pairs if key != "lateness"}
    self.lateness = [tuple(map(int, value.split())) for key, value in pairs if key == "lateness"]

  def tally(self, key):
    return tuple(map(int, self.values[key].split()))


class Program(unittest.TestCase):
  def told(self, workload):
    result = run(workload, f"ops={OPS}", f"producers={PRODUCERS}", f"live={LIVE}", "seed=0", "warm=0")
    self.assertEqual(result.returncode, 0, result.stderr)
    told = Told(result.stdout)
    self.assertEqual(set(told.values), KEYS)
    self.assertTrue(told.values["version"])
    self.assertGreater(float(told.values["ns_per_op"]), 0)
    self.assertGreaterEqual(float(told.values["cpu_ns_per_op"]), 0)
    return told

  def check_account(self, told, **ends):
    for key in ("scheduled", "expired", "cancelled", "unexpired"):
      self.assertEqual(told.tally(key), ends.get(key, NOTHING), key)

  def test_schedule_cancel(self):
    self.check_account(self.told("schedule-cancel"), scheduled=ids(OPS), cancelled=ids(OPS))

  def test_live_ring_begins_with_what_lives_and_ends_with_as_many(self):
    self.check_account(
      self.told("live-ring"), scheduled=ids(OPS, LIVE), cancelled=ids(OPS), unexpired=ids(OPS, LIVE, skip=OPS)
    )

  def test_fire_takes_the_lateness_of_every_eighth(self):
    told = self.told("fire")
    eighth = sum(1 for index in range(PRODUCERS) for i in range(share(OPS, index)) if (i + 1) % 8 == 0)
    self.check_account(told, scheduled=ids(OPS), expired=ids(OPS))
    self.assertEqual(sum(count for _, count in told.lateness), eighth)

  def test_light_takes_the_lateness_of_all(self):
    told = self.told("light")
    self.check_account(told, scheduled=ids(OPS), expired=ids(OPS))
    self.assertEqual(sum(count for _, count in told.lateness), OPS)
    # The lateness must be in nanoseconds, because the program does not sleep for a second.
    self.assertLess(sorted(value for value, _ in told.lateness)[0], 10**9)

  def test_what_it_does_not_understand_is_an_error(self):
    for words in ((), ("nothing",), ("fire", "ops"), ("fire", "ops=0"), ("fire", "ops=x"), ("fire", "sheep=1")):
      with self.subTest(words=words):
        result = run(*words)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
