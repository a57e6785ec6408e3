/* SPDX-License-Identifier: MIT */
/* An open store in Redis. */
#ifndef TWI_DURABLE_REDIS_STORE_H
#define TWI_DURABLE_REDIS_STORE_H

#include "durable/redis/link.h"

#include <tickwheel/durable_store.h>

struct twi_redis {
	struct twi_redis_link link;
	char *name;
	int64_t poll_ns;
	/* Kinds: the server's number for each number of the caller, and back. */
	const char *const *kinds;
	size_t kind_count, number_count;
	uint32_t *to_server;
	uint32_t *from_server; /* UINT32_MAX for a kind that the caller does not have */
	/* Batches. A commit of many operations has several. */
	int64_t batch; /* the number of the session's last batch that was done */
	/*
	 * The outcome of the next batches is unknown. They may be done already, or requests that
	 * are still on their way over an old connection may do them.
	 */
	bool unsettled;
	bool sent;   /* a part of a commit was sent or done, and the set repeats the commit */
	size_t done; /* operations of that commit that are done for certain */
	/* The fields for claims. */
	int64_t claim_at_ns; /* CLOCK_BOOTTIME of the next claim */
	/* The session may have rows that the set does not have, and that must be read. */
	bool unread;
};

/*
 * row.c: makes the row of a timer from three values of a reply: its serial, its `timer` and its
 * `run` (lua/common.lua; `run` may be NULL). The row is valid as long as the reply. Returns false
 * if the reply has the wrong form.
 */
bool twi_redis_row(const struct twi_redis *store, const char *serial, const redisReply *timer,
		   const redisReply *run, struct tw_durable_row *ret);
/* row.c: makes the row of a dead letter in the same way. */
bool twi_redis_row_dead(const struct twi_redis *store, const char *serial, const redisReply *letter,
			struct tw_durable_row *ret);
/* Adds a timer in the server's format to an argument. */
void twi_redis_row_add(const struct twi_redis *store, struct twi_arguments *arguments,
		       const struct tw_durable_row *row);
/* Compares two rows in the order of lists: by deadline, place and serial. */
int twi_redis_order(const struct tw_durable_row *a, const struct tw_durable_row *b);

/* The result of a look at batches whose replies were lost. */
struct twi_redis_settled {
	int64_t batches; /* how many of the batches that were sent are done */
	bool claim;      /* the last of these batches was a claim, or gave rows back */
	redisReply *reply;
	const redisReply *outcomes; /* the outcomes of a commit, a part of `reply` */
};

/*
 * settle.c: after a lost reply or a refusal, finds out which batches are done. Returns 0 and *ret,
 * whose `reply` the caller frees; -ESTALE if the server no longer has the session; or another code.
 */
int twi_redis_settle(struct twi_redis *store, struct twi_redis_settled *ret);
/* Returns the code for the set after a batch has failed: -EAGAIN if the set should try again. */
int twi_redis_refused(struct twi_redis *store, int error);
/*
 * Returns the code for the set after a request that changes nothing has failed: -EAGAIN if the set
 * should try again.
 */
int twi_redis_softened(struct twi_redis *store, int error);

/* Defined in commit.c. */
int twi_redis_commit(void *store, struct tw_durable_op *ops, size_t count, int64_t now_ns);

/* Defined in claim.c. */
int twi_redis_claim(void *store, size_t max, tw_durable_give *give, void *to);

/* Defined in read.c. */
int twi_redis_near(void *store, const struct tw_durable_row *after, int64_t until_ns, size_t max,
		   tw_durable_give *give, void *to);
int twi_redis_find(void *store, struct tw_durable_id id, tw_durable_give *give, void *to);
int twi_redis_find_key(void *store, const void *key, size_t bytes, tw_durable_give *give, void *to);
int twi_redis_dead(void *store, struct tw_durable_id after, size_t max, tw_durable_give *give,
		   void *to);
int twi_redis_dead_trim(void *store, uint64_t most, int64_t ended_before_ns, size_t max);

/* Defined in session.c. */
int twi_redis_beat(void *store, struct tw_durable_session *ret_session);
int twi_redis_open(void *store, const char *const *kinds, size_t count,
		   struct tw_durable_opened *ret_opened);
/* Ends the session, and frees its timers. */
int twi_redis_session_end(struct twi_redis *store);

#endif
