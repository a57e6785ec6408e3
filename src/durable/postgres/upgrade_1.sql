-- SPDX-License-Identifier: MIT
-- Makes a schema of version 2 from one of version 1, while processes of version 1 use it. Run it as it is, with
-- `psql -v ON_ERROR_STOP=1`, and not inside a transaction: the last step has its own. If a step fails, nothing is lost:
-- run the text again.

-- Step 1. A claim of version 1 may wait for the locks of step 4. Its statement would then expect the columns that the
-- table had before, and its process would end. This function refuses such a claim instead, and the process claims
-- again. The next steps wait for all transactions that have called the old function.
CREATE OR REPLACE FUNCTION @schema@.session_hold(s bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM @schema@.session WHERE id = s FOR SHARE;
	IF NOT FOUND OR NOT @schema@.lives(s) THEN
		RAISE EXCEPTION 'tickwheel: the session is over' USING ERRCODE = 'TW001';
	END IF;
	IF EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = '@schema@.timer'::regclass AND attname = 'fence') THEN
		RAISE EXCEPTION 'tickwheel: the schema has changed' USING ERRCODE = '40001';
	END IF;
END $$;

-- Step 2. Removes what an earlier try has left.
DROP INDEX CONCURRENTLY IF EXISTS @schema@.timer_next;

-- Step 3. Takes long if there are millions of timers, but no process has to wait for it.
CREATE INDEX CONCURRENTLY timer_next ON @schema@.timer (kind, due, place, serial) WHERE session = 0;

-- Step 4. Takes less than a second, however many timers there are. While it waits for its locks, processes wait for
-- half a second at most: then it gives up the locks, and tries again after a second. It takes the locks in the same
-- order as the functions do.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL enable_seqscan = off;
SET LOCAL jit = off;
SET LOCAL client_min_messages = warning;
SET LOCAL lock_timeout = 500;
DO $$
DECLARE
	until timestamptz := clock_timestamp() + interval '1 minute';
BEGIN
	LOOP
		BEGIN
			LOCK TABLE @schema@.meta, @schema@.session, @schema@.timer IN ACCESS EXCLUSIVE MODE;
			EXIT;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			IF clock_timestamp() > until THEN
				RAISE;
			END IF;
		END;
		PERFORM pg_sleep(1);
	END LOOP;
	IF NOT EXISTS (SELECT 1 FROM @schema@.meta WHERE version = 1) THEN
		RAISE EXCEPTION 'tickwheel: the schema has another version' USING ERRCODE = 'TW002';
	END IF;
END $$;

ALTER TABLE @schema@.meta ADD COLUMN IF NOT EXISTS serves integer NOT NULL DEFAULT 2;
ALTER TABLE @schema@.meta ALTER COLUMN serves DROP DEFAULT;
ALTER TABLE @schema@.session ADD COLUMN IF NOT EXISTS claim boolean NOT NULL DEFAULT false;
ALTER TABLE @schema@.session ADD COLUMN IF NOT EXISTS pid integer NOT NULL DEFAULT 0;
ALTER TABLE @schema@.session ADD COLUMN IF NOT EXISTS version integer NOT NULL DEFAULT 1;
ALTER TABLE @schema@.session ALTER COLUMN pid SET DEFAULT pg_backend_pid(), ALTER COLUMN version DROP DEFAULT,
	DROP CONSTRAINT session_pkey, ADD PRIMARY KEY (id, batch);
ALTER TABLE @schema@.timer ADD COLUMN IF NOT EXISTS fence bigint NOT NULL DEFAULT 0;
ALTER TABLE @schema@.timer ADD COLUMN IF NOT EXISTS open boolean NOT NULL DEFAULT false;
-- The fence of a run of version 1 is the number of its session. Version 1 kept the mark of a start in rows that it
-- freed. Such rows are due, so the second UPDATE need not read any others.
UPDATE @schema@.timer SET open = true, fence = greatest(fence, session) WHERE session <> 0 AND started;
UPDATE @schema@.timer t SET open = true, started = false, fence = greatest(t.fence, m.session)
	FROM @schema@.meta m, @schema@.kind k
	WHERE t.session = 0 AND t.kind = k.id AND t.due <= (SELECT @schema@.now_ns()) AND t.started;
DROP INDEX @schema@.timer_free;
ALTER INDEX @schema@.timer_next RENAME TO timer_free;

-- No function of version 1 is dropped, because a statement that waits for the locks may have found it already.
DROP FUNCTION IF EXISTS @schema@.batch_begin(bigint, bigint, boolean);
-- @functions@

-- The functions that only version 1 calls. It sends other arguments, and a claim is not a batch.

-- Sets the pid to 0, because a process of version 1 does not keep its pid up to date. So its connection cannot be
-- ended.
CREATE OR REPLACE FUNCTION @schema@.session_begin(lasts bigint, called text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	s bigint := @schema@.session_begin(lasts, called, 1);
BEGIN
	UPDATE @schema@.session SET pid = 0 WHERE id = s;
	RETURN s;
END $$;

CREATE OR REPLACE FUNCTION @schema@.batch_begin(s bigint, n bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM @schema@.batch_begin(s, n, false);
END $$;

-- Leaves rows with an open attempt to later versions. If version 1 read such a row after a new connection, it would run
-- an at-most-once timer a second time.
CREATE OR REPLACE FUNCTION @schema@.claim(s bigint, low bigint, ahead bigint, known integer[], most integer)
RETURNS SETOF @schema@.timer LANGUAGE plpgsql AS $$
DECLARE
	until bigint := @schema@.now_ns() + ahead;
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	IF low = '-9223372036854775808' THEN
		PERFORM @schema@.reap_rows(10000);
	END IF;
	PERFORM 1 FROM @schema@.session WHERE id = s FOR SHARE;
	IF NOT FOUND OR NOT @schema@.lives(s) THEN
		RAISE EXCEPTION 'tickwheel: the session is over' USING ERRCODE = 'TW001';
	END IF;
	RETURN QUERY UPDATE @schema@.timer t SET session = s, started = false FROM (
		SELECT f.serial FROM @schema@.kind k CROSS JOIN LATERAL (
			SELECT x.serial, x.due, x.place FROM @schema@.timer x
			WHERE x.session = 0 AND x.kind = k.id AND x.due >= low AND x.due <= until AND NOT x.open
			ORDER BY x.due, x.place, x.serial LIMIT most FOR UPDATE SKIP LOCKED) AS f
		WHERE k.id = ANY (known) AND NOT k.paused
		ORDER BY f.due, f.place, f.serial LIMIT most) AS c
	WHERE t.serial = c.serial RETURNING t.*;
END $$;

CREATE OR REPLACE FUNCTION @schema@.give_back(s bigint, serials bigint[]) RETURNS void LANGUAGE sql AS
$$UPDATE @schema@.timer SET session = 0 WHERE serial = ANY (serials) AND session = s AND NOT started$$;

UPDATE @schema@.meta SET version = 2, serves = 2;
COMMIT;
