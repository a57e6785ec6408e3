# SPDX-License-Identifier: MIT
"""Tests processes that share timers, while they are killed and stopped, and while their server and connections
fail.

Used by test_machines.py WORKER of each store. The environment variable TESTS_SHARED_ROUNDS sets the number
of rounds of faults (default: 2).

These properties must hold, whatever happens and however slow the machine is:

* each acknowledged timer has run, or its cancel was acknowledged;
* a timer whose cancel was certain (DONE, ABSORBED) never ran;
* a timer runs a second time only if the session of a run had ended in the middle of the run;
* a later run has a greater fence, or the same fence with a greater attempt; no run is early;
* if a run ends its timer in its own transaction, the run's effect is there exactly once.
"""
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from proxy import Proxy

WORKER = sys.argv[1]
ROUNDS = int(os.environ.get("TESTS_SHARED_ROUNDS", "2"))
PLACE = "tickwheel"
SESSION_MS = 2000
DONE, ABSORBED, PRESENT, RUNNING, ATTEMPTED, ABSENT, UNKNOWN = range(7)


class Worker:
    count = 0

    def __init__(self, address, log):
        Worker.count += 1
        self.log, self.name, self.stopped, self.messages = log, f"w{Worker.count}", False, log.with_suffix(".messages")
        with open(self.messages, "ab") as errors:
            self.process = subprocess.Popen([WORKER, address, PLACE, str(log), self.name, str(SESSION_MS)], stdin=subprocess.PIPE,
                                        stderr=errors, text=True)

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def signal(self, number):
        self.stopped = number == signal.SIGSTOP
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.say("close")
        code = self.process.wait(timeout=240)
        if code != 0:
            raise AssertionError(f"{self.name}: exit code {code}: {self.messages.read_text()[-1000:]}"
                                 f"{[line for line in self.log.read_text().splitlines() if ' state ' in line]}")


class History:
    """The events that the workers have logged, sorted by timer."""

    def __init__(self, path):
        self.acks, self.cancels, self.begins = {}, collections.defaultdict(set), collections.defaultdict(list)
        self.states, self.effects, self.sessions = collections.Counter(), [], {}
        for line in path.read_text(encoding="ascii").splitlines():
            name, what, *rest = line.split()
            if what == "ack":
                self.acks[rest[0]] = int(rest[1])
            elif what == "cancelled" or (what == "cancel" and int(rest[1]) == ABSORBED):
                # A cancel of a timer that was never written (ABSORBED) is not acknowledged later.
                self.cancels[rest[0]].add(int(rest[1]))
            elif what == "begin":
                self.begins[rest[0]].append((name, int(rest[1]), int(rest[2]), int(rest[3])))
            elif what == "effect":
                self.effects.append((rest[0], int(rest[1])))
            elif what == "sessions":
                self.sessions[name] = int(rest[0])
            elif what == "state":
                self.states[int(rest[0])] += 1

    def ended(self, id):
        """Returns whether the timer may be gone although it did not run, or although its run did not end."""
        return bool(self.cancels[id] & {DONE, ATTEMPTED, UNKNOWN})


class Machines:
    """The tests of one kind of store. A subclass for each kind adds: server_start(), socket(folder),
    address(folder), is_batch(data), schedule_by_others(), drained(), session_is_over(name), effects(), and
    reaped(history), which returns how often a session ended in the middle of a run, for each timer.
    """

    has_effects = False

    def effects(self):
        return collections.Counter()

    def schedule_by_others(self):
        pass

    def server_kill(self):
        self.server.kill()

    def must_keep(self, what, id):
        """Returns whether the server must have kept a fact: that a timer was stored ("timer"), or was cancelled
        ("cancel").
        """
        return True

    def setUp(self):
        self.server = self.server_start()
        self.addCleanup(self.server.end)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="twpx", dir="/tmp"))
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", str(self.folder)], check=True))
        self.log = self.folder / "log"
        self.log.touch()
        self.proxy = Proxy(self.socket(self.server.folder), self.is_batch).start(self.socket(self.folder))
        self.addCleanup(self.proxy.end)
        self.workers = []
        self.addCleanup(lambda: [worker.kill() for worker in self.workers if worker.process.poll() is None])
        self.random = random.Random(int(os.environ.get("TESTS_SEED", "1")))
        self.by_others, self.lost = [], []

    def worker(self, proxied=False):
        worker = Worker(self.address(self.folder if proxied else self.server.folder), self.log)
        self.workers.append(worker)
        return worker

    def lines(self):
        return self.log.read_text(encoding="ascii")

    def wait(self, what, holds):
        end = time.monotonic() + 240
        while not holds():
            self.assertLess(time.monotonic(), end, f"{what}: {self.lines()[-500:]}")
            time.sleep(0.02)

    def wait_open(self, *workers):
        for worker in workers:
            self.wait("open", lambda worker=worker: f"{worker.name} open\n" in self.lines())

    def cancel_some(self, count):
        """Cancels timers from any process. They are timers whose schedule was acknowledged, or timers of
        schedule_by_others().
        """
        known = [line.split()[2] for line in self.lines().splitlines() if " ack " in line] + self.by_others
        live = [worker for worker in self.workers if worker.process.poll() is None and not worker.stopped]
        for id in self.random.sample(known, min(count, len(known))):
            self.random.choice(live).say(f"cancel {id}")

    def end(self):
        """Lets all remaining timers run, then checks the log."""
        live = [worker for worker in self.workers if worker.process.poll() is None]
        # Timers that were staged while a process had no connection are not in the table yet. The flush puts
        # them there.
        for worker in live:
            worker.say("flush")
        for worker in live:
            self.wait("flush", lambda worker=worker: f"{worker.name} flushed 0\n" in self.lines())
        self.wait("all timers end", self.drained)
        for worker in live:
            worker.close()
        self.judge(History(self.log))

    def judge(self, history):
        reaped, effects = self.reaped(history), self.effects()
        kept = [id for id, outcome in history.acks.items() if outcome == DONE] + self.by_others
        kinds = {id for id, _ in history.effects}
        for id in kept:
            if id not in history.begins and not history.ended(id):
                self.lost.append(("timer", id))
        for id, outcomes in history.cancels.items():
            if outcomes & {DONE, ABSORBED} and id in history.begins:
                self.lost.append(("cancel", id))
        self.assertEqual([one for one in self.lost if self.must_keep(*one)], [])
        for id, runs in history.begins.items():
            again = sum(1 for each, code in history.effects if each == id and code != 0)
            self.assertLessEqual(len(runs) - 1, reaped[id] + again, f"{id} ran {runs}, reaped {reaped[id]}")
            order = [(fence, attempt) for _, attempt, fence, _ in runs]
            self.assertEqual(order, sorted(order), f"{id}: fences fall")
            self.assertTrue(all(late >= 0 for *_, late in runs), f"{id} was early: {runs}")
        for id, count in effects.items():
            self.assertEqual(count, 1, f"{id} has {count} effects")
        self.assertEqual([id for id in kinds.intersection(kept) if effects[id] != 1 and not history.ended(id)], [])
        print(f"# {self.id().split('.')[-1]}: {len(kept)} kept, {len(self.lost)} lost, {len(history.begins)} ran, "
              f"{sum(len(runs) - 1 for runs in history.begins.values())} again, {sum(1 for outcomes in history.cancels.values() if outcomes)} cancelled, "
              f"{sum(reaped.values())} sessions ended in a run, states {dict(history.states)}", flush=True)

    def load(self):
        for worker in self.workers:
            if worker.process.poll() is None and not worker.stopped:
                worker.say("schedule 150 job 3000")
                if self.has_effects:
                    worker.say("schedule 30 effect 3000")
        self.schedule_by_others()

    def some_time(self):
        """Sleeps long enough for timers to reach each state. No check depends on it."""
        time.sleep(self.random.uniform(0.2, 0.8))
        self.cancel_some(40)
        time.sleep(self.random.uniform(0.2, 0.8))

    def test_without_a_fault(self):
        self.wait_open(self.worker(), self.worker())
        for _ in range(ROUNDS):
            self.load()
            self.some_time()
        self.end()

    def test_processes_are_killed(self):
        self.wait_open(self.worker(), self.worker(), self.worker())
        for _ in range(ROUNDS):
            self.load()
            self.some_time()
            victim = self.random.choice([worker for worker in self.workers if worker.process.poll() is None])
            victim.kill()
            self.wait_open(self.worker())
        self.end()

    def test_processes_stand_still(self):
        self.wait_open(self.worker(), self.worker())
        for _ in range(ROUNDS):
            self.load()
            self.some_time()
            victim = self.random.choice(self.workers)
            victim.signal(signal.SIGSTOP)
            self.load()
            # Waits until the server says that the session has ended.
            self.wait("the session ends", lambda victim=victim: self.session_is_over(victim.name))
            victim.signal(signal.SIGCONT)
            self.some_time()
        self.end()

    def test_the_server_is_killed(self):
        self.wait_open(self.worker(), self.worker())
        for _ in range(ROUNDS):
            self.load()
            self.some_time()
            self.server_kill()
            time.sleep(self.random.uniform(0, 1))
            for worker in self.workers:
                worker.say("schedule 50 job 1000")
            self.server.start()
            self.some_time()
        self.end()

    def test_replies_are_lost(self):
        self.wait_open(self.worker(proxied=True), self.worker(proxied=True), self.worker())
        for _ in range(ROUNDS):
            for _ in range(4):
                self.load()
                self.proxy.lose += 3
                self.some_time()
        self.assertGreater(self.proxy.lost, 0)
        self.end()

    def test_connections_are_cut(self):
        cut = self.worker(proxied=True)
        self.wait_open(cut, self.worker())
        for i in range(ROUNDS):
            self.load()
            self.some_time()
            self.proxy.cut(shut=True)
            cut.say("schedule 50 job 1000")
            if i % 2 == 1:
                self.wait("the session ends", lambda: self.session_is_over(cut.name))
            self.proxy.open()
            self.some_time()
        self.end()
