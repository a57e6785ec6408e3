/* SPDX-License-Identifier: MIT */
/*
 * [io] New timers that wait longer than a window for their commit, because their kind says so. They
 * are still STAGED, so an end before their commit absorbs them. A heap orders them by the end of the
 * wait; each timer knows its place in it.
 */
#ifndef TWI_DURABLE_TIME_LINGER_H
#define TWI_DURABLE_TIME_LINGER_H

#include "durable/set.h"

/* Adds a timer until this time of the engine. False: there is no memory. */
bool twi_linger_add(struct tw_durable *set, struct twi_durable_timer *timer, int64_t until_ns);
void twi_linger_remove(struct tw_durable *set, struct twi_durable_timer *timer);

/* The one whose wait ends first, if it ends by then; else NULL. */
struct twi_durable_timer *twi_linger_first(const struct tw_durable *set, int64_t until_ns);

#endif
