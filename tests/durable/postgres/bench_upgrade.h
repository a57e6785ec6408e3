/* SPDX-License-Identifier: MIT */
/*
 * A schema of version 1, a process of version 1 that uses it, and the upgrade. The bench sends the
 * statements of such a process.
 */
#ifndef TESTS_DURABLE_POSTGRES_BENCH_UPGRADE_H
#define TESTS_DURABLE_POSTGRES_BENCH_UPGRADE_H

#include "bench_postgres.h"

#define COLUMNS "serial, place, due, attempt, session, version, kind, started, key, payload"

enum { KEPT = 16 }; /* the number of timers in a scene */

/* A process of version 1. */
struct old {
	PGconn *connection;
	long long session, batch;
};

extern struct old old;

/* A text of SQL. */
struct text {
	char at[65536];
	size_t bytes;
};

PGconn *server_connect(void);

/* Runs SQL that must succeed. Returns the number of rows. */
int old_do(const char *text, long long *ret_number);

/* Claims at most `most` rows as the old process. Returns how many it has claimed. */
int old_claim(int most);

/* Start a timer, or end its run, as the old process. Return the number of unusual outcomes. */
int old_start(int serial);
int old_end(int serial);

/* Ends a run in a transaction, like a user. Returns false if the server refuses the fence. */
bool old_finish(long long serial, long long fence);

void old_session_begin(void);

/* Makes a schema of version 1 with KEPT free timers of the kind "mail", which are due. */
void scene_make(void);
void scene_end(void);

/* Returns the code of tw_durable_postgres_migrate, which uses a new connection. */
int upgrade(void);

/*
 * Stops the server's time again after an upgrade. The upgrade replaces the function that reads the
 * time, and so removes the version of the tests, whose time stands still.
 */
void clock_stop(void);

/* Upgrades the schema, then calls clock_stop(). */
void upgrade_done(void);

/* Reads the text of the upgrade. */
void upgrade_text(struct text *text);

/* Cuts step 4 off the end of the text. Returns step 4 without its COMMIT. */
char *step_4(struct text *text);

/*
 * Runs a text of the upgrade step by step, until a step fails. Sets ret_state to the SQL state of
 * that step, or to "" if none has failed.
 */
void text_run(PGconn *connection, char *text, char ret_state[6]);

/* Runs the steps before step 4. Sets *ret_last to step 4 without its COMMIT. */
void upgrade_prepare(PGconn *connection, struct text *text, char **ret_last);

/* Runs SQL that must succeed, and returns no rows. */
void good(PGconn *connection, const char *text);

/* Waits until the connection's statement waits for a lock of a table. */
void blocked_wait(PGconn *connection, const char *table);

#endif
