-- SPDX-License-Identifier: MIT
-- The tables of durable timers in PostgreSQL, version 2. `@schema@` stands for the name of the schema. functions.sql has
-- the functions. docs/internals/durable-shared.md has the protocol, and says what a new version must keep.
-- Times are nanoseconds since 1970, by the server's clock.
CREATE SCHEMA IF NOT EXISTS @schema@;

CREATE TABLE @schema@.meta (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	version integer NOT NULL,
	serial bigint NOT NULL, -- all serials below it may be in use
	session bigint NOT NULL, -- the greatest session so far
	serves integer NOT NULL -- libraries that know this version or a later one may open the schema
);
INSERT INTO @schema@.meta (version, serial, session, serves) VALUES (2, 1, 0, 2);

CREATE TABLE @schema@.kind (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9_.-]{1,63}$'),
	paused boolean NOT NULL DEFAULT false
);

-- A session: a process that has the store open. Its row is locked while a batch is written, so the heartbeats have
-- another table, `beat`.
CREATE TABLE @schema@.session (
	id bigint NOT NULL,
	batch bigint NOT NULL DEFAULT 0,
	claim boolean NOT NULL DEFAULT false, -- the batch was a claim
	outcomes bytea NOT NULL DEFAULT '', -- of the batch: only the unusual ones
	-- The defaults of `pid` and `version` are for version 1: its function session_begin, which does not know these columns,
	-- may still run just after an upgrade.
	pid integer NOT NULL DEFAULT 0, -- of the connection's server process
	name text NOT NULL,
	version integer NOT NULL DEFAULT 1, -- the version of the schema that its library knows
	-- The key includes the batch, so that a batch finds the latest version of the row at once, even if an old
	-- snapshot keeps all earlier versions.
	PRIMARY KEY (id, batch)
) WITH (fillfactor = 50);
CREATE TABLE @schema@.beat (
	session bigint PRIMARY KEY,
	expires bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE @schema@.timer (
	serial bigint PRIMARY KEY,
	place bigint NOT NULL,
	due bigint NOT NULL,
	attempt bigint NOT NULL DEFAULT 0,
	session bigint NOT NULL DEFAULT 0, -- 0: free
	fence bigint NOT NULL DEFAULT 0, -- the fence of the last start
	version bigint NOT NULL DEFAULT 0,
	kind integer NOT NULL,
	started boolean NOT NULL DEFAULT false, -- the session that has claimed the timer runs it
	open boolean NOT NULL DEFAULT false, -- an attempt began, in any session, and did not end
	key bytea,
	payload bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000,
	autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX timer_free ON @schema@.timer (kind, due, place, serial) WHERE session = 0;
CREATE INDEX timer_held ON @schema@.timer (session) WHERE session <> 0;
CREATE UNIQUE INDEX timer_key ON @schema@.timer (key) WHERE key IS NOT NULL;

CREATE TABLE @schema@.dead (
	serial bigint PRIMARY KEY,
	place bigint NOT NULL,
	due bigint NOT NULL,
	attempt bigint NOT NULL,
	version bigint NOT NULL,
	kind integer NOT NULL,
	key bytea,
	payload bytea NOT NULL,
	ended bigint NOT NULL
);
CREATE INDEX dead_ended ON @schema@.dead (ended);
CREATE INDEX dead_place ON @schema@.dead (place, serial);

-- The serials of schedule() below. No process reserves any of them.
CREATE SEQUENCE @schema@.single MINVALUE 4611686018427387904 MAXVALUE 9223372036854775807;

-- An operation with an unusual outcome.
CREATE TYPE @schema@.outcome AS (number integer, outcome integer, place bigint, serial bigint);
