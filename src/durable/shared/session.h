/* SPDX-License-Identifier: MIT */
/*
 * [io] The session of a set whose store is shared with others (docs/internals/durable-shared.md).
 *
 * A timer in memory belongs to the session that has claimed it. If the set gets a new session, the
 * waiting timers of the old one leave the memory, because other sets may claim them now. Running
 * timers continue, but the store refuses the ends of their runs.
 */
#ifndef TWI_DURABLE_SHARED_SESSION_H
#define TWI_DURABLE_SHARED_SESSION_H

#include "durable/set.h"

/*
 * Lets the store send its heartbeat, and records the answer. Returns 0, or a code with which the
 * set fails.
 */
int twi_session_beat(struct tw_durable *set);

/*
 * Drops the timers of an old session, and claims timers if it is time. Called after a beat. Returns
 * 1 if there may be more timers to claim, 0 if not, or a code with which the set fails.
 */
int twi_session_claim(struct tw_durable *set);

/* Returns the nanoseconds until twi_session_beat or twi_session_claim must be called next. */
int64_t twi_session_wait_ns(struct tw_durable *set);

/*
 * Returns true if the set is shared and its present session has not claimed this timer in memory.
 */
bool twi_session_stale(const struct tw_durable *set, struct twi_durable_timer *timer);

#endif
