#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in copies of src/. The oracle must find each one, make a small sequence that shows it, and
fail again when it replays that sequence.

usage: planted.py SOURCE_ROOT C_COMPILER... -- [NAME...]

       planted.py SOURCE_ROOT --fit

Prints which defects were found, and the length of each sequence. Exit code 0: all were found. With --fit it
only checks that the code of each defect occurs once in src. So it reports if a change of src makes a defect
useless.
"""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mutants"))
from planting import fit, plant  # noqa: E402

SEEDS = 3000
PARALLEL = 2

# Name, file, the code to replace, the defect that replaces it.
PLANTED = [
    ("due a tick too late", "wheel/filing.c", "return twi_due_tick(since_ns, wheel->tick_ns);",
     "return twi_due_tick(since_ns, wheel->tick_ns) + 1;"),
    ("due a tick too early", "base/tick.h", "return since_ns / tick_ns + 1;",
     "return since_ns / tick_ns + (since_ns % tick_ns != 0);"),
    ("a delay wraps", "base/tick.h", "__builtin_add_overflow(now_ns, delay_ns, &sum_ns) ? INT64_MAX : sum_ns",
     "(int64_t)((uint64_t)now_ns + (uint64_t)delay_ns)"),
    ("one slot too many is visited", "wheel/hashed.c", "(self->slots - 1)) >= count)", "(self->slots - 1)) > count)"),
    ("a slot's own tick is passed over", "wheel/hashed.c", "if (slot->earliest > limit)", "if (slot->earliest >= limit)"),
    ("a batch runs backwards", "expiry/expire.c", "worker->due[worker->due_at++]);\n\twhile",
     "worker->due[--worker->due_count]);\n\twhile"),
    ("no horizon while catching up", "wheel/hashed.c", "\tself->wheel.horizon = limit;\n", ""),
    ("the bitmap keeps an empty slot", "wheel/hashed.c",
     "\tif (twi_slot_empty(&self->slot[number]))\n\t\ttwi_bitmap_clear(self->occupied, number);\n}\n\n/* Returns the first",
     "}\n\n/* Returns the first"),
    ("a slot forgets its earliest", "wheel/slot.c", "if (due_tick < slot->earliest)", "if (slot->earliest == UINT64_MAX)"),
    ("a hole is filled and nobody told", "wheel/slot.c", "->place = twi_place_of(chunk, number);",
     "->place = twi_place_of(last, last_number);"),
    ("what fills a hole is not looked at", "wheel/slot.c", "\t\t\tif (!set_remove(slot, pool, chunk, &set))\n\t\t\t\tcontinue;",
     "\t\t\tif (!set_remove(slot, pool, chunk, &set)) {\n\t\t\t}"),
    ("half a due tick is enough", "wheel/slot.c", "TWI_UNLIKELY(deadline_ns >= scan->before_ns)", "false"),
    ("a far one is forgotten", "wheel/slot.c", "\tif (due_tick < scan->earliest)\n\t\tscan->earliest = due_tick;\n", "\t(void)due_tick;\n"),
    ("an unslotted one is lost", "wheel/wheel.c", "\t\t\tmemory = false;\n\t\t\ttwi_list_add(&wheel->unslotted_seen, node);", "\t\t\tmemory = false;"),
    ("a list is linked wrongly", "wheel/wheel.c", "\t\tnext->place = node->place;\n", "\t\t(void)0;\n"),
    ("overdue ones go into a slot", "wheel/filing.c", "due_tick > wheel->horizon", "due_tick >= wheel->now"),
    ("a batch is taken for all", "ingress/lanes.c", "\t\t*left |= TWI_LEFT_MORE;\n", ""),
    ("the limit is not given back by cancel", "api/cancel.c",
     "\t\ttwi_limit_give(worker);\n\t/*\n\t * If the timeout was in a ring", "\t\t(void)worker;\n\t/*\n\t * If the timeout was in a ring"),
    ("the limit's place is passed on twice", "expiry/limit.c",
     "\t\trun->marks &= (uint8_t)~TWI_RUN_OWNS_SLOT;\n", ""),
    ("the remaining time counts from the start", "turn/finish.c", "deadline_ns - twi_clock_now_ns(worker->clock)",
     "deadline_ns - worker->wheel->epoch_ns"),
    ("stop forgets the batch under way", "expiry/expire.c",
     "\t\t\ttwi_worker_due_put_back(worker);\n", "\t\t\tworker->due_at = worker->due_count;\n"),
    ("a due runs twice", "expiry/due.c", "||\n\t\t    twi_word_state(word) != TWI_WORD_DUE)\n\t\t\treturn claim_rejected(due, word);\n\t\tTWI_TEST_POINT(\"due:seen\")",
     "||\n\t\t    twi_word_state(word) == TWI_WORD_INIT)\n\t\t\treturn claim_rejected(due, word);\n\t\tTWI_TEST_POINT(\"due:seen\")"),
    ("a cancelled one expires", "expiry/expire.c",
     "\t\tif (twi_word_state(word) != TWI_WORD_WHEELED &&\n\t\t    twi_word_state(word) != TWI_WORD_OWNED)\n\t\t\treturn false;\n", ""),
    ("a generation comes again", "timeout/word.h", "return twi_word_generation(word) + TWI_WORD_GENERATION;",
     "return (word & ~(16 * TWI_WORD_GENERATION - 1)) + TWI_WORD_GENERATION;"),
    ("hand-back without its finaliser", "turn/finish.c", "if (run->kind->finaliser != NULL)", "if (false)"),
    ("rescheduled earlier, it is left where it was", "ingress/reclaim.c",
     "\ttwi_wheel_remove(worker->wheel, node);\n\ttwi_wheel_insert(worker->wheel, node);\n}", "}"),
    ("rescheduled later, it expires at the old time", "expiry/expire.c",
     "if (TWI_UNLIKELY(deadline_ns >= worker->due_before_ns)) {", "if (false) {"),
    ("rescheduled in a callback, it is left where it was", "turn/direct.h",
     "\t\ttwi_wheel_remove(worker->wheel, node);\n\t\ttwi_direct_put(worker, node, deadline_ns);\n", ""),
    ("a loop is not told what is overdue", "turn/timer.c", "\tif (twi_wheel_owes(worker->wheel))\n\t\treturn 0;\n", ""),
    ("a poll overruns its budget", "expiry/expire.c",
     "TWI_LIKELY(twi_load_relaxed(&worker->expired_count) < worker->expire_stop)",
     "TWI_LIKELY(twi_load_relaxed(&worker->expired_count) <= worker->expire_stop)"),
    ("a negative deadline is kept", "api/schedule.c", "deadline_ns < 0 ? TWI_LONG_PAST_NS : deadline_ns", "deadline_ns"),
    ("a batch gives back one place of the limit", "api/cancel_many.c", "twi_limit_give_many(sweep->worker, count)",
     "twi_limit_give_many(sweep->worker, 1)"),
    ("a batch runs one finaliser of many", "api/cancel_many.c", "\t\tif (sweep->finaliser != NULL)\n\t\t\tbreak;\n", ""),
    ("a rejected item keeps a handle", "api/schedule_many.c", "\t\tbatch->ret_handle[batch->at] = (struct tw_handle){0};", "\t\t(void)0;"),
]


def pkg_config(what):
    command = ["pkg-config", what, "liburcu-cds", "ck"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def sources_of(tree):
    """Returns the sources of the library itself, without the executors and the durable part."""
    return sorted(path for path in tree.rglob("*.c") if path.parent.name != "executors" and "durable" not in path.parts)


class Builder:
    """Builds the oracle with a defect. Compiles only the sources that the defect changes. All other objects
    come from one build of the unchanged sources.
    """

    def __init__(self, root, compiler, folder):
        self.root, self.compiler, self.folder = root, compiler, folder
        self.flags = ["-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-fexceptions", "-mcx16", "-mprfchw", "-pthread", "-w",
                      *pkg_config("--cflags")]
        self.includes = [f"-I{root}/{name}" for name in ("include", "tests/oracle", "tests/support")]
        self.tests = [*sorted((root / "tests/oracle").glob("*.c")), root / "tests/support/fault.c"]
        self.test_objects = self.compile(self.tests, root / "src", folder)
        self.objects = self.compile(sources_of(root / "src"), root / "src", folder)

    def compile(self, sources, tree, folder):
        objects = {source: folder / f"{source.parent.name}-{source.stem}.o" for source in sources}
        for source, target in objects.items():
            subprocess.run([*self.compiler, *self.flags, *self.includes, f"-I{tree}", "-c", str(source), "-o", str(target)],
                           check=True)
        return objects

    def program(self, tree, file, scratch):
        if file.endswith(".h"):
            objects = self.compile(sources_of(tree), tree, scratch)
        else:
            objects = {**self.objects, self.root / "src" / file: self.compile([tree / file], tree, scratch)[tree / file]}
        program = scratch / "oracle"
        subprocess.run([*self.compiler, *self.flags, *map(str, self.test_objects.values()), *map(str, objects.values()),
                        "-o", str(program), *pkg_config("--libs")], check=True)
        return program


def find(builder, name, file, code, defect):
    """Returns whether the oracle found the defect, and a report."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        program = builder.program(plant(builder.root, scratch, file, code, defect), file, scratch)
        run = subprocess.run([program, "seeds", "1", str(SEEDS)], cwd=scratch, capture_output=True, text=True, timeout=900)
        if run.returncode != 1:
            return False, f"NOT FOUND  {name}: exit code {run.returncode}"
        lines = (scratch / "oracle-failed.txt").read_text().splitlines()
        again = subprocess.run([program, "oracle-failed.txt"], cwd=scratch, capture_output=True, timeout=900)
    verdict = "found" if again.returncode == 1 else "NOT AGAIN"
    return again.returncode == 1, f"{verdict}  {name}\n    {run.stdout.split(',')[0]}, {len(lines) - 1} operations left {lines[0]}"


def main():
    if sys.argv[2:] == ["--fit"]:
        return fit(pathlib.Path(sys.argv[1]), PLANTED)
    split = sys.argv.index("--")
    root, compiler, names = pathlib.Path(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1:]
    chosen = [row for row in PLANTED if not names or row[0] in names]
    found = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        builder = Builder(root, compiler, pathlib.Path(folder))
        for good, text in pool.map(lambda row: find(builder, *row), chosen):
            found += good
            print(text, flush=True)
    print(f"planted defects found {found} of {len(chosen)}")
    return 0 if found == len(chosen) and chosen else 1


if __name__ == "__main__":
    sys.exit(main())
