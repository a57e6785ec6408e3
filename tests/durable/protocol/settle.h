/* SPDX-License-Identifier: MIT */
/* What a process does with its timers when it knows how a request ended. */
#ifndef PROTOCOL_SETTLE_H
#define PROTOCOL_SETTLE_H

#include "state.h"

/*
 * Called when the request is written. `outcomes` are those of its operations; NULL stands for the
 * usual ones.
 */
void settle_done(struct state *state, int p, const uint8_t *outcomes);
/* Called when the session is over, and the request may be written or not. */
void settle_unknown(struct state *state, int p);
/* Called when the session is over, and the request is certainly not written. */
void settle_refused(struct state *state, int p);
/* Called when the process has learned that it has claimed these rows. */
void settle_claimed(struct state *state, int p, uint8_t rows);

#endif
