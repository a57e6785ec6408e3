/* SPDX-License-Identifier: MIT */
/*
 * Dead letters: timers that were given up. They have a table of their own, in the order of their
 * ids, so that no load reads them. Another timer may use the key of a dead letter. The dead
 * letter's row keeps the key, so that people can read it.
 */
#ifndef TWI_DURABLE_FILE_DEAD_H
#define TWI_DURABLE_FILE_DEAD_H

#include "durable/file/timers.h"

/*
 * Make a timer a dead letter, make a dead letter a timer, or remove a dead letter. Must be called
 * inside a transaction. Return 1 if done, 0 if there is no such timer or dead letter, or an error.
 */
int twi_dead_bury(struct twi_timers *timers, const struct tw_durable_row *want, int64_t now_ns);
int twi_dead_revive(struct twi_timers *timers, const struct tw_durable_row *want);
int twi_dead_drop(struct twi_timers *timers, struct tw_durable_id id);

/* Adds a dead letter. No timer and no other dead letter may have its id. */
int twi_dead_put(struct twi_timers *timers, const struct tw_durable_row *row, int64_t ended_ns);

/*
 * Returns 1 and the dead letter, 0 if there is none, or an error. The row's bytes stay valid until
 * the next call.
 */
int twi_dead_get(struct twi_timers *timers, struct tw_durable_id id, struct tw_durable_row *ret);
/*
 * Removes the dead letters that ended before a time. If more than `most` are left, also removes the
 * oldest of these. Removes at most `max`, in a transaction of its own. Returns how many, or an
 * error.
 */
int twi_dead_trim(struct twi_timers *timers, uint64_t most, int64_t ended_before_ns, size_t max);
/*
 * Passes dead letters to `give` in the order of their ids, at most `most`. Begins after the id
 * `after`, or at the first dead letter if `after` is zeros.
 */
int twi_dead_list(struct twi_timers *timers, struct tw_durable_id after, size_t most,
		  tw_durable_give *give, void *to);

#endif
