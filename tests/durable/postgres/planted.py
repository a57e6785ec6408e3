#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in the store in PostgreSQL, one at a time, and expects its tests to find each.

usage: planted.py SOURCE_ROOT C_COMPILER... -- [NAME...]; planted.py SOURCE_ROOT --fit looks for their places only
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "mutants"))
from planting import fit, plant  # noqa: E402

FOLDER = "durable/postgres/"
# name, file, the code, the defect in its place
PLANTED = [
    ("a start without a claim", "schema.sql", "WHERE t.session + 0 = s AND g.fence = s AND t.due <= now", "WHERE t.due <= now"),
    ("a start before its time", "schema.sql", "AND g.fence = s AND t.due <= now", "AND g.fence = s"),
    ("an end without a fence", "schema.sql", "$$SELECT (fence <> 0 AND held = fence) OR", "$$SELECT (fence <> 0) OR"),
    ("an own cancel that counts as one from elsewhere", "schema.sql", "$$SELECT (fence <> 0 AND held = fence) OR",
     "$$SELECT (strict AND held = fence) OR"),
    ("a cancel of a run from elsewhere", "schema.sql", "(NOT strict AND NOT (runs AND @schema@.lives(held)))", "(NOT strict)"),
    ("a batch without a number", "schema.sql", "outcomes = '' WHERE id = s AND batch = n - 1;", "outcomes = '' WHERE id = s;"),
    ("outcomes that are not kept", "schema.sql", "FROM unnest(unusual) AS u) WHERE id = s;", "FROM unnest(unusual) AS u) WHERE id = 0;"),
    ("a batch of a session that is over", "schema.sql",
     "	IF NOT FOUND OR NOT @schema@.lives(s) THEN\n		RAISE EXCEPTION 'tickwheel: the session is over, or",
     "	IF NOT FOUND THEN\n		RAISE EXCEPTION 'tickwheel: the session is over, or"),
    ("a heartbeat of a session that is over", "schema.sql", "WHERE session = s AND expires > now RETURNING now;",
     "WHERE session = s RETURNING now;"),
    ("the end of a session in the middle of a batch", "schema.sql", "PERFORM 1 FROM @schema@.session WHERE id = s FOR UPDATE SKIP LOCKED;",
     "PERFORM 1 FROM @schema@.session WHERE id = s;"),
    ("a session's number as a fence", "schema.sql", "SELECT greatest(now / 1000, max(t.fence) + 1) INTO next", "SELECT max(s) INTO next"),
    ("a fence by the clock alone", "schema.sql", "SELECT greatest(now / 1000, max(t.fence) + 1) INTO next",
     "SELECT max(now / 1000) INTO next"),
    ("a number of sessions by the clock alone", "schema.sql", "SET session = greatest(session + 1, @schema@.now_ns() / 1000)",
     "SET session = @schema@.now_ns() / 1000"),
    ("a claim of kinds that are paused", "schema.sql", "k.id = ANY (known) AND NOT k.paused", "k.id = ANY (known)"),
    ("a claim of kinds that are not known", "schema.sql", "k.id = ANY (known) AND NOT k.paused", "NOT k.paused"),
    ("a claim that keeps the mark of a start", "schema.sql", "SET session = s, started = false FROM (", "SET session = s, started = t.open FROM ("),
    ("a start that leaves no open attempt", "schema.sql", "SET started = true, open = true, attempt", "SET started = true, attempt"),
    ("a claim that is not a batch", "schema.sql", "	PERFORM @schema@.batch_begin(s, n, true);\n	-- By kind", "	-- By kind"),
    ("the outcomes of a late claim for those of a commit", "commit.c", "	return committed == 0 || claim;", "	return committed == 0;"),
    ("UNKNOWN for what was lost is sent again", "commit.c", "committed == -ESTALE && !store->sent", "committed == -ESTALE"),
    ("the end of a run in a transaction without a fence", "schema.sql", "AND t.place = finish.place AND t.fence = finish.fence\n",
     "AND t.place = finish.place\n"),
    ("an attempt that is not looked at in a transaction", "schema.sql", "		AND t.attempt = finish.attempt AND t.started;", "		AND t.started;"),
    ("no claim from the beginning", "claim.c", "	if ((size_t)count >= max && now_ns < store->whole_at_ns)", "	if (count > 0)"),
    ("no claim from the beginning in a long series", "claim.c", "(size_t)count >= max && now_ns < store->whole_at_ns",
     "(size_t)count >= max"),
    ("no rows are read after a new connection", "session.c", "	if (error == 0 && !was_open) {\n		store->unread = true;",
     "	if (error == 0 && !was_open) {"),
    ("rows that are not wanted stay claimed", "claim.c", "	if (count != 0 && batch_run(", "	if (count < 0 && batch_run("),
    ("an order of one timer's operations that is lost", "commit.c", "batch->rounds[before - 1] + 1;", "batch->rounds[before - 1];"),
    ("a key that is freed before it is looked at", "commit.c", "			round = most(round, keyed);", "			round = most(round, 0);"),
    ("a close that keeps its claims", "schema.sql", "	UPDATE @schema@.timer SET session = 0, started = false WHERE session = s;\n", ""),
]


def where(name):
    return FOLDER + name


class Builder:
    def __init__(self, root, compiler, folder):
        self.root, self.compiler, self.folder = root, compiler, folder
        flags = subprocess.run(["pkg-config", "--cflags", "libpq", "criterion"], check=True, capture_output=True, text=True).stdout
        self.flags = ["-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-w", *flags.split(), f"-I{root}/include", f"-I{root}/tests/support"]
        self.tests = [root / "tests/durable/postgres" / name for name in ("bench.c", "test_session.c", "test_store.c", "test_within.c")]

    def program(self, source, name):
        """source: the tree src, with the defect or without."""
        postgres = source / FOLDER
        text = self.folder / f"{name}.c"
        subprocess.run([sys.executable, "-B", str(self.root / "src" / FOLDER / "embed.py"), str(postgres / "schema.sql"),
                        "twi_postgres_schema", str(text)], check=True)
        program = self.folder / name
        subprocess.run([*self.compiler, *self.flags, f"-I{source}", *map(str, self.tests), *map(str, sorted(postgres.glob("*.c"))), str(text),
                        "-o", str(program), "-lcriterion", "-lpq"], check=True)
        return program


def found(program, address):
    try:
        return subprocess.run([program, "--quiet", "-j1", "--fail-fast"], capture_output=True, timeout=300,
                              env={**os.environ, "TICKWHEEL_POSTGRES": address}).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def main():
    root = pathlib.Path(sys.argv[1])
    rows = [(name, where(file), code, defect) for name, file, code, defect in PLANTED]
    if sys.argv[2:] == ["--fit"]:
        return fit(root, rows)
    split = sys.argv.index("--")
    compiler, names = sys.argv[2:split], sys.argv[split + 1:]
    from server import Server
    server, wrong = Server(["fsync = off", "full_page_writes = off"]), 0
    try:
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            builder = Builder(root, compiler, pathlib.Path(folder))
            if found(builder.program(root / "src", "good"), server.address):
                print("NOT GOOD  without a defect")
                return 1
            for name, file, code, defect in rows:
                if names and name not in names:
                    continue
                with tempfile.TemporaryDirectory() as scratch:
                    tree = plant(root, pathlib.Path(scratch), file, code, defect)
                    caught = found(builder.program(tree, "bad"), server.address)
                wrong += not caught
                print(f"{'found' if caught else 'NOT FOUND'}  {name}", flush=True)
    finally:
        server.end()
    print(f"planted defects: {wrong} not found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
