/* SPDX-License-Identifier: MIT */
/*
 * Loading in order of deadline. Rows of a bucket are sorted by serial, not by deadline, because
 * then new ones are neighbours. So a load first looks at all
 * deadlines of the bucket (0.1 µs each), and keeps the earliest that fit. Then it reads these rows
 * in the order of the file and sorts them, 65,536 at once: in the order of time each row would cost
 * a page.
 */
#ifndef TWI_DURABLE_FILE_NEAR_H
#define TWI_DURABLE_FILE_NEAR_H

#include "durable/file/timers.h"

/* Whether a load gives timers of a kind. */
typedef bool twi_near_wanted(const void *to, uint32_t kind);

/*
 * Gives at most `most` timers in the order of (due_ns, place, serial): those behind `after` (NULL:
 * all) whose deadline is at most `until_ns`. The row's bytes stay during the call. Returns 0, an
 * error, or what `give` returned, if that is negative.
 */
int twi_near_load(struct twi_timers *timers, const struct tw_durable_row *after, int64_t until_ns,
		  size_t most, twi_near_wanted *wanted, tw_durable_give *give, void *to);

#endif
