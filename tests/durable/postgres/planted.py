#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in the store in PostgreSQL (shared/planted_store.py says how to use it)."""
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from planted_store import Store, main  # noqa: E402

# name, file, the code, the defect that replaces it
PLANTED = [
    ("a start without a claim", "functions.sql", "WHERE t.session + 0 = s AND g.fence = s AND t.due <= now", "WHERE t.due <= now"),
    ("a start before its time", "functions.sql", "AND g.fence = s AND t.due <= now", "AND g.fence = s"),
    ("an end without a fence", "functions.sql", "$$SELECT (fence <> 0 AND held = fence) OR", "$$SELECT (fence <> 0) OR"),
    ("an own cancel that counts as one from elsewhere", "functions.sql", "$$SELECT (fence <> 0 AND held = fence) OR",
     "$$SELECT (strict AND held = fence) OR"),
    ("a cancel of a run from elsewhere", "functions.sql", "(NOT strict AND NOT (runs AND @schema@.lives(held)))", "(NOT strict)"),
    ("a batch without a number", "functions.sql", "outcomes = '' WHERE id = s AND batch = n - 1;", "outcomes = '' WHERE id = s;"),
    ("outcomes that are not kept", "functions.sql", "FROM unnest(unusual) AS u)\n		WHERE id = s AND", "FROM unnest(unusual) AS u)\n		WHERE id = 0 AND"),
    ("a batch of a session that is over", "functions.sql",
     "	IF NOT FOUND OR NOT @schema@.lives(s) THEN\n		RAISE EXCEPTION 'tickwheel: the session is over, or",
     "	IF NOT FOUND THEN\n		RAISE EXCEPTION 'tickwheel: the session is over, or"),
    ("a heartbeat of a session that is over", "functions.sql", "WHERE session = s AND expires > now RETURNING now;",
     "WHERE session = s RETURNING now;"),
    ("the end of a session in the middle of a batch", "functions.sql", "PERFORM 1 FROM @schema@.session WHERE id = s FOR UPDATE SKIP LOCKED;",
     "PERFORM 1 FROM @schema@.session WHERE id = s;"),
    ("a session's number as a fence", "functions.sql", "SELECT greatest(now / 1000, max(t.fence) + 1) INTO next", "SELECT max(s) INTO next"),
    ("a fence by the clock alone", "functions.sql", "SELECT greatest(now / 1000, max(t.fence) + 1) INTO next",
     "SELECT max(now / 1000) INTO next"),
    ("a number of sessions by the clock alone", "functions.sql", "SET session = greatest(session + 1, @schema@.now_ns() / 1000)",
     "SET session = @schema@.now_ns() / 1000"),
    ("a claim of kinds that are paused", "functions.sql", "k.id = ANY (known) AND NOT k.paused", "k.id = ANY (known)"),
    ("a claim of kinds that are not known", "functions.sql", "k.id = ANY (known) AND NOT k.paused", "NOT k.paused"),
    ("a claim that keeps the mark of a start", "functions.sql", "SET session = s, started = false FROM (", "SET session = s, started = t.open FROM ("),
    ("a start that leaves no open attempt", "functions.sql", "SET started = true, open = true, attempt", "SET started = true, attempt"),
    ("a claim that is not a batch", "functions.sql", "	PERFORM @schema@.batch_begin(s, n, true);\n	-- By kind", "	-- By kind"),
    ("the outcomes of a late claim for those of a commit", "commit.c", "	return committed == 0 || claim;", "	return committed == 0;"),
    ("UNKNOWN for what was lost is sent again", "commit.c", "committed == -ESTALE && !store->sent", "committed == -ESTALE"),
    ("the end of a run in a transaction without a fence", "functions.sql", "AND (t.fence = finish.fence OR (t.session", "AND (true OR (t.session"),
    ("an attempt that is not looked at in a transaction", "functions.sql", "		AND t.attempt = finish.attempt AND t.started;", "		AND t.started;"),
    ("a batch that reads all versions of its session", "schema.sql", "PRIMARY KEY (id, batch)", "PRIMARY KEY (id)"),
    ("outcomes that read all versions of their session", "functions.sql", " AND batch = (SELECT x.batch FROM @schema@.session x WHERE x.id = s ORDER BY x.batch DESC LIMIT 1);",
     " AND length(name) < 100;"),
    ("a claim that reads all far timers", "functions.sql", "x.due >= low AND x.due <= until", "x.due >= low AND x.due <= @schema@.now_ns() + ahead"),
    ("an upgrade that ends the processes that claim meanwhile", "upgrade_1.sql", "IF to_regprocedure('@schema@.session_begin(bigint, text, integer)') IS NOT NULL THEN",
     "IF false THEN"),
    ("an upgrade that ends the processes that claim with an old snapshot meanwhile", "upgrade_1.sql",
     "IF to_regprocedure('@schema@.session_begin(bigint, text, integer)') IS NOT NULL THEN",
     "IF EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = '@schema@.timer'::regclass AND attname = 'fence') THEN"),
    ("an upgrade that ends the processes that begin a session meanwhile", "upgrade_1.sql", "ALTER COLUMN version SET DEFAULT 1,",
     "ALTER COLUMN version DROP DEFAULT,"),
    ("an upgrade that takes a late session of version 1 for one with a pid", "upgrade_1.sql", "ALTER COLUMN pid SET DEFAULT 0,",
     "ALTER COLUMN pid SET DEFAULT pg_backend_pid(),"),
    ("an upgrade whose new functions are closed", "upgrade_1.sql", "EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', made, who);", "NULL;"),
    ("an upgrade whose new functions are open to all", "upgrade_1.sql", "EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);", "NULL;"),
    ("an upgrade that closes functions by default", "upgrade_1.sql", "aclexplode(coalesce(proacl, acldefault('f', proowner)))", "aclexplode(proacl)"),
    ("an upgrade that waits for an autovacuum", "upgrade_1.sql", "IN SHARE UPDATE EXCLUSIVE MODE;", "IN ACCESS SHARE MODE;"),
    ("an upgrade that those who make a schema wait for", "migrate.c", "pg_try_advisory_lock(\" LOCK_UPGRADE \")", "pg_try_advisory_lock(\" LOCK_MAKE \")"),
    ("an upgrade that keeps its lock", "upgrade_1.sql", "BEGIN\n	PERFORM pg_advisory_unlock(8390876205174681447);", "BEGIN\n	NULL;"),
    ("an upgrade that fails and keeps its lock", "migrate.c", "	(void)truth_ask(connection, \"SELECT pg_advisory_unlock(", "	(void)(\"SELECT pg_advisory_unlock("),
    ("two texts of an upgrade at once", "upgrade_1.sql", "IF NOT pg_try_advisory_lock(8390876205174681447) THEN", "IF false THEN"),
    ("a text that looks at the version last", "upgrade_1.sql", "WHERE version = 1) THEN\n		PERFORM", "WHERE version > 0) THEN\n		PERFORM"),
    ("a text that is refused and keeps its lock", "upgrade_1.sql", "THEN\n		PERFORM pg_advisory_unlock(8390876205174681447);", "THEN"),
    ("an upgrade that holds processes up", "upgrade_1.sql", "SET LOCAL lock_timeout = 500;", "SET LOCAL lock_timeout = 0;"),
    ("an upgrade that does not try again", "upgrade_1.sql", "			IF clock_timestamp() > until THEN", "			IF true THEN"),
    ("an upgrade that forgets attempts", "upgrade_1.sql", "SET open = true, fence = greatest(fence, session)", "SET fence = greatest(fence, session)"),
    ("an upgrade that forgets attempts of dead processes", "upgrade_1.sql", "SET open = true, started = false, fence", "SET started = false, fence"),
    ("an upgrade that leaves marks of dead runs", "upgrade_1.sql", "SET open = true, started = false, fence", "SET open = true, fence"),
    ("an upgrade that stops at the index of an earlier try", "upgrade_1.sql", "DROP INDEX CONCURRENTLY IF EXISTS @schema@.timer_next;", "DO 'BEGIN END';"),
    ("an upgrade without a look at the version", "upgrade_1.sql", "WHERE version = 1) THEN\n		RAISE", "WHERE version > 0) THEN\n		RAISE"),
    ("two upgrades at once", "migrate.c", "while (!truth_ask(connection,", "while (truth_ask(connection, \"SELECT false\") && !truth_ask(connection,"),
    ("an upgraded claim of version 1 that takes open attempts", "upgrade_1.sql", " AND NOT x.open\n", "\n"),
    ("an upgraded schema without the fences of version 1", "functions.sql", "AND x.version = 1)))", "AND x.version = 0)))"),
    ("an upgraded schema in which a session is a fence", "functions.sql", "AND x.version = 1)))", "AND x.version > 0)))"),
    ("no claim from the beginning", "claim.c", "	if ((size_t)count >= max && (looks(store) || now_ns < store->whole_at_ns))",
     "	if (count > 0)"),
    ("no claim from the beginning in a long series", "claim.c", "(looks(store) || now_ns < store->whole_at_ns)", "true"),
    ("a look that is waited for", "look.c", "	while (PQisBusy(look->connection) == 0) {", "	while (true) {"),
    ("no look", "look.c", "now_ns >= look->at_ns) {", "now_ns < 0) {"),
    ("looks that do not end", "look.c", "now_ns - look->slow_ns > CALM_NS", "now_ns < 0"),
    ("looks that end in a pause", "look.c", "look->quick && now_ns - look->slow_ns", "now_ns - look->slow_ns"),
    ("a look that stays at rows that are locked", "look.c", "	if (asked == LOOK_MAX) {", "	if (asked == LOOK_MAX && claimed > 0) {"),
    ("a look that leaves out due rows", "store.c", "AND due <= (SELECT @.now_ns()) ", "AND due <= (SELECT @.now_ns() - 100000000000) "),
    ("a look that was lost and goes on", "look.c", "		if (!look_read(store))\n			looks_fail(store);", "		(void)look_read(store);"),
    ("a claim of found rows that another session has", "functions.sql", "x.session + 0 = 0 AND x.due + 0 <= until", "x.due + 0 <= until"),
    ("a claim of found rows that were moved", "functions.sql", "x.session + 0 = 0 AND x.due + 0 <= until", "x.session + 0 = 0"),
    ("a claim of found rows that were paused", "functions.sql", "NOT k.paused AND k.id = ANY (known)", "k.id = ANY (known)"),
    ("a claim of found rows that is not a batch", "functions.sql", "	PERFORM @schema@.batch_begin(s, n, true);\n	RETURN QUERY UPDATE", "	RETURN QUERY UPDATE"),
    ("recent rows without those of ended sessions", "functions.sql", "@schema@.now_ns() - ahead, @schema@.reap_rows(10000))",
     "@schema@.now_ns() - ahead); PERFORM @schema@.reap_rows(10000)"),
    ("recent rows that begin now", "functions.sql", "least(low, @schema@.now_ns() - ahead,", "least(low, @schema@.now_ns(),"),
    ("recent rows that begin at the beginning", "functions.sql", "least(low, @schema@.now_ns() - ahead,", "least(0,"),
    ("a series of claims of recent rows without an end", "claim.c", "(first || sent_ns >= store->whole_at_ns)", "first"),
    ("no rows are read after a new connection", "session.c", "	if (error == 0 && !was_open) {\n		store->unread = true;",
     "	if (error == 0 && !was_open) {"),
    ("a wait that polls a connection it does not read", "link.c", "link->beats != NULL && link->beat_waits;", "link->beats != NULL;"),
    ("rows that are not wanted stay claimed", "claim.c", "	if (count != 0 && batch_run(", "	if (count < 0 && batch_run("),
    ("an order of one timer's operations that is lost", "commit.c", "batch->rounds[before - 1] + 1;", "batch->rounds[before - 1];"),
    ("a key that is freed before it is looked at", "commit.c", "			round = most(round, keyed);", "			round = most(round, 0);"),
    ("a close that keeps its claims", "functions.sql", "	UPDATE @schema@.timer SET session = 0, started = false WHERE session = s;\n", ""),
]


class Postgres(Store):
    def embed(self, root, source, text):
        texts = [str(source / f"{name}.sql") for name in ("schema", "functions", "upgrade_1")]
        return [sys.executable, "-B", str(root / "src/durable/postgres/embed.py"), str(text), *texts]


def server():
    from server import Server
    return Server(["fsync = off", "full_page_writes = off"])


if __name__ == "__main__":
    tests = ("bench_postgres.c", "bench_upgrade.c", "test_locks.c", "test_looks.c", "test_upgrade.c", "test_upgrade_runs.c", "test_within.c")
    sys.exit(main(Postgres("postgres", ["libpq"], tests, "TICKWHEEL_POSTGRES"), PLANTED, server))
