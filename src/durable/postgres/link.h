/* SPDX-License-Identifier: MIT */
/*
 * The two connections of a store: one for statements, one for heartbeats. (look.c may have a third
 * one.)
 *
 * The store waits for the reply to a statement for about a quarter of a session at most, and sends
 * heartbeats meanwhile. After that time, and after a loss of the connection, it closes the
 * connection, because it is unknown whether the statement was done.
 */
#ifndef TWI_DURABLE_POSTGRES_LINK_H
#define TWI_DURABLE_POSTGRES_LINK_H

#include "durable/postgres/errors.h"
#include "durable/postgres/values.h"

struct twi_link {
	char *address;
	const char *schema; /* the name of the schema; the store frees it */
	struct twi_postgres_notice notice;
	bool warned; /* the user was warned that the server is not verified */
	int64_t session_ns;
	PGconn *statements, *beats; /* the two connections; NULL while closed */
	struct twi_values values;   /* the arguments of the next statement */
	/* The heartbeat. All times are of CLOCK_BOOTTIME. */
	char *beat_text;
	struct twi_values beat_values;
	uint64_t session; /* number of the session, or 0 */
	bool over;        /* the server has refused the session */
	bool beat_waits;  /* a heartbeat waits for its reply */
	int64_t beat_sent_ns, beat_at_ns;
	int64_t until_ns; /* CLOCK_BOOTTIME after which no run may begin */
	int64_t wall_ns;  /* the server's clock minus CLOCK_BOOTTIME */
	bool wall_known;
	int64_t trip_ns;  /* the shortest time between a request and its reply; 0: unknown */
	int64_t piped_ns; /* when the pipeline began */
	int64_t connect_at_ns, pause_ns; /* the next try to connect, and the pause before it */
};

int64_t twi_link_now_ns(void);

/*
 * Makes the missing connections. Returns 0, or -EAGAIN if one cannot be made or the next try is not
 * due yet.
 */
int twi_link_open(struct twi_link *link);
/*
 * Makes a connection. The server ends each of its statements after `limit_ns`. Returns NULL on
 * failure.
 */
PGconn *twi_link_make(const struct twi_link *link, int64_t limit_ns);
/* Postpones the next try to connect. */
void twi_link_pause(struct twi_link *link);
void twi_link_close(struct twi_link *link);
void twi_link_free(struct twi_link *link);

/* Records a new session, the server's time in the reply, and when the request was sent. */
void twi_link_session(struct twi_link *link, uint64_t session, int64_t server_ns, int64_t sent_ns);

/* Records the server's time of a reply in the pipeline. */
void twi_link_time(struct twi_link *link, int64_t server_ns);

/*
 * Waits a moment for the reply to a heartbeat. If the reply were read late, the server's time would
 * be less exact.
 */
void twi_link_beat_wait(struct twi_link *link);

/* Sends a heartbeat if it is due, and reads a reply that has arrived. */
void twi_link_beat(struct twi_link *link);

/*
 * Runs one statement with the arguments in `values`. Returns 0 and *ret (`ret` may be NULL), which
 * the caller clears, or a code of errors.h.
 */
int twi_link_run(struct twi_link *link, const char *text, PGresult **ret);

/*
 * Begin a pipeline, and send a statement of it. The statements of a pipeline are one transaction,
 * and twi_link_pipe_end waits for all their replies.
 */
int twi_link_pipe_begin(struct twi_link *link);
int twi_link_pipe_send(struct twi_link *link, const char *text);
/*
 * Ends a pipeline, and passes each reply to `give`, in order. Returns 0, or the code of the first
 * statement that failed. After -ECONNRESET the transaction may have been done; after any other code
 * it was not done.
 */
int twi_link_pipe_end(struct twi_link *link, void (*give)(void *to, const PGresult *result),
		      void *to);

#endif
