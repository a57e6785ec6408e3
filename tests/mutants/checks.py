# SPDX-License-Identifier: MIT
"""The checks that a mutant must face: programs of the other suites, built for each flavour.

Each is (flavour, program, arguments). Each must pass on the unchanged sources. There it is timed, and the
functions that it executes are recorded.
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from build import INCLUDE, BuildError, Model, Shared, hash_of, machine_flags, searched
from coverage import MAP_BYTES, places_read
from verdicts import verdict_of

# These checks depend on the speed of an idle machine.
LEFT_OUT = ("backlog_real",)
# These programs do not run under ThreadSanitizer. Some are too slow with it, or limit the system so much that
# it cannot run. Some replace a function that it replaces too. Others have children that create threads, or use
# locks that it does not see.
NOT_TSAN = (
    "operations", "bound", "memory", "steady", "allocation_failure", "defects", "fork_registration", "group_fork",
    "executor_glib", "fork", "fork_creates", "oracle", "reinit_wall", "reopen", "sample", "soak",
)
# Each program with its arguments in plain builds, then with ThreadSanitizer (None: not there). The arguments
# are:
#   stop: mode, threads, seconds at most, seed, rounds
#   stats: readings, seconds at most
#   handle: operations, seed, threads, seconds at most
#   stress: threads, seconds, seed, limit
#   lanes, loop: seconds, seed
#   reschedule: operations, seed, wheel, seconds at most
#   retry, keyed: operations, seed, seconds at most
#   periodic: operations, seed, executors, wheel, seconds at most
#   executor: operations, seed, policy, seconds at most
#   fork: forks, seed, wheel, seconds at most
#   fork_creates: forks, seed, handlers, seconds at most
#   oracle: first seed, how many
#   soak: seconds, seed
ARGUMENTS = [
    ("race-stop", ["schedule", "1", "4", "1", "300"], ["schedule", "1", "4", "1", "100"]),
    ("race-stop", ["first", "1", "4", "1", "400"], ["first", "1", "4", "1", "100"]),
    ("race-stop", ["start", "1", "4", "1", "400"], ["start", "1", "4", "1", "100"]),
    ("race-stop", ["cancel", "1", "4", "1", "10"], ["cancel", "1", "4", "1", "5"]),
    ("race-stop", ["schedule_many", "1", "4", "1", "300"], ["schedule_many", "1", "4", "1", "100"]),
    ("race-stop", ["cancel_many", "1", "4", "1", "10"], ["cancel_many", "1", "4", "1", "5"]),
    ("race-stats", ["44000", "2"], ["11000", "2"]),
    ("race-handle", ["50000", "1", "2", "3"], ["10000", "1", "2", "3"]),
    ("race-stress", ["2", "1", "1"], ["2", "1", "1"]),
    ("race-stress", ["4", "1", "7", "500"], ["4", "1", "7", "500"]),
    ("race-stress", ["80", "1", "3"], ["80", "1", "3"]),
    ("race-lanes", ["1", "1"], ["1", "1"]),
    ("race-brackets", ["1", "1"], ["1", "1"]),
    ("race-loop", ["1", "1"], ["1", "1"]),
    ("race-reschedule", ["100000", "1", "0", "4"], ["20000", "1", "0", "4"]),
    ("race-reschedule", ["100000", "1", "1", "4"], ["20000", "1", "1", "4"]),
    ("race-retry", ["100000", "1", "4"], ["20000", "1", "4"]),
    ("race-keyed", ["50000", "1", "4"], ["10000", "1", "4"]),
    ("race-periodic", ["100000", "1", "0", "0", "4"], ["20000", "1", "0", "0", "4"]),
    ("race-periodic", ["100000", "1", "2", "1", "4"], ["20000", "1", "2", "1", "4"]),
    ("race-executor", ["50000", "1", "1", "4"], ["20000", "1", "1", "4"]),
    ("race-executor", ["50000", "1", "2", "4"], ["20000", "1", "2", "4"]),
    ("race-dues_glib", ["50000", "1", "1", "4"], None),
    ("race-dues_glib", ["50000", "1", "2", "4"], None),
    ("race-dues_uv", ["50000", "1", "1", "4"], None),
    ("race-dues_uv", ["50000", "1", "2", "4"], None),
    ("race-group", ["50000", "1", "4"], ["20000", "1", "4"]),
    ("race-scaled", ["50000", "1", "4"], ["20000", "1", "4"]),
    ("race-scope", ["50000", "1", "4"], ["20000", "1", "4"]),
    ("race-fork", ["60", "1", "0", "4"], None),
    ("race-fork", ["60", "1", "1", "4"], None),
    ("race-fork_creates", ["60", "1", "0", "4"], None),
    ("oracle-oracle", ["seeds", "1", "400"], None),
    ("faults-reopen", ["{library}", "60"], None),
    ("soak-soak", ["6", "1"], None),

]
SECONDS_LEAST = 15
SECONDS_FACTOR = 20
OUTPUT_BYTES = 1 << 18
COMMENT = re.compile(r"/\*.*?\*/", re.S)


class Check:
    def __init__(self, flavour, program, arguments, key, first=()):
        self.flavour, self.program, self.arguments, self.first = flavour, program, list(arguments), list(first)
        self.name = " ".join([f"{flavour.name}/{program}", *self.arguments])
        # The hash of everything that decides its result: the sources of the check, without comments.
        self.key = hash_of(flavour.name, *self.arguments, key)
        self.cost_s, self.limit_s = 1.0, 600.0
        # How often it passed on the unchanged sources in this run, and whether it ever failed there.
        self.passes, self.failed = 0, False

    def measured(self, took_s, used_s):
        # Processor time counts fully, waiting time only in part. So a busy machine changes the cost little.
        self.cost_s = used_s + took_s / 8
        self.limit_s = max(SECONDS_LEAST, SECONDS_FACTOR * took_s)

    def measure(self):
        """Runs the check on the unchanged sources. Returns (verdict, seconds, seconds of processor time)."""
        began = time.monotonic()
        verdict, used_s = self.run_command(*self.flavour.command(None, self.program, self.arguments), self.flavour.folder)
        return verdict, time.monotonic() - began, used_s

    def cover(self):
        """Returns the places that the check executes."""
        with tempfile.NamedTemporaryFile(dir=self.flavour.folder, suffix=".cover") as file:
            file.truncate(MAP_BYTES)
            command, environment = self.flavour.cover_command(self.program, self.arguments)
            verdict, _ = self.run_command(command, {**environment, "MUTANTS_COVER": file.name}, self.flavour.folder)
            # A harness that ends early would not be tried on mutants of the lines that it did not reach in this
            # run.
            if self.flavour.name == "model" and verdict is not None:
                raise BuildError(f"{self.name} fails while its lines are recorded: {verdict}")
            return places_read(Path(file.name))

    def confirms(self, folder, verdict):
        """Returns the verdict if the mutant causes the failure: it fails again, and the unchanged sources pass.
        A model check is deterministic, so one run of each is enough.
        """
        if self.flavour.name == "model":
            return verdict if self.passes_unchanged(1) else None
        again = self.run(folder)
        if again is None and verdict.kind != "hang":
            again = self.run(folder)
        if again is None or not self.passes_unchanged(3):
            return None
        return again if verdict.kind == "hang" else verdict

    def passes_unchanged(self, enough):
        """Whether the unchanged sources pass. `enough` passes in this run are enough for all mutants. After a
        failure, two passes are asked for each mutant again.
        """
        runs = 2 if self.failed else max(enough - self.passes, 0)
        for _ in range(runs):
            if self.run() is not None:
                self.failed = True
                return False
            self.passes += 1
        return True

    def run(self, folder=None):
        """Runs the check on a mutant's build, or on the unchanged sources. Returns None if it passes, else the
        verdict.
        """
        command, environment = self.flavour.command(folder, self.program, self.arguments)
        return self.run_command(command, environment, folder or self.flavour.folder)[0]

    def run_command(self, command, environment, folder):
        supp = self.flavour.root / "tests/tsan.supp"
        alarm_s = max(5, int(self.limit_s / 3))
        environment = {
            **os.environ,
            "TSAN_OPTIONS": f"halt_on_error=1:suppressions={supp}",
            "TESTS_ALARM_S": str(alarm_s),
            **{name: str(value) for name, value in environment.items()},
        }
        with tempfile.TemporaryFile(dir=folder) as said:
            process = subprocess.Popen(
                without_randomness() + self.first + command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said,
                stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=bound,
            )
            code, used_s = await_end(process, self.limit_s)
            said.seek(0)
            text = said.read(OUTPUT_BYTES).decode(errors="replace").replace(f"{self.flavour.root}/", "")
        return verdict_of(code, text, self.flavour.name == "model"), used_s


def await_end(process, limit_s):
    """Returns (exit code, or None if it was ended; seconds of processor time)."""
    late = threading.Event()

    def end():
        late.set()
        end_group(process.pid)

    timer = threading.Timer(limit_s, end)
    timer.start()
    _, status, used = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    end_group(process.pid)
    return None if late.is_set() else process.returncode, used.ru_utime + used.ru_stime


def end_group(group):
    """Kills the program and its children."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def without_randomness():
    """This version of ThreadSanitizer needs fixed address ranges, which full address randomisation may take. So
    switch that off.
    """
    return ["setarch", "-R"] if shutil.which("setarch") else []


def bound():
    """Permits no core files, and no file that fills the disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))


def flavour_make(name, cc, root, folder):
    plain = ["-O2", "-fPIC", "-DTWI_TEST_POINTS", *machine_flags()]
    # Has line numbers, because ThreadSanitizer's suppressions need them to find inlined functions.
    tsan = ["-O1", "-g1", "-fPIC", "-fsanitize=thread", "-DTWI_TEST_POINTS", "-DTESTS_THREAD_SANITIZER", *machine_flags()]
    if name == "model":
        return Model(cc, root, folder)
    return Shared(name, cc, {"plain": plain, "tsan": tsan}[name], root, folder)


# For the test programs of a folder: what each is linked with besides the library. A name leaves out `test_`.
BOOKS = ("race/harness/account.c", "mutants/books.c")
SUPPORT = ("support/fault.c", "support/fixture.c", "support/probe.c")
FRAME = ("standin/standin.c", "race/harness/race.c", "race/harness/cell.c", "race/harness/dues.c", "mutants/points.c")
STAND = ("freeze/stand/stand.c", "race/harness/race.c", "race/harness/cell.c")
PARTS = {
    "unit/*/test_*.c": SUPPORT + FRAME,
    "internal/**/test_*.c": SUPPORT + FRAME,
    "unit/callback/test_callback_calls.c": SUPPORT
    + FRAME
    + ("unit/callback/calls_layers.c", "unit/callback/calls_process.c", "unit/callback/calls_timeouts.c"),
    "contract/test_*.c": SUPPORT + FRAME,
    "regress/*.c": SUPPORT + FRAME,
    "wheel/test_*.c": ("wheel/fixture.c",) + FRAME,
    "regress/catch_up.c": ("wheel/fixture.c",) + FRAME,
    "regress/limbo.c": ("wheel/fixture.c",) + FRAME,
    "regress/fork_registration.c": FRAME[1:],
    "regress/cancelled_in_destroy.c": FRAME[1:3],
    "regress/keyed_destroy.c": FRAME[1:3],
    "race/*.c": FRAME[1:],
    "race/layers/*.c": FRAME[1:],
    # The race of executors, with the executors of these libraries.
    "race/harness/dues_glib.c": ("race/executor.c",) + FRAME[1:3] + FRAME[4:],
    "race/harness/dues_uv.c": ("race/executor.c",) + FRAME[1:3] + FRAME[4:],
    "freeze/*.c": STAND,
    "freeze/freeze.c": ("freeze/stand/rows.c", "freeze/stand/scene.c", "freeze/stand/stand.c"),
    "freeze/keyed.c": STAND + ("freeze/stand/layer.c",),
    "freeze/retry.c": STAND + ("freeze/stand/layer.c",),
    "freeze/stats.c": STAND[1:],
    "freeze/transfer.c": STAND[1:],
    "oracle/oracle.c": ("support/fault.c", "mutants/points.c"),
    "print/sample.c": ("mutants/points.c",),
    "faults/unload/reopen.c": ("race/harness/race.c", "mutants/points.c"),
    "soak/soak.c": ("soak/crowd.c", "soak/engines.c", "soak/items.c", "soak/seats.c", "soak/slope.c", "../perf/harness/histogram.c") + FRAME[1:],
}
# Files that are only parts of programs.
NO_PROGRAM = ("layer", "rows", "scene", "stand", "account", "cell", "delays", "dues", "race")
# These open the library themselves.
NOT_LINKED = ("faults-reopen",)
# These keep blocks that no engine has, or their ids are used up and blocks are set aside, or their children inherit
# engines that another thread of the parent was making. So their account does not balance.
NOT_BOOKED = ("faults-reopen", "race-fork_creates", "internal-id_wrap", "internal-inside", "regress-catch_up", "regress-limbo")


class Programs:
    """The test programs of a flavour."""

    def __init__(self, flavour):
        self.flavour = flavour
        self.tests = flavour.root / "tests"
        self.parts = {}
        self.layers = {}
        for pattern, parts in PARTS.items():
            for file in sorted(self.tests.glob(pattern)):
                self.add(file, parts)

    def add(self, file, parts):
        stem = file.stem.removeprefix("test_")
        room = file.relative_to(self.tests).parts[0]
        name = f"{room}-{stem}"
        layers = re.findall(r"#include <tickwheel/(glib|uv)\.h>", file.read_text())
        left_out = LEFT_OUT + NO_PROGRAM + (NOT_TSAN if self.flavour.name == "tsan" else ())
        # If `unit` and `race` both have a program of this name, only the one of `unit` is taken.
        if stem in left_out and not (stem == "fork" and room == "unit"):
            return
        if any(layer not in self.flavour.layers for layer in layers):
            return
        more = BOOKS if self.booked(name) else ()
        if file.parent.name == "oracle":
            more += tuple(f"oracle/{f.name}" for f in sorted(file.parent.glob("*.c")) if f != file)
        self.parts[name] = [file, *(self.tests / part for part in parts + more)]
        self.layers[name] = layers

    def booked(self, name):
        return name not in NOT_BOOKED and not name.startswith("wheel-")

    def build(self, pool):
        used = sorted({part for parts in self.parts.values() for part in parts})
        made = dict(zip(used, pool.map(self.flavour.part, used)))

        def build(name):
            parts = [made[part] for part in self.parts[name]]
            self.flavour.program(name, parts, self.layers[name], name not in NOT_LINKED, self.booked(name))

        list(pool.map(build, self.parts))

    def key(self, name):
        """Returns the hash of a program's sources and of the test files that they include."""
        found, left = set(), list(self.parts[name])
        while left:
            file = left.pop()
            if file in found:
                continue
            found.add(file)
            for other in INCLUDE.findall(file.read_text()):
                folders = (file.parent, *searched(self.tests))
                left += [(f / other).resolve() for f in folders if (f / other).exists()][:1]
        return sources_key(sorted(found))


def sources_key(files):
    return hash_of(*(" ".join(COMMENT.sub(" ", file.read_text()).split()) for file in files))


def model_checks(flavour):
    frame = sorted([*(flavour.model / "runtime").rglob("*.[ch]"), flavour.model / "world.c", *flavour.model.glob("*.h")])
    frame_key = sources_key(frame)
    keys = {}
    for name, file in flavour.harnesses().items():
        if file not in keys:
            keys[file] = sources_key([file] if file else [])
        yield Check(flavour, "model", [name], frame_key + keys[file])


def program_checks(flavour, programs):
    listed = {name for name, _, _ in ARGUMENTS}
    for name in programs.parts:
        if name == "print-sample":
            script = programs.tests / "print/check_print.py"
            # Leaves out the sets of durable timers.
            yield Check(flavour, name, ["-"], programs.key(name) + sources_key([script]), [sys.executable, script])
        elif name not in listed:
            yield Check(flavour, name, [], programs.key(name))
    for name, plain, tsan in ARGUMENTS:
        arguments = plain if flavour.name == "plain" else tsan
        if name in programs.parts and arguments is not None:
            yield Check(flavour, name, arguments, programs.key(name))


def checks_of(flavour):
    """Returns all checks of a flavour. It need not be built, except for the model."""
    return list(model_checks(flavour)) if flavour.name == "model" else list(program_checks(flavour, Programs(flavour)))
