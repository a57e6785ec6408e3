/* SPDX-License-Identifier: MIT */
/* An open store in PostgreSQL. */
#ifndef TWI_DURABLE_POSTGRES_STORE_H
#define TWI_DURABLE_POSTGRES_STORE_H

#include "durable/postgres/link.h"

#include <tickwheel/durable_store.h>

/* The texts of SQL, with the name of the schema. */
enum twi_postgres_sql {
	TWI_POSTGRES_SESSION_BEGIN,
	TWI_POSTGRES_SESSION_END,
	TWI_POSTGRES_BEAT,
	TWI_POSTGRES_RESERVE,
	TWI_POSTGRES_KINDS_ADD,
	TWI_POSTGRES_KINDS,
	TWI_POSTGRES_LEVEL,
	TWI_POSTGRES_BATCH_BEGIN,
	TWI_POSTGRES_BATCH_LOOK,
	TWI_POSTGRES_PUT,
	TWI_POSTGRES_DELETE,
	TWI_POSTGRES_MOVE,
	TWI_POSTGRES_START,
	TWI_POSTGRES_BURY,
	TWI_POSTGRES_REVIVE,
	TWI_POSTGRES_DROP,
	TWI_POSTGRES_CLAIM,
	TWI_POSTGRES_CLAIM_RECENT,
	TWI_POSTGRES_CLAIM_FOUND,
	TWI_POSTGRES_LOOK,
	TWI_POSTGRES_HELD,
	TWI_POSTGRES_GIVE_BACK,
	TWI_POSTGRES_NEAR,
	TWI_POSTGRES_FIND,
	TWI_POSTGRES_FIND_DEAD,
	TWI_POSTGRES_FIND_KEY,
	TWI_POSTGRES_DEAD,
	TWI_POSTGRES_DEAD_TRIM,
	TWI_POSTGRES_SQL_COUNT,
};

/*
 * The looks for due rows (look.c), on a connection of their own. All times are of CLOCK_BOOTTIME.
 */
struct twi_look {
	PGconn *connection; /* NULL: there are no looks, and claims begin at the beginning */
	struct twi_values values;
	bool waits;             /* a look was sent, and its reply has not arrived */
	bool quick;             /* the last look was quick, and began at the beginning */
	int64_t at_ns, sent_ns; /* when the next look is due, and the last one was sent */
	int64_t slow_ns;        /* the last time when a look or a claim took long */
	int64_t retry_ns;       /* before this time no connection is tried */
	struct twi_look_place {
		int64_t due, place, serial;
	} after; /* the next look begins behind this row */
	/* The rows that the last look found, until a claim has asked for them. */
	PGresult *found;
};

struct twi_postgres {
	struct twi_link link;
	struct twi_look look;
	char *texts[TWI_POSTGRES_SQL_COUNT];
	char *schema, *name;
	int64_t poll_ns;
	/* Kinds: the server's number for each number of the caller, and back. */
	size_t kind_count, number_count;
	int32_t *to_server;
	uint32_t *from_server; /* UINT32_MAX for a kind that the caller does not have */
	/* The fields for batches. */
	int64_t batch; /* the number of the session's last committed batch */
	/*
	 * The outcome of the next batch is unknown. It may be committed already, or a request that
	 * is still on its way over an old connection may commit it.
	 */
	bool unsettled;
	bool sent; /* if unsettled: the batch was sent as a commit, which the set repeats */
	/* The fields for claims. */
	int64_t low; /* deadline at which the next claim begins; INT64_MIN: at the first */
	/*
	 * CLOCK_BOOTTIME of the next claim that begins at the first deadline (with looks: at the
	 * recent rows)
	 */
	int64_t whole_at_ns;
	/* The session may have rows that the set does not have, and that must be read. */
	bool unread;
};

/* Makes *ret from a row of a query's result. *ret is valid as long as the result. */
void twi_postgres_row(const struct twi_postgres *store, const PGresult *result, int at,
		      struct tw_durable_row *ret);

/*
 * settle.c: after a lost reply or a refusal, finds out whether the next batch is committed. Returns
 * 1 if it is; then *ret_claim says whether the batch was a claim, and *ret (`ret` may be NULL) has
 * its outcomes in column 1. Returns 0 if it is not committed yet, -ESTALE if the server no longer
 * has the session, or another code.
 */
int twi_postgres_settle(struct twi_postgres *store, bool *ret_claim, PGresult **ret);
/*
 * Returns the code for the set after a commit or a claim has failed: -EAGAIN if the set should try
 * again.
 */
int twi_postgres_refused(struct twi_postgres *store, int error);

/* Defined in commit.c. */
int twi_postgres_commit(void *store, struct tw_durable_op *ops, size_t count, int64_t now_ns);

/* Defined in claim.c. */
int twi_postgres_claim(void *store, size_t max, tw_durable_give *give, void *to);

/*
 * look.c: judges a claim that began at the first deadline. If the claim took long, later claims take
 * only recent rows, and looks search for the older ones.
 */
void twi_look_judge(struct twi_postgres *store, int64_t sent_ns, int rows);
/* look.c: reads the reply to a look, and sends the next one if it is time. Does not wait. */
void twi_look_step(struct twi_postgres *store);
/*
 * look.c: records that a claim has asked for the first rows that a look found, and how many it got.
 */
void twi_look_claimed(struct twi_postgres *store, int asked, int claimed);
/* look.c: ends the looks. The next claim begins at the beginning. */
void twi_look_end(struct twi_postgres *store);

/* Defined in read.c. */
/* Adds the server's numbers of the kinds as an argument. */
void twi_postgres_kinds_argument(const struct twi_postgres *store, struct twi_values *values);
int twi_postgres_near(void *store, const struct tw_durable_row *after, int64_t until_ns, size_t max,
		      tw_durable_give *give, void *to);
int twi_postgres_find(void *store, struct tw_durable_id id, tw_durable_give *give, void *to);
int twi_postgres_find_key(void *store, const void *key, size_t bytes, tw_durable_give *give,
			  void *to);
int twi_postgres_dead(void *store, struct tw_durable_id after, size_t max, tw_durable_give *give,
		      void *to);
int twi_postgres_dead_trim(void *store, uint64_t most, int64_t ended_before_ns, size_t max);

/* Defined in session.c. */
int twi_postgres_beat(void *store, struct tw_durable_session *ret_session);
int twi_postgres_open(void *store, const char *const *kinds, size_t count,
		      struct tw_durable_opened *ret_opened);

#endif
