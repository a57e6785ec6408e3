# SPDX-License-Identifier: MIT
"""The checks that a mutant is put to: programs of the other suites, in builds of their own.

Each is (flavour, program, arguments). They run in the order of what they cost on the sources as
they are, which is measured first; there each has to pass. A mutant that changes nothing but an order
goes to what sees orders first.
"""
import os
import resource
import shutil
import signal
import subprocess
import time

from build import Model, Shared, machine_flags

# Judged by the clock of a machine that does nothing else; ten million operations. Of libraries beside, which
# have no mutants.
LEFT_OUT = ("backlog_real", "executor_glib", "executor_uv")
# Too slow under ThreadSanitizer for what they add there; limits of a system that it takes up itself; a
# stand-in for a function that it stands before too; children that make threads.
NOT_TSAN = (
    "operations", "bound", "memory", "steady", "allocation_failure", "defects", "fork_registration", "group_fork",
)
# In plain builds, and with ThreadSanitizer: stop's are mode, threads, seconds at most, seed, rounds;
# stats's are readings, seconds at most; stress's are threads, seconds, seed, limit; lanes' and loop's seconds, seed; reschedule's operations, seed, wheel, seconds at most; retry's and keyed's the same without wheel;
# periodic's operations, seed, executors, wheel, seconds at most; executor's operations, seed, policy, seconds at most.
RACES = [
    ("stop", ["schedule", "1", "4", "1", "300"], ["schedule", "1", "4", "1", "100"]),
    ("stop", ["first", "1", "4", "1", "400"], ["first", "1", "4", "1", "100"]),
    ("stop", ["start", "1", "4", "1", "400"], ["start", "1", "4", "1", "100"]),
    ("stop", ["cancel", "1", "4", "1", "10"], ["cancel", "1", "4", "1", "5"]),
    ("stop", ["schedule_many", "1", "4", "1", "300"], ["schedule_many", "1", "4", "1", "100"]),
    ("stop", ["cancel_many", "1", "4", "1", "10"], ["cancel_many", "1", "4", "1", "5"]),
    ("stats", ["44000", "2"], ["11000", "2"]),
    ("stress", ["2", "1", "1"], ["2", "1", "1"]),
    ("stress", ["4", "1", "7", "500"], ["4", "1", "7", "500"]),
    ("stress", ["80", "1", "3"], ["80", "1", "3"]),
    ("lanes", ["1", "1"], ["1", "1"]),
    ("loop", ["1", "1"], ["1", "1"]),
    ("reschedule", ["100000", "1", "0", "4"], ["20000", "1", "0", "4"]),
    ("reschedule", ["100000", "1", "1", "4"], ["20000", "1", "1", "4"]),
    ("retry", ["100000", "1", "4"], ["20000", "1", "4"]),
    ("keyed", ["50000", "1", "4"], ["10000", "1", "4"]),
    ("periodic", ["100000", "1", "0", "0", "4"], ["20000", "1", "0", "0", "4"]),
    ("periodic", ["100000", "1", "2", "1", "4"], ["20000", "1", "2", "1", "4"]),
    ("executor", ["50000", "1", "1", "4"], ["20000", "1", "1", "4"]),
    ("executor", ["50000", "1", "2", "4"], ["20000", "1", "2", "4"]),
]
TOO_LONG = "does not end"
ORDER_RULES = ("relaxed", "acquire", "release", "acq_rel")
SECONDS_LEAST = 15
SECONDS_FACTOR = 20
# What costs less than that runs before all that costs more, whatever it sees.
TIERS_S = (0.15, 1.0)


class Check:
    def __init__(self, flavour, program, arguments=()):
        self.flavour, self.program, self.arguments = flavour, program, list(arguments)
        self.cost_s = self.limit_s = 0.0

    @property
    def name(self):
        return " ".join([f"{self.flavour.name}/{self.program}", *self.arguments])

    def measure(self):
        """On the sources as they are. None, or what is wrong. Alone: it counts its children's time."""
        began, used = time.monotonic(), children_s()
        self.limit_s = 600
        wrong = self.run()
        took_s = time.monotonic() - began
        # Processor time, and a share of the sleep, so that a busy machine changes little.
        self.cost_s = children_s() - used + took_s / 8
        self.limit_s = max(SECONDS_LEAST, SECONDS_FACTOR * took_s)
        return wrong

    def confirms(self, folder, wrong):
        """
        Whether a failure is the mutant's: it comes again, and the sources as they are pass. A model check
        decides everything itself, so once is enough.
        """
        if self.flavour.name == "model" and wrong != TOO_LONG:
            return True
        again = self.run(folder)
        if again is None and wrong != TOO_LONG:
            again = self.run(folder)
        return again is not None and self.run() is None and self.run() is None

    def run(self, folder=None):
        """In a mutant's build, or as the sources are. None when it passes, else how it fails."""
        command, environment = self.flavour.command(folder, self.program, self.arguments)
        supp = self.flavour.root / "tests/tsan.supp"
        environment = {**os.environ, "TSAN_OPTIONS": f"halt_on_error=1:suppressions={supp}", **environment}
        process = subprocess.Popen(
            without_randomness() + command, cwd=folder or self.flavour.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=bound,
        )
        try:
            code = process.wait(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            code = None
        end_group(process)
        if code is None:
            return TOO_LONG
        return None if code in (0, 77) else f"exit code {code}"


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def without_randomness():
    """ThreadSanitizer of this age wants its addresses where a little randomness leaves them."""
    return ["setarch", "-R"] if shutil.which("setarch") else []


def bound():
    """No cores; no file that fills the disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))


def end_group(process):
    """The program and what it has forked."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def flavour_make(name, cc, root, folder):
    plain = ["-O2", "-fPIC", "-DTWI_TEST_POINTS", *machine_flags()]
    tsan = ["-O1", "-g", "-fPIC", "-fsanitize=thread", "-DTWI_TEST_POINTS", "-DTWI_RCU_BY_CALL", *machine_flags()]
    if name == "model":
        return Model(cc, root, folder)
    return Shared(name, cc, {"plain": plain, "tsan": tsan}[name], root, folder)


# Test programs by folder: what they are linked with besides the library. `test_` is not part of a name.
SUPPORT = ("support/fault.c", "support/fixture.c", "support/probe.c")
FRAME = ("standin/standin.c", "race/race.c", "race/cell.c", "race/dues.c", "mutants/points.c")
STAND = ("freeze/stand.c", "race/race.c", "race/cell.c")
PARTS = {
    "unit/test_*.c": SUPPORT + FRAME,
    "unit/test_callback_calls.c": SUPPORT + FRAME + ("unit/calls_layers.c", "unit/calls_process.c", "unit/calls_timeouts.c"),
    "contract/test_*.c": SUPPORT + FRAME,
    "regress/*.c": SUPPORT + FRAME,
    "wheel/test_*.c": ("wheel/fixture.c",) + FRAME,
    "regress/catch_up.c": ("wheel/fixture.c",) + FRAME,
    "regress/limbo.c": ("wheel/fixture.c",) + FRAME,
    "regress/fork_registration.c": FRAME[1:],
    "regress/cancelled_in_destroy.c": FRAME[1:3],
    "race/st*.c": FRAME[1:],
    "race/lanes.c": FRAME[1:],
    "race/loop.c": FRAME[1:],
    "race/reschedule.c": FRAME[1:],
    "race/retry.c": FRAME[1:],
    "race/keyed.c": FRAME[1:],
    "race/periodic.c": FRAME[1:],
    "race/executor.c": FRAME[1:],
    "freeze/*.c": STAND,
    "freeze/freeze.c": ("freeze/rows.c", "freeze/scene.c", "freeze/stand.c"),
    "freeze/keyed.c": STAND + ("freeze/layer.c",),
    "freeze/retry.c": STAND + ("freeze/layer.c",),
    "freeze/stats.c": STAND[1:],
    "freeze/transfer.c": STAND[1:],
}
# Parts of programs.
NO_PROGRAM = ("layer", "rows", "scene", "stand")
# The races have arguments, and stand in RACES.
WITH_ARGUMENTS = ("race-stop", "race-stress", "race-lanes", "race-loop", "race-reschedule", "race-retry", "race-keyed",
                  "race-periodic", "race-executor")


def programs_build(flavour, pool):
    """The test programs of a flavour; returns their names."""
    tests = flavour.root / "tests"
    programs = {}
    for pattern, parts in PARTS.items():
        for file in sorted(tests.glob(pattern)):
            name = file.stem.removeprefix("test_")
            left_out = LEFT_OUT + NO_PROGRAM + (NOT_TSAN if flavour.name == "tsan" else ())
            if name not in left_out:
                programs[f"{file.parent.name}-{name}"] = (file, parts)
    used = sorted({part for _, parts in programs.values() for part in parts})
    made = dict(zip(used, pool.map(flavour.part, [tests / part for part in used])))

    def build(name):
        file, parts = programs[name]
        flavour.program(name, [file], [made[part] for part in parts], f"-I{file.parent}", "-rdynamic")

    list(pool.map(build, programs))
    return [name for name in programs if name not in WITH_ARGUMENTS]


def checks_make(made, pool):
    """All checks, on built flavours."""
    checks = []
    if "model" in made:
        checks += [Check(made["model"], "model", [name]) for name in made["model"].harnesses()]
    for name in ("plain", "tsan"):
        if name not in made:
            continue
        flavour = made[name]
        checks += [Check(flavour, program) for program in programs_build(flavour, pool)]
        for program, plain, tsan in RACES:
            checks.append(Check(flavour, f"race-{program}", plain if name == "plain" else tsan))
    return checks


def order_for(mutant, checks):
    """By cost, in tiers. What sees orders goes first in a tier where only an order is another."""
    seers = ("model", "tsan", "plain") if mutant.rule in ORDER_RULES else ("model", "plain", "tsan")

    def key(check):
        tier = sum(check.cost_s > cost_s for cost_s in TIERS_S)
        return (tier, seers.index(check.flavour.name) if tier < len(TIERS_S) else 0, check.cost_s)

    return sorted(checks, key=key)
