/* SPDX-License-Identifier: MIT */
/*
 * Dead letters: timers that were given up. They lie in a table of their own, in the order of their
 * ids, so that no load meets them. Their keys are free; the row keeps its key for the reader.
 */
#ifndef TWI_DURABLE_FILE_DEAD_H
#define TWI_DURABLE_FILE_DEAD_H

#include "durable/file/timers.h"

/* These are made inside a transaction. 1: done; 0: there is none; or an error. */
int twi_dead_bury(struct twi_timers *timers, const struct tw_durable_row *want, int64_t now_ns);
int twi_dead_revive(struct twi_timers *timers, const struct tw_durable_row *want);
int twi_dead_drop(struct twi_timers *timers, struct tw_durable_id id);

/* Adds one that nothing has the id of. */
int twi_dead_put(struct twi_timers *timers, const struct tw_durable_row *row, int64_t ended_ns);

/* 1 and the dead letter, whose bytes stay until the next call; 0: there is none; or an error. */
int twi_dead_get(struct twi_timers *timers, struct tw_durable_id id, struct tw_durable_row *ret);
/*
 * Removes those that ended before a time, and of the others the oldest beyond `most`, in a transaction
 * of its own; at most `max`. Returns how many.
 */
int twi_dead_trim(struct twi_timers *timers, uint64_t most, int64_t ended_before_ns, size_t max);
/* Gives at most `most` dead letters behind an id. */
int twi_dead_list(struct twi_timers *timers, struct tw_durable_id after, size_t most,
		  tw_durable_give *give, void *to);

#endif
