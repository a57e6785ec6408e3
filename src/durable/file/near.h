/* SPDX-License-Identifier: MIT */
/*
 * Loads timers in the order of their deadlines. The rows of a bucket are sorted by serial, not by
 * deadline, so that new rows lie next to each other. So a load first reads all deadlines of the
 * bucket (0.1 us each). It keeps the earliest in a plan (plan.h), from which later loads continue.
 * Then it handles the rows in pieces of up to 10,000: it reads a piece in the order of the file,
 * and passes the rows to the caller in the order of deadlines.
 */
#ifndef TWI_DURABLE_FILE_NEAR_H
#define TWI_DURABLE_FILE_NEAR_H

#include "durable/file/timers.h"

/* Answers a question about the kind that has this number in the file. */
typedef bool twi_near_kind(const void *to, uint32_t kind);

struct twi_near {
	/* the load begins behind this timer, or at the first timer if it is NULL */
	const struct tw_durable_row *after;
	int64_t until_ns; /* the last deadline of the load */
	size_t most;
	twi_near_kind *known;  /* whether any load may pass on the kind; the answer never changes */
	twi_near_kind *wanted; /* whether this load passes on the kind, which is then known, too */
	tw_durable_give *give;
	void *to; /* passed to the three functions */
};

/*
 * Passes timers to `give` in the order of (due_ns, place, serial). The row's bytes stay valid
 * during the call of `give`. Returns 0, an error, or a negative result of `give`.
 */
int twi_near_load(struct twi_timers *timers, const struct twi_near *near);

#endif
