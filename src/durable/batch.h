/* SPDX-License-Identifier: MIT */
/* [io] One transaction: its operations, and the acknowledgements that wait for it. */
#ifndef TWI_DURABLE_BATCH_H
#define TWI_DURABLE_BATCH_H

#include "durable/set.h"

/* An outcome that the store decides. */
#define TWI_OUTCOME_OF_STORE (-1)

/* NULL: no memory. */
struct twi_batch *twi_batch_create(uint32_t most);
void twi_batch_destroy(struct twi_batch *batch);

/* Whether there may be no place for what one item needs: two operations, one acknowledgement. Of a shared set also
 * whether there are bytes enough for one statement. */
bool twi_batch_full(const struct tw_durable *set);

/* Adds an operation for an id; `timer` (may be NULL) is settled when it is done. */
struct tw_durable_row *twi_batch_op(struct tw_durable *set, enum tw_durable_op_type type,
				    struct tw_durable_id id, struct twi_durable_timer *timer);
/* The last operation is of a timer that the set has in memory, and is the end of its own run (`own`). */
void twi_batch_fence(struct tw_durable *set, struct twi_durable_timer *timer, bool own);
/* Adds an acknowledgement of the last operation; without one, of nothing. */
void twi_batch_ack(struct tw_durable *set, struct tw_durable_id id, void *context, int outcome);
void twi_batch_ack_only(struct tw_durable *set, struct tw_durable_id id, void *context, int outcome,
			int status);

/* Before another try: a millisecond. */
void twi_batch_pause(struct tw_durable *set);
/* Commits what there is, settles the timers, and acknowledges. */
void twi_batch_commit(struct tw_durable *set);

/* Nothing is written or run any more. */
void twi_set_fail(struct tw_durable *set, int error);
/* Notes whether a condition holds. The state follows from all of them. */
void twi_set_condition(struct tw_durable *set, enum twi_condition condition, bool holds);

#endif
