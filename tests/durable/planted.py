#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in copies of src/durable, one at a time. A test must fail with each. Needs Criterion and
SQLite.

usage: planted.py SOURCE_ROOT C_COMPILER... -- [NAME...]

       planted.py SOURCE_ROOT --fit

Prints which test found which defect. Exit code 0: all were found. With --fit it only checks that the code of
each defect is found exactly once in src, and runs no test. So it reports if a change of src makes a defect
useless.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mutants"))
from planting import fit, plant  # noqa: E402

PARALLEL = 2
PACKAGES = ["criterion", "sqlite3", "liburcu-cds", "ck"]

FILE = ["file/model.c", "file/model_check.c"]
DISK = [*FILE, "file/cycle.c", "disk/disk.c", "disk/image.c"]
CORE = ["core/memory_store.c", "core/scene.c"]
# For tests that make one call to the disk in N fail: that N, which becomes TESTS_DURABLE_STRIDE. It is 1 for
# all others.
STRIDES = {"file/test_power.c": "3"}
# Each test, and the files that it needs in addition to its own.
PROGRAMS = {
    "file/test_model.c": FILE,
    "file/test_damage.c": FILE,
    "file/test_near.c": FILE,
    "file/test_open.c": FILE,
    "file/test_reader.c": FILE,
    "file/test_trim.c": FILE,
    "file/test_power.c": DISK,
    "file/test_faults.c": DISK,
    "core/test_durable.c": CORE,
    "core/test_durable_during.c": CORE,
    "core/test_durable_reopen.c": CORE,
    "core/test_durable_late.c": CORE,
    "core/test_durable_states.c": CORE,
}

# name, file, the code, the defect that replaces it, the test that finds it
PLANTED = [
    ("acknowledged before the sync", "durable/file/commit.c", "int result = twi_database_begin(&file->database);",
     "int result = twi_database_begin_unsynced(&file->database);", "file/test_power.c"),
    ("a failed commit is acknowledged as stored", "durable/batch.c", "\t\tfailed = error != 0;\n\t\tif (error == -ESTALE && set->shared) {\n\t\t\tlose_all(set);\n\t\t} else if (failed)",
     "\t\tfailed = false;\n\t\tif (error != 0)", "core/test_durable_reopen.c"),
    ("the checksum of a row is skipped", "durable/file/row.c", "sqlite3_column_int64(statement, CRC) != (int32_t)row_crc(&row) ||",
     "false ||", "file/test_damage.c"),
    ("a checksum leaves out the deadline", "durable/file/row.c", "row->id.serial, (uint64_t)row->due_ns, row->attempt,",
     "row->id.serial, 0, row->attempt,", "file/test_damage.c"),
    ("a move leaves its old row", "durable/file/timers.c", "\tresult = row_delete(timers, old);\n\tif (result == 1)",
     "\tresult = from == to ? row_delete(timers, old) : 1;\n\tif (result == 1)", "file/test_model.c"),
    ("a move is lost", "durable/file/timers.c", "\t\tresult = row_put(timers, row, TWI_SQL_TIMER_PUT);",
     "\t\tresult = row_put(timers, from == to ? row : old, TWI_SQL_TIMER_PUT);", "file/test_model.c"),
    ("a move leaves no pointer", "durable/file/timers.c", "\tif (to != twi_place(row->id))\n\t\treturn pointer_set(timers, row->id, to);",
     "\tif (to != twi_place(row->id))\n\t\treturn 0;", "file/test_model.c"),
    ("a slice leaves the inbox before it is in the table", "durable/file/timers.c",
     "\t\tresult = change_by(timers, TWI_SQL_INBOX_MOVE, last, 0);", "\t\tresult = 0;", "file/test_model.c"),
    ("an end leaves the key", "durable/file/timers.c", "\t\tresult = key_delete(timers, &row);\n\treturn result < 0 ? result : 1;",
     "\t\tresult = 0;\n\treturn result < 0 ? result : 1;", "file/test_model.c"),
    ("a new timer is missing in the plan of its bucket", "durable/file/timers.c",
     "\ttwi_plans_add(&timers->plans, twi_bucket(row->due_ns), &mark);", "\t(void)mark;", "file/test_near.c"),
    ("a timer that moved away and came back is loaded twice", "durable/file/near.c",
     "\treturn twi_mark_before(&load->from, mark) &&\n", "\treturn !twi_mark_before(mark, &load->from) &&\n", "file/test_near.c"),
    ("a timer is loaded by its old deadline", "durable/file/near.c", "if (result == 1 && row.due_ns == mark->due_ns)",
     "if (result == 1)", "file/test_near.c"),
    ("what a load that was ended did not give is lost", "durable/file/near.c", "\t\t\ttwi_plan_push(plan, &mark);\n\t\t\tcontinue;",
     "\t\t\tcontinue;", "file/test_near.c"),
    ("a plan that was cut counts as whole", "durable/file/near.c", "if (twi_plan_whole(plan)) {", "if (true) {", "file/test_near.c"),
    ("a cut plan goes on before the place of the load", "durable/file/near.c",
     "\t\tif (twi_mark_before(&load->from, &plan->last))\n\t\t\tload->from", "\t\tload->from", "file/test_near.c"),
    ("a load uses a plan that is ahead of it", "durable/file/plan.c", "\t\t    twi_mark_before(after, &plan->from))\n",
     "\t\t    false)\n", "file/test_near.c"),
    ("a plan forgets what a load of other kinds passed over", "durable/file/near.c", "\t\t\ttwi_plan_pass(plan, mark);\n",
     "\t\t\t;\n", "file/test_near.c"),
    ("a slice ends early because its timers have ended", "durable/file/near.c", "\t\tfull = piece.mark_count > 0;",
     "\t\tfull = false;", "file/test_near.c"),
    ("a plan adds what lies behind its end", "durable/file/plan.c",
     "twi_mark_before(&plan->from, mark) && !twi_mark_before(&plan->last, mark))\n", "twi_mark_before(&plan->from, mark))\n",
     "file/test_near.c"),
    ("a timer is found after its end was noted", "durable/file/timers.c",
     "\tif (result == 0 && !twi_ends_have(&timers->ends, bucket, serial))\n", "\tif (result == 0)\n", "file/test_model.c"),
    ("an id that is used again keeps its noted end", "durable/file/timers.c",
     "\tif (twi_ends_have(&timers->ends, twi_place(row->id), twi_serial(row->id)))\n\t\tresult =",
     "\tif (false)\n\t\tresult =", "file/test_model.c"),
    ("noted ends survive a rollback", "durable/file/timers.c", "return result == 0 ? twi_ends_read(&timers->ends) : result;",
     "return result == 0 && timers->ends.room == 0 ? twi_ends_read(&timers->ends) : result;", "file/test_faults.c"),
    ("ends are deleted before their rows", "durable/file/ends.c", "\tends->work_count = ends->work_done = 0;\n\tends->rows_deleted = false;",
     "\tends->work_count = ends->work_done = 0;\n\tends->rows_deleted = true;", "file/test_model.c"),
    ("a later end is lost behind a gap of the table", "durable/file/ends.c", "\t\tends->table[hole] = ends->table[at];\n\t\thole = at;",
     "\t\treturn;", "file/test_model.c"),
    ("a serial is given again after a crash", "durable/file/file.c",
     "\tTWI_TEST_POINT(\"file:reserving\");\n\tresult = meta_commit(file, &meta);",
     "\tTWI_TEST_POINT(\"file:reserving\");\n\tfile->meta = meta;\n\tresult = 0;", "file/test_power.c"),
    ("an append after a failed sync", "durable/file/database.c", "\tdefault:\n\t\treturn -EIO;\n",
     "\tdefault:\n\t\treturn -EBUSY;\n", "file/test_faults.c"),
    ("a failed read of dead letters does not freeze the store", "durable/file/store.c",
     "\tif (result < 0 && result != -EBUSY && result != -ENOSPC)\n", "\tif (false)\n", "file/test_faults.c"),
    ("an open that builds on what was not synced", "durable/file/log.c", "\tif (file != NULL)\n\t\tresult = rewrite(file);",
     "\t(void)file;\n\t(void)rewrite;", "file/test_power.c"),
    ("a full disk that freezes the store", "durable/file/commit.c", "\telse if (result != 0 && result != -ENOSPC)\n",
     "\telse if (result != 0)\n", "file/test_faults.c"),
    ("dead letters are removed in two commits", "durable/file/dead.c", "\tmany = old < 0 ||",
     "\ttwi_database_commit(database);\n\ttwi_database_begin_unsynced(database);\n\tmany = old < 0 ||", "file/test_power.c"),
    ("the youngest dead letters are removed", "durable/file/database.c", "\" ORDER BY ended LIMIT min(",
     "\" ORDER BY ended DESC LIMIT min(", "file/test_trim.c"),
    ("a clock is kept without a sync", "durable/file/file.c",
     "\tint result = twi_database_begin(&file->database);\n\n\tif (result != 0)\n\t\treturn result;\n\tresult = twi_clock_set",
     "\tint result = twi_database_begin_unsynced(&file->database);\n\n\tif (result != 0)\n\t\treturn result;\n\tresult = twi_clock_set",
     "file/test_power.c"),
    ("a load that takes long makes its timers late", "durable/keep.c", "twi_durable_shift(set->engine_ns, delay_ns)",
     "twi_durable_shift(tw_engine_now(set->engine), delay_ns)", "core/test_durable_late.c"),
    ("an open does not look which kinds are paused", "durable/open.c", "&set->kinds[i].paused, paused[i]", "&set->kinds[i].paused, 0",
     "core/test_durable_reopen.c"),
    ("the mark of a kind is written for another", "durable/file/store.c", "store->to_file[kind], paused != 0", "kind + 1, paused != 0",
     "file/test_open.c"),
    ("a failed open leaves its lock file behind", "durable/file/files.c", "\t\t(void)unlink(path);", "\t\t(void)path;",
     "file/test_open.c"),
    ("a timer that ended runs again after a reopen", "durable/take.c",
     "\t\t(void)timer_op(set, TW_DURABLE_OP_DELETE, timer, 0);", "\t\ttwi_keep_release(set, timer);",
     "core/test_durable_reopen.c"),
    ("an attempt is not counted after a reopen", "durable/take.c",
     "\tput(set, timer, twi_load_relaxed(&timer->attempt) + begun(word), begun(word), true);",
     "\tput(set, timer, twi_load_relaxed(&timer->attempt), begun(word), true);", "core/test_durable_reopen.c"),
    ("at most once runs before its start is stored", "durable/run.c", "return !timer->confirm || confirmed;", "return true || confirmed;",
     "core/test_durable_reopen.c"),
    ("a full store ends the hold of a step", "durable/batch.c", "holds ? old | bit : old & ~bit", "holds ? bit : 0",
     "core/test_durable_states.c"),
    ("a long log is not noticed", "durable/file/log.c", "(database->pages_kept + database->pages)", "database->pages",
     "file/test_reader.c"),
    ("a refused timer counts as stored", "durable/settle.c",
     "\tif (op->outcome != TW_DURABLE_DONE) {\n\t\trefuse(set, timer);", "\tif (false) {\n\t\trefuse(set, timer);",
     "core/test_durable.c"),
    ("an absorbed fresh timer is not acknowledged", "durable/fresh/table.c", "\ttwi_batch_absorbed_tell(set);\n\treturn any;", "\treturn any;",
     "core/test_durable.c"),
    ("a request overtakes a fresh timer", "durable/take.c",
     "\t\tany |= twi_fresh_timers_collect(set, take_fresh);\n\t\tset->back = take_list(set, link);",
     "\t\tset->back = take_list(set, link);\n\t\tany |= twi_fresh_timers_collect(set, take_fresh);", "core/test_durable_during.c"),
    ("a timer is acknowledged as absorbed and stays in the store", "durable/take.c",
     "\ttimer->armed = timer->armed && result == TWI_RESULT_CANCELLED;\n",
     "\ttimer->armed = timer->armed && result == TWI_RESULT_CANCELLED;\n"
     "\tput(set, timer, 0, false, false);\n", "core/test_durable.c"),
]


def pkg_config(what):
    return subprocess.run(["pkg-config", what, *PACKAGES], check=True, capture_output=True, text=True).stdout.split()


def sources_of(tree):
    # Without programs that have a main of their own, and without folders that need other libraries.
    other = {"executors", "hosts", "postgres", "redis", "tool"}
    return sorted(path for path in tree.rglob("*.c") if not other & set(path.relative_to(tree).parts))


class Builder:
    """Builds tests with a defect. Compiles only the files that the defect changes; the others come from one
    build of the unchanged sources.
    """

    def __init__(self, root, compiler, folder):
        self.root, self.compiler = root, compiler
        self.flags = ["-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-DTWI_TEST_SMALL", "-fexceptions", "-mcx16", "-mprfchw",
                      "-pthread", "-w", *pkg_config("--cflags")]
        self.includes = [f"-I{root}/{name}" for name in ("include", "tests/support", "tests/durable/core", "tests/durable/file",
                                                         "tests/durable/disk")]
        self.objects = self.compile(sources_of(root / "src"), root / "src", folder)
        tests = {root / "tests/durable" / name for test, rest in PROGRAMS.items() for name in (test, *rest)}
        self.tests = self.compile(sorted(tests), root / "src", folder)

    def compile(self, sources, tree, folder):
        # Two files may have the same name, and so may their folders. The last three parts of the path are
        # unique.
        objects = {source: folder / f"{'-'.join(source.parts[-3:])}.o" for source in sources}

        def one(row):
            subprocess.run([*self.compiler, *self.flags, *self.includes, f"-I{tree}", "-c", str(row[0]), "-o", str(row[1])],
                           check=True)

        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(one, objects.items()))
        return objects

    def program(self, test, scratch, objects):
        parts = [self.tests[self.root / "tests/durable" / name] for name in (test, *PROGRAMS[test])]
        program = scratch / "test"
        subprocess.run([*self.compiler, *self.flags, *map(str, parts), *map(str, objects.values()), "-o", str(program),
                        *pkg_config("--libs")], check=True)
        return program

    def defect(self, scratch, file, code, defect):
        tree = plant(self.root, scratch, file, code, defect)
        return {**self.objects, self.root / "src" / file: self.compile([tree / file], tree, scratch)[tree / file]}


def run(program, test):
    """Runs a test. Returns its exit code: 0 if it passed, None if it did not end."""
    environment = {**os.environ, "TESTS_DURABLE_STRIDE": STRIDES.get(test, "1")}
    try:
        return subprocess.run([program, "--quiet", "-j1", "--fail-fast"], capture_output=True, timeout=300,
                              env=environment).returncode
    except subprocess.TimeoutExpired:
        return None


def find(builder, name, file, code, defect, test):
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        found = run(builder.program(test, scratch, builder.defect(scratch, file, code, defect)), test) != 0
    return found, f"{'found' if found else 'NOT FOUND'}  {name}, by {test}"


def unharmed(builder, test):
    """Runs a test without a defect. It must pass. If it fails even then, its failures with defects prove
    nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        good = run(builder.program(test, pathlib.Path(folder), builder.objects), test) == 0
    return good, f"{'good' if good else 'NOT GOOD'}  {test}, without a defect"


def main():
    root = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["--fit"]:
        return fit(root, PLANTED)
    split = sys.argv.index("--")
    compiler, names = sys.argv[2:split], sys.argv[split + 1:]
    chosen = [row for row in PLANTED if not names or row[0] in names]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        builder = Builder(root, compiler, pathlib.Path(folder))
        for good, text in [*pool.map(lambda test: unharmed(builder, test), sorted({row[4] for row in chosen})),
                           *pool.map(lambda row: find(builder, *row), chosen)]:
            wrong += not good
            print(text, flush=True)
    print(f"planted defects found: {len(chosen)} looked for, {wrong} wrong")
    return 0 if chosen and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
