/* SPDX-License-Identifier: MIT */
/* [io] One transaction: its operations, and the acknowledgements that wait for it. */
#ifndef TWI_DURABLE_BATCH_H
#define TWI_DURABLE_BATCH_H

#include "durable/set.h"

/* Stands for an outcome that the store decides. */
#define TWI_OUTCOME_OF_STORE (-1)

/* Makes a batch for `most` operations. Returns NULL if there is no memory. */
struct twi_batch *twi_batch_create(uint32_t most);
void twi_batch_destroy(struct twi_batch *batch);

/*
 * Returns whether one more item may not fit. An item needs up to two operations and one
 * acknowledgement. In a shared set, also returns true if the batch has as many bytes as a server
 * may get at once.
 */
bool twi_batch_full(const struct tw_durable *set);

/* Adds an operation for an id. If `timer` is not NULL, it is settled after the commit. */
struct tw_durable_row *twi_batch_op(struct tw_durable *set, enum tw_durable_op_type type,
				    struct tw_durable_id id, struct twi_durable_timer *timer);
/*
 * Adds to the last operation the session that has claimed the timer. The timer must be in memory. A
 * shared store refuses the operation if the claim is no longer valid. `own`: the operation ends a
 * run of this set.
 */
void twi_batch_fence(struct tw_durable *set, struct twi_durable_timer *timer, bool own);
/*
 * Add an acknowledgement. twi_batch_ack adds one for the last operation, twi_batch_ack_only one
 * that belongs to no operation.
 */
void twi_batch_ack(struct tw_durable *set, struct tw_durable_id id, void *context, int outcome);
void twi_batch_ack_only(struct tw_durable *set, struct tw_durable_id id, void *context, int outcome,
			int status);

/*
 * Adds the acknowledgement of a fresh timer that was absorbed. twi_batch_absorbed_tell passes these
 * acknowledgements to the hook, without a commit. If there are many, twi_batch_absorbed calls
 * twi_batch_absorbed_tell itself.
 */
void twi_batch_absorbed(struct tw_durable *set, struct tw_durable_id id, void *context);
void twi_batch_absorbed_tell(struct tw_durable *set);

/* Waits a millisecond before another try. */
void twi_batch_pause(struct tw_durable *set);
/* Commits the batch, settles its timers, and calls the acknowledgement hook. */
void twi_batch_commit(struct tw_durable *set);

/* Makes the set fail: from now on nothing is written, and no run begins. */
void twi_set_fail(struct tw_durable *set, int error);
/* Records whether a condition holds. The set's state follows from all its conditions. */
void twi_set_condition(struct tw_durable *set, enum twi_condition condition, bool holds);

#endif
