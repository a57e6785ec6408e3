/* SPDX-License-Identifier: MIT */
/*
 * [io] Lingering: new timers wait longer than a commit window for their commit, because their kind
 * has `linger_ns`. They are still STAGED, so they are absorbed if they end before their commit. A
 * heap orders them by the end of the wait, and each timer has its index in the heap.
 */
#ifndef TWI_DURABLE_TIME_LINGER_H
#define TWI_DURABLE_TIME_LINGER_H

#include "durable/set.h"

/*
 * Adds a timer, which lingers until this time of the engine's clock. Returns false if there is no
 * memory.
 */
bool twi_linger_add(struct tw_durable *set, struct twi_durable_timer *timer, int64_t until_ns);
void twi_linger_remove(struct tw_durable *set, struct twi_durable_timer *timer);

/* Returns the timer whose wait ends first, if it ends by `until_ns`, or NULL. */
struct twi_durable_timer *twi_linger_first(const struct tw_durable *set, int64_t until_ns);

#endif
