#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tests of machines.py, on PostgreSQL.

usage: test_machines.py WORKER [unittest's arguments]

Seen to fail with the defects of planted.py.
"""
import collections
import pathlib
import sys
import unittest

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from machines import PLACE, Machines as Base  # noqa: E402
from server import Server, schema_text  # noqa: E402

# Records each end of a session in the middle of a run.
WATCH = f"""
CREATE TABLE {PLACE}.effect (id text);
CREATE TABLE {PLACE}.reaped (id text);
CREATE FUNCTION {PLACE}.reap_note() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN INSERT INTO {PLACE}.reaped VALUES (OLD.place || '-' || OLD.serial); RETURN NEW; END$$;
CREATE TRIGGER reap_note AFTER UPDATE ON {PLACE}.timer FOR EACH ROW
WHEN (OLD.session <> 0 AND NEW.session = 0 AND OLD.started AND NEW.open) EXECUTE FUNCTION {PLACE}.reap_note();
"""


class Machines(Base, unittest.TestCase):
    has_effects = True

    def server_start(self):
        server = Server().start()
        server.sql(f"BEGIN; {schema_text(PLACE)} {WATCH} COMMIT;")
        return server

    def socket(self, folder):
        return folder / ".s.PGSQL.5432"

    def address(self, folder):
        return f"host={folder} user=postgres dbname=postgres"

    def is_batch(self, data):
        return b"batch_begin" in data

    def schedule_by_others(self):
        for kind, count in (("job", 50), ("effect", 20)):
            rows = self.server.sql(f"SELECT {PLACE}.schedule('{kind}', now() + i * interval '5 ms') FROM generate_series(1, {count}) AS i")
            self.by_others += [row[0] for row in rows]

    def drained(self):
        return self.server.sql(f"SELECT count(*) FROM {PLACE}.timer")[0][0] == "0"

    def session_is_over(self, name):
        return self.server.sql(f"SELECT count(*) FROM {PLACE}.session WHERE name = '{name}'")[0][0] == "0"

    def reaped(self, history):
        return collections.Counter(row[0] for row in self.server.sql(f"SELECT id FROM {PLACE}.reaped"))

    def effects(self):
        return collections.Counter(row[0] for row in self.server.sql(f"SELECT id FROM {PLACE}.effect"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
