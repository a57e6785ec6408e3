-- SPDX-License-Identifier: MIT
-- Makes a schema of version 2 from one of version 1, while processes of version 1 use it. Run it as it is, with
-- `psql -v ON_ERROR_STOP=1`, and not inside a transaction: step 4 has its own. If a step fails, nothing is lost:
-- run the text again.

-- Before the steps. tw_durable_postgres_migrate does this itself. One upgrade runs at a time: its connection has a lock
-- until the text ends, or the connection. This text does not wait for the lock of another upgrade, because step 3 of
-- that upgrade waits for the statements of the database.
BEGIN ISOLATION LEVEL READ COMMITTED;
DO $$
BEGIN
	IF NOT pg_try_advisory_lock(8390876205174681447) THEN
		RAISE EXCEPTION 'tickwheel: another upgrade is under way' USING ERRCODE = '55P03';
	END IF;
	IF NOT EXISTS (SELECT 1 FROM @schema@.meta WHERE version = 1) THEN
		PERFORM pg_advisory_unlock(8390876205174681447);
		RAISE EXCEPTION 'tickwheel: the schema has another version' USING ERRCODE = 'TW002';
	END IF;
END $$;
COMMIT;

-- Step 1. A claim of version 1 may wait for the locks of step 4. Its statement would then expect the columns that the
-- table had before, and its process would end. This function refuses such a claim instead, and the process claims
-- again. The next steps wait for all transactions that have called the old function. A query of pg_attribute would not
-- do: in a transaction with REPEATABLE READ it does not see what step 4 has changed. to_regprocedure sees that.
CREATE OR REPLACE FUNCTION @schema@.session_hold(s bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM @schema@.session WHERE id = s FOR SHARE;
	IF NOT FOUND OR NOT @schema@.lives(s) THEN
		RAISE EXCEPTION 'tickwheel: the session is over' USING ERRCODE = 'TW001';
	END IF;
	IF to_regprocedure('@schema@.session_begin(bigint, text, integer)') IS NOT NULL THEN
		RAISE EXCEPTION 'tickwheel: the schema has changed' USING ERRCODE = '40001';
	END IF;
END $$;

-- Step 2. Removes what an earlier try has left.
DROP INDEX CONCURRENTLY IF EXISTS @schema@.timer_next;

-- Step 3. Takes long if there are millions of timers, but no process has to wait for it.
CREATE INDEX CONCURRENTLY timer_next ON @schema@.timer (kind, due, place, serial) WHERE session = 0;

-- Step 4. Takes less than a second, however many timers there are. While it waits for its locks, processes wait for
-- half a second at most: then it gives up the locks, and tries again after a second. It takes the locks in the same
-- order as the functions do. But first it waits for an autovacuum, with a lock that holds no process up. The server
-- ends an autovacuum only for a statement that waits for a second or longer (deadlock_timeout).
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL enable_seqscan = off;
SET LOCAL jit = off;
SET LOCAL client_min_messages = warning;
SET LOCAL lock_timeout = '1min';
LOCK TABLE @schema@.meta, @schema@.session, @schema@.timer IN SHARE UPDATE EXCLUSIVE MODE;
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
	PERFORM set_config('tickwheel.known', array_agg(oid)::text, true) FROM pg_proc
		WHERE pronamespace = '@schema@'::regnamespace;
END $$;

ALTER TABLE @schema@.meta ADD COLUMN IF NOT EXISTS serves integer NOT NULL DEFAULT 2;
ALTER TABLE @schema@.meta ALTER COLUMN serves DROP DEFAULT;
ALTER TABLE @schema@.session ADD COLUMN IF NOT EXISTS claim boolean NOT NULL DEFAULT false;
ALTER TABLE @schema@.session ADD COLUMN IF NOT EXISTS pid integer NOT NULL DEFAULT 0;
ALTER TABLE @schema@.session ADD COLUMN IF NOT EXISTS version integer NOT NULL DEFAULT 1;
ALTER TABLE @schema@.session ALTER COLUMN pid SET DEFAULT 0, ALTER COLUMN version SET DEFAULT 1,
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

-- The roles that may call the function `lives` may call the new functions. Otherwise the default privileges of the owner
-- would say who may, and could stop the processes of version 1.
DO $$
DECLARE
	made regprocedure;
	who text;
BEGIN
	FOR made IN SELECT oid FROM pg_proc
		WHERE pronamespace = '@schema@'::regnamespace AND oid <> ALL (current_setting('tickwheel.known')::oid[]) LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
		FOR who IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
			FROM pg_proc CROSS JOIN aclexplode(coalesce(proacl, acldefault('f', proowner)))
			WHERE oid = '@schema@.lives(bigint)'::regprocedure LOOP
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', made, who);
		END LOOP;
	END LOOP;
END $$;

UPDATE @schema@.meta SET version = 2, serves = 2;
COMMIT;

-- Step 5. Releases the lock.
DO $$
BEGIN
	PERFORM pg_advisory_unlock(8390876205174681447);
END $$;
