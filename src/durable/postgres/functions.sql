-- SPDX-License-Identifier: MIT
-- The functions of durable timers in PostgreSQL. An upgrade replaces the functions of an earlier version while processes
-- of that version call them. So a function keeps its name, arguments and result as long as the schema serves a library
-- that calls it.

-- The only function that reads the clock.
CREATE OR REPLACE FUNCTION @schema@.now_ns() RETURNS bigint LANGUAGE sql VOLATILE AS
$$SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000$$;

CREATE OR REPLACE FUNCTION @schema@.place_of(due bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$SELECT due / 64000000000 - CASE WHEN due % 64000000000 < 0 THEN 1 ELSE 0 END$$;

CREATE OR REPLACE FUNCTION @schema@.lives(s bigint) RETURNS boolean LANGUAGE sql VOLATILE AS
$$SELECT EXISTS (SELECT 1 FROM @schema@.beat WHERE session = s AND expires > @schema@.now_ns())$$;

-- Sessions.

-- `knows`: the version of the schema that the library knows.
CREATE OR REPLACE FUNCTION @schema@.session_begin(lasts bigint, called text, knows integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	s bigint;
BEGIN
	UPDATE @schema@.meta SET session = greatest(session + 1, @schema@.now_ns() / 1000) RETURNING session INTO s;
	INSERT INTO @schema@.session (id, pid, name, version) VALUES (s, pg_backend_pid(), called, knows);
	INSERT INTO @schema@.beat (session, expires) VALUES (s, @schema@.now_ns() + lasts);
	RETURN s;
END $$;

-- Renews a session. Returns the time, or no row if the session is over.
CREATE OR REPLACE FUNCTION @schema@.session_beat(s bigint, lasts bigint) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
	now bigint := @schema@.now_ns();
BEGIN
	RETURN QUERY UPDATE @schema@.beat SET expires = now + lasts WHERE session = s AND expires > now RETURNING now;
END $$;

-- Frees at most `most` rows of sessions that are over. Skips a session that writes a batch or a heartbeat at this
-- moment. If the row of a session is still locked two seconds after the session's end, its process hangs in the middle
-- of a batch, and this function ends the process's connection. Returns the earliest deadline of the freed rows, or
-- NULL.
CREATE OR REPLACE FUNCTION @schema@.reap_rows(most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	s bigint;
	freed integer;
	first bigint;
	earliest bigint;
BEGIN
	FOR s IN SELECT session FROM @schema@.beat WHERE expires <= @schema@.now_ns() ORDER BY session FOR UPDATE SKIP LOCKED LOOP
		PERFORM 1 FROM @schema@.session WHERE id = s FOR UPDATE SKIP LOCKED;
		IF NOT FOUND THEN
			BEGIN
				-- A session of version 1 has the pid 0.
				PERFORM pg_terminate_backend(pid) FROM @schema@.session JOIN @schema@.beat ON id = session
					WHERE id = s AND pid <> 0 AND expires <= @schema@.now_ns() - 2000000000;
			EXCEPTION WHEN insufficient_privilege THEN
				-- The connection belongs to another role. A process of that role ends the connection.
				NULL;
			END;
			CONTINUE;
		END IF;
		-- A heartbeat that waits for the lock then finds the session over.
		UPDATE @schema@.beat SET expires = 0 WHERE session = s;
		WITH gone AS (
			UPDATE @schema@.timer SET session = 0, started = false WHERE serial IN
				(SELECT serial FROM @schema@.timer WHERE session = s LIMIT most FOR UPDATE SKIP LOCKED) RETURNING due)
		SELECT count(*), min(due) INTO freed, first FROM gone;
		most := most - freed;
		earliest := least(earliest, first);
		EXIT WHEN most <= 0;
		-- A transaction has locked the remaining rows. A later call frees them.
		CONTINUE WHEN EXISTS (SELECT 1 FROM @schema@.timer WHERE session = s);
		DELETE FROM @schema@.session WHERE id = s;
		DELETE FROM @schema@.beat WHERE session = s;
	END LOOP;
	RETURN earliest;
END $$;

-- Ends a session. Its rows are free at once.
CREATE OR REPLACE FUNCTION @schema@.session_end(s bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM @schema@.session WHERE id = s FOR UPDATE;
	UPDATE @schema@.timer SET session = 0, started = false WHERE session = s;
	DELETE FROM @schema@.beat WHERE session = s;
	DELETE FROM @schema@.session WHERE id = s;
END $$;

-- Batches. Each function below does the operations of one type. It returns the operations with an unusual outcome:
-- their number in the batch, the outcome (2 PRESENT, 3 RUNNING, 4 ATTEMPTED, 5 ABSENT), and an id. Rows are locked in
-- the order of their serials, so that two batches do not wait for each other. A statement must find its rows by their
-- serials, because a session may have many more rows. `session + 0` keeps the planner from using the index on sessions.

-- Begins batch n of a session, and locks the session until the transaction ends. Returns the time.
CREATE OR REPLACE FUNCTION @schema@.batch_begin(s bigint, n bigint, claims boolean) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	UPDATE @schema@.session SET batch = n, claim = claims, outcomes = '' WHERE id = s AND batch = n - 1;
	IF NOT FOUND OR NOT @schema@.lives(s) THEN
		RAISE EXCEPTION 'tickwheel: the session is over, or has this batch already' USING ERRCODE = 'TW001';
	END IF;
	RETURN @schema@.now_ns();
END $$;

-- Returns the number and the outcomes of a session's last batch, and whether it was a claim. Waits for a batch that is
-- under way. If the session is over, makes sure that it stays over, even if the clock goes back.
CREATE OR REPLACE FUNCTION @schema@.batch_look(s bigint, OUT batch bigint, OUT outcomes bytea, OUT claim boolean, OUT alive boolean)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
	UPDATE @schema@.session x SET pid = pg_backend_pid() WHERE id = s RETURNING x.batch, x.outcomes, x.claim
		INTO batch, outcomes, claim;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	alive := @schema@.lives(s);
	IF NOT alive THEN
		UPDATE @schema@.beat SET expires = 0 WHERE session = s;
	END IF;
	RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION @schema@.keep(s bigint, unusual @schema@.outcome[]) RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
BEGIN
	IF cardinality(unusual) = 0 THEN
		RETURN;
	END IF;
	UPDATE @schema@.session SET outcomes = outcomes || (SELECT string_agg(int4send(u.number) || int4send(u.outcome)
		|| int8send(u.place) || int8send(u.serial), '') FROM unnest(unusual) AS u)
		WHERE id = s AND batch = (SELECT x.batch FROM @schema@.session x WHERE x.id = s ORDER BY x.batch DESC LIMIT 1);
	RETURN QUERY SELECT * FROM unnest(unusual);
END $$;

CREATE OR REPLACE FUNCTION @schema@.op_put(s bigint, numbers integer[], places bigint[], serials bigint[], dues bigint[], attempts bigint[],
	versions bigint[], kinds integer[], mine boolean[], runs boolean[], keys bytea[], payloads bytea[])
RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
DECLARE
	done bigint[];
BEGIN
	-- If no timer has a key, a conflict is rare: only a timer that is sent again may be there already.
	IF '' = ALL (keys) THEN
		BEGIN
			INSERT INTO @schema@.timer (serial, place, due, attempt, session, version, kind, started, open, payload)
			SELECT g.serial, g.place, g.due, g.attempt, CASE WHEN g.mine THEN s ELSE 0 END, g.version, g.kind, g.runs, g.runs,
				g.payload
			FROM unnest(places, serials, dues, attempts, versions, kinds, mine, runs, payloads)
				AS g (place, serial, due, attempt, version, kind, mine, runs, payload);
			RETURN;
		EXCEPTION WHEN unique_violation THEN
			-- The statement below decides for each row.
			NULL;
		END;
	END IF;
	WITH made AS (
		INSERT INTO @schema@.timer (serial, place, due, attempt, session, version, kind, started, open, key, payload)
		SELECT g.serial, g.place, g.due, g.attempt, CASE WHEN g.mine THEN s ELSE 0 END, g.version, g.kind, g.runs, g.runs,
			nullif(g.key, ''), g.payload
		FROM unnest(places, serials, dues, attempts, versions, kinds, mine, runs, keys, payloads)
			AS g (place, serial, due, attempt, version, kind, mine, runs, key, payload)
		ON CONFLICT DO NOTHING RETURNING serial)
	SELECT array_agg(serial) INTO done FROM made;
	IF cardinality(done) = cardinality(serials) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY(
		SELECT ROW(g.number, 2, coalesce(t.place, 0), coalesce(t.serial, 0))::@schema@.outcome
		FROM unnest(numbers, places, serials, keys) AS g (number, place, serial, key)
		LEFT JOIN LATERAL (
			SELECT * FROM @schema@.timer o WHERE o.serial = g.serial
			UNION ALL SELECT * FROM @schema@.timer o WHERE o.key = nullif(g.key, '') AND o.serial <> g.serial
			LIMIT 1) AS t ON true
		WHERE done IS NULL OR g.serial <> ALL (done)));
END $$;

-- Returns whether an operation may change a row. It may if the session `fence` has claimed the row. An operation that
-- is not strict may also change the row if the timer does not run, or runs in a session that is over.
CREATE OR REPLACE FUNCTION @schema@.may(held bigint, runs boolean, fence bigint, strict boolean) RETURNS boolean
LANGUAGE sql VOLATILE AS
$$SELECT (fence <> 0 AND held = fence) OR (NOT strict AND NOT (runs AND @schema@.lives(held)))$$;

CREATE OR REPLACE FUNCTION @schema@.op_delete(s bigint, numbers integer[], places bigint[], serials bigint[], fences bigint[], strict boolean[])
RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
DECLARE
	done bigint[];
	tried bigint[];
BEGIN
	WITH gone AS (
		DELETE FROM @schema@.timer t
		USING unnest(places, serials, fences, strict) AS g (place, serial, fence, strict)
		WHERE t.serial = g.serial AND t.place = g.place
			AND @schema@.may(t.session, t.started, g.fence, g.strict)
		RETURNING t.serial, t.attempt, g.strict)
	SELECT array_agg(serial), array_agg(serial) FILTER (WHERE attempt > 0 AND NOT gone.strict) INTO done, tried FROM gone;
	IF cardinality(done) = cardinality(serials) AND tried IS NULL THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY(
		SELECT ROW(g.number, CASE WHEN g.serial = ANY (tried) THEN 4 WHEN EXISTS (SELECT 1 FROM @schema@.timer t
			WHERE t.serial = g.serial AND t.place = g.place AND NOT g.strict) THEN 3 ELSE 5 END, g.place, g.serial)::@schema@.outcome
		FROM unnest(numbers, places, serials, strict) AS g (number, place, serial, strict)
		WHERE done IS NULL OR g.serial <> ALL (done) OR g.serial = ANY (tried)));
END $$;

CREATE OR REPLACE FUNCTION @schema@.op_move(s bigint, numbers integer[], places bigint[], serials bigint[], dues bigint[], attempts bigint[],
	mine boolean[], fences bigint[], strict boolean[])
RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
DECLARE
	done bigint[];
BEGIN
	WITH moved AS (
		UPDATE @schema@.timer t SET due = g.due, started = false,
			open = t.open AND NOT (g.strict OR (g.fence <> 0 AND t.session = g.fence)), session = CASE WHEN g.mine THEN s ELSE 0 END,
			attempt = CASE WHEN g.strict OR (g.fence <> 0 AND t.session = g.fence) THEN g.attempt ELSE t.attempt END
		FROM unnest(places, serials, dues, attempts, mine, fences, strict)
			AS g (place, serial, due, attempt, mine, fence, strict)
		WHERE t.serial = g.serial AND t.place = g.place
			AND @schema@.may(t.session, t.started, g.fence, g.strict)
		RETURNING t.serial)
	SELECT array_agg(serial) INTO done FROM moved;
	IF cardinality(done) = cardinality(serials) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY(
		SELECT ROW(g.number, CASE WHEN EXISTS (SELECT 1 FROM @schema@.timer t WHERE t.serial = g.serial
			AND t.place = g.place AND NOT g.strict) THEN 3 ELSE 5 END, g.place, g.serial)::@schema@.outcome
		FROM unnest(numbers, places, serials, strict) AS g (number, place, serial, strict)
		WHERE done IS NULL OR g.serial <> ALL (done)));
END $$;

-- Outcome 2 PRESENT means that the timer is not due yet. In the row with number -1 the column `serial` has the fence of
-- all timers that start. The fence is greater than their earlier fences, even if the clock went back.
CREATE OR REPLACE FUNCTION @schema@.op_start(s bigint, numbers integer[], places bigint[], serials bigint[], attempts bigint[], fences bigint[])
RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
DECLARE
	done bigint[];
	now bigint := @schema@.now_ns();
	next bigint;
BEGIN
	SELECT greatest(now / 1000, max(t.fence) + 1) INTO next FROM @schema@.timer t WHERE t.serial = ANY (serials);
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY[ROW(-1, 0, 0, next)::@schema@.outcome]);
	-- If a transaction has locked a row, to cancel its timer, the start gets PRESENT, and is tried again soon.
	WITH free AS (
		SELECT t.serial, g.attempt FROM unnest(places, serials, attempts, fences) AS g (place, serial, attempt, fence)
		JOIN @schema@.timer t ON t.serial = g.serial AND t.place = g.place
		WHERE t.session + 0 = s AND g.fence = s AND t.due <= now FOR UPDATE OF t SKIP LOCKED),
	begun AS (
		UPDATE @schema@.timer t SET started = true, open = true, attempt = free.attempt, fence = next
		FROM free WHERE t.serial = free.serial RETURNING t.serial)
	SELECT array_agg(serial) INTO done FROM begun;
	IF cardinality(done) = cardinality(serials) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY(
		SELECT ROW(g.number, CASE WHEN EXISTS (SELECT 1 FROM @schema@.timer t WHERE t.serial = g.serial
			AND t.place = g.place AND t.session = s AND g.fence = s) THEN 2 ELSE 5 END, g.place, g.serial)::@schema@.outcome
		FROM unnest(numbers, places, serials, fences) AS g (number, place, serial, fence)
		WHERE done IS NULL OR g.serial <> ALL (done)));
END $$;

CREATE OR REPLACE FUNCTION @schema@.op_bury(s bigint, numbers integer[], places bigint[], serials bigint[], attempts bigint[], fences bigint[])
RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
DECLARE
	done bigint[];
BEGIN
	WITH gone AS (
		DELETE FROM @schema@.timer t USING unnest(places, serials, attempts, fences) AS g (place, serial, attempt, fence)
		WHERE t.serial = g.serial AND t.place = g.place AND t.session + 0 = g.fence AND g.fence <> 0
		RETURNING t.serial, t.place, t.due, g.attempt, t.version, t.kind, t.key, t.payload),
	buried AS (
		INSERT INTO @schema@.dead SELECT gone.*, @schema@.now_ns() FROM gone
		-- The timer may have been sent again after it became a dead letter.
		ON CONFLICT (serial) DO UPDATE SET attempt = excluded.attempt, ended = excluded.ended RETURNING serial)
	SELECT array_agg(serial) INTO done FROM buried;
	IF cardinality(done) = cardinality(serials) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY(SELECT ROW(g.number, 5, g.place, g.serial)::@schema@.outcome
		FROM unnest(numbers, places, serials) AS g (number, place, serial) WHERE done IS NULL OR g.serial <> ALL (done)));
END $$;

CREATE OR REPLACE FUNCTION @schema@.op_revive(s bigint, numbers integer[], places bigint[], serials bigint[], dues bigint[], mine boolean[])
RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
DECLARE
	done bigint[];
BEGIN
	WITH gone AS (
		DELETE FROM @schema@.dead d USING unnest(places, serials, dues, mine) AS g (place, serial, due, mine)
		WHERE d.serial = g.serial AND d.place = g.place
			AND NOT EXISTS (SELECT 1 FROM @schema@.timer t WHERE t.serial = d.serial)
		RETURNING d.serial, d.place, g.due, g.mine, d.version, d.kind, d.payload),
	back AS (
		INSERT INTO @schema@.timer (serial, place, due, session, version, kind, payload)
		SELECT gone.serial, gone.place, gone.due, CASE WHEN gone.mine THEN s ELSE 0 END, gone.version, gone.kind,
			gone.payload FROM gone RETURNING timer.serial)
	SELECT array_agg(serial) INTO done FROM back;
	IF cardinality(done) = cardinality(serials) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY(SELECT ROW(g.number, 5, g.place, g.serial)::@schema@.outcome
		FROM unnest(numbers, places, serials) AS g (number, place, serial) WHERE done IS NULL OR g.serial <> ALL (done)));
END $$;

CREATE OR REPLACE FUNCTION @schema@.op_drop(s bigint, numbers integer[], places bigint[], serials bigint[])
RETURNS SETOF @schema@.outcome LANGUAGE plpgsql AS $$
DECLARE
	done bigint[];
BEGIN
	WITH gone AS (
		DELETE FROM @schema@.dead d USING unnest(places, serials) AS g (place, serial)
		WHERE d.serial = g.serial AND d.place = g.place RETURNING d.serial)
	SELECT array_agg(serial) INTO done FROM gone;
	IF cardinality(done) = cardinality(serials) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @schema@.keep(s, ARRAY(SELECT ROW(g.number, 5, g.place, g.serial)::@schema@.outcome
		FROM unnest(numbers, places, serials) AS g (number, place, serial) WHERE done IS NULL OR g.serial <> ALL (done)));
END $$;

-- Claims free rows of these kinds that are due within `ahead`, from the deadline `low` on, the earliest first. A claim
-- is a batch, so the server refuses a claim that arrives late over a connection that was given up.
CREATE OR REPLACE FUNCTION @schema@.claim(s bigint, n bigint, low bigint, ahead bigint, known integer[], most integer)
RETURNS SETOF @schema@.timer LANGUAGE plpgsql AS $$
DECLARE
	-- A variable can bound the scan of the index. A volatile function cannot: the scan would go on through all far
	-- timers.
	until bigint := @schema@.now_ns() + ahead;
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	IF low = '-9223372036854775808' THEN
		PERFORM @schema@.reap_rows(10000);
	END IF;
	PERFORM @schema@.batch_begin(s, n, true);
	-- By kind, so that the query reads no rows of kinds that this process does not have.
	RETURN QUERY UPDATE @schema@.timer t SET session = s, started = false FROM (
		SELECT f.serial FROM @schema@.kind k CROSS JOIN LATERAL (
			SELECT x.serial, x.due, x.place FROM @schema@.timer x
			WHERE x.session = 0 AND x.kind = k.id AND x.due >= low AND x.due <= until
			ORDER BY x.due, x.place, x.serial LIMIT most FOR UPDATE SKIP LOCKED) AS f
		WHERE k.id = ANY (known) AND NOT k.paused
		ORDER BY f.due, f.place, f.serial LIMIT most) AS c
	WHERE t.serial = c.serial RETURNING t.*;
END $$;

-- A claim of recent rows, for the time while an old snapshot keeps many dead rows. It begins at `low`, at `ahead`
-- before now, or at the earliest row that it has freed, whichever is earliest. So it passes over few dead rows. Looks
-- find the rows before that.
CREATE OR REPLACE FUNCTION @schema@.claim_recent(s bigint, n bigint, low bigint, ahead bigint, known integer[], most integer)
RETURNS SETOF @schema@.timer LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	low := least(low, @schema@.now_ns() - ahead, @schema@.reap_rows(10000));
	RETURN QUERY SELECT * FROM @schema@.claim(s, n, low, ahead, known, most);
END $$;

-- Claims rows that a look has found. Another session may have claimed, ended or moved them meanwhile.
CREATE OR REPLACE FUNCTION @schema@.claim_found(s bigint, n bigint, serials bigint[], ahead bigint, known integer[])
RETURNS SETOF @schema@.timer LANGUAGE plpgsql AS $$
DECLARE
	until bigint := @schema@.now_ns() + ahead;
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	PERFORM @schema@.batch_begin(s, n, true);
	RETURN QUERY UPDATE @schema@.timer t SET started = false, session = s FROM (
		SELECT x.serial FROM @schema@.timer x JOIN @schema@.kind k ON k.id = x.kind
		WHERE x.serial = ANY (serials) AND x.session + 0 = 0 AND x.due + 0 <= until AND NOT k.paused AND k.id = ANY (known)
		ORDER BY x.serial FOR UPDATE OF x SKIP LOCKED) AS c
	WHERE t.serial = c.serial RETURNING t.*;
END $$;

-- Frees rows that this session has claimed but not started.
CREATE OR REPLACE FUNCTION @schema@.give_back(s bigint, n bigint, serials bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM @schema@.batch_begin(s, n, true);
	UPDATE @schema@.timer SET session = 0 WHERE serial = ANY (serials) AND session = s AND NOT started;
END $$;

-- The functions below are for programs in any language, inside their own transactions.

-- Makes a timer, and returns its id as "place-serial". If a timer has the key, returns its id, and changes nothing.
CREATE OR REPLACE FUNCTION @schema@.schedule_ns(kind text, due bigint, payload bytea, key bytea, version bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	number integer;
	made text;
BEGIN
	SELECT id INTO number FROM @schema@.kind WHERE name = schedule_ns.kind;
	IF NOT FOUND THEN
		INSERT INTO @schema@.kind (name) VALUES (schedule_ns.kind) ON CONFLICT DO NOTHING;
		SELECT id INTO number FROM @schema@.kind WHERE name = schedule_ns.kind;
	END IF;
	LOOP
		INSERT INTO @schema@.timer (serial, place, due, version, kind, key, payload)
			VALUES (nextval('@schema@.single'), @schema@.place_of(schedule_ns.due), schedule_ns.due, schedule_ns.version,
				number, nullif(schedule_ns.key, ''), schedule_ns.payload)
			ON CONFLICT DO NOTHING RETURNING timer.place || '-' || timer.serial INTO made;
		IF made IS NULL THEN
			SELECT t.place || '-' || t.serial INTO made FROM @schema@.timer t WHERE t.key = schedule_ns.key;
		END IF;
		-- The timer with the key may have ended in between. Then the loop tries again.
		EXIT WHEN made IS NOT NULL;
	END LOOP;
	RETURN made;
END $$;

CREATE OR REPLACE FUNCTION @schema@.schedule(kind text, due timestamptz, payload bytea DEFAULT '', key bytea DEFAULT NULL,
	version bigint DEFAULT 0) RETURNS text LANGUAGE sql AS
$$SELECT @schema@.schedule_ns(kind, (extract(epoch FROM due) * 1000000)::bigint * 1000, payload, key, version)$$;

-- Ends a timer. Returns 0 if it never ran, 4 if an attempt began earlier, 3 if it runs now and stays, 5 if there is
-- none.
CREATE OR REPLACE FUNCTION @schema@.cancel(id text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	p bigint := regexp_replace(id, '-[0-9]+$', '');
	n bigint := substring(id FROM '[0-9]+$');
	tries bigint;
BEGIN
	DELETE FROM @schema@.timer t WHERE t.serial = n AND t.place = p AND @schema@.may(t.session, t.started, 0, false)
		RETURNING t.attempt INTO tries;
	IF FOUND THEN
		RETURN CASE WHEN tries = 0 THEN 0 ELSE 4 END;
	END IF;
	RETURN CASE WHEN EXISTS (SELECT 1 FROM @schema@.timer t WHERE t.serial = n AND t.place = p) THEN 3 ELSE 5 END;
END $$;

CREATE OR REPLACE FUNCTION @schema@.cancel_key(key bytea) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	id text;
BEGIN
	SELECT t.place || '-' || t.serial INTO id FROM @schema@.timer t WHERE t.key = cancel_key.key;
	RETURN CASE WHEN id IS NULL THEN 5 ELSE @schema@.cancel(id) END;
END $$;

-- Ends the run of a timer inside the transaction that has the run's effect. Returns false if the run is stale: then the
-- caller must roll back.
CREATE OR REPLACE FUNCTION @schema@.finish(place bigint, serial bigint, fence bigint, attempt bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM @schema@.timer t WHERE t.serial = finish.serial AND t.place = finish.place
		-- For a process of version 1 the fence is the number of its session.
		AND (t.fence = finish.fence OR (t.session = finish.fence
			AND EXISTS (SELECT 1 FROM @schema@.session x WHERE x.id = t.session AND x.version = 1)))
		AND t.attempt = finish.attempt AND t.started;
	RETURN FOUND;
END $$;
