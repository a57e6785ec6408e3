/* SPDX-License-Identifier: MIT */
/*
 * [io] The session of a set whose store is shared with others (docs/internals/durable-shared.md).
 *
 * A timer in memory belongs to the session that has claimed it. If the set gets another session, the
 * timers of the old one that wait leave the memory, because others may claim them now. Those that
 * run go on, and the store refuses their ends.
 */
#ifndef TWI_DURABLE_SHARED_SESSION_H
#define TWI_DURABLE_SHARED_SESSION_H

#include "durable/set.h"

/* Lets the store send its heartbeat, and notes what it says. 0, or a code that ends the set. */
int twi_session_beat(struct tw_durable *set);

/* After a beat: drops the timers of an old session, and claims if it is time. 1: more is there; 0; or
 * such a code. */
int twi_session_claim(struct tw_durable *set);

/* The nanoseconds until one of the two is to be called. */
int64_t twi_session_wait_ns(struct tw_durable *set);

/* Whether a timer in memory is claimed no longer. */
bool twi_session_stale(const struct tw_durable *set, struct twi_durable_timer *timer);

#endif
