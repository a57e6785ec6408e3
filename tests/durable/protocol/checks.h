/* SPDX-License-Identifier: MIT */
/* The properties. A step that breaks one is noted in its state (`broken`). */
#ifndef PROTOCOL_CHECKS_H
#define PROTOCOL_CHECKS_H

#include "state.h"

enum property {
	PROPERTY_NONE = 0,
	PROPERTY_LOST,      /* an acknowledged timer neither runs nor was cancelled */
	PROPERTY_CANCELLED, /* a run begins after DONE, ABSORBED or ATTEMPTED, or DONE after a run */
	PROPERTY_TWICE,     /* a second run without a session that ended during the first */
	PROPERTY_EARLY,     /* a run before its deadline by the server's clock */
	PROPERTY_FENCE,     /* a run with a smaller fence than one before it */
	PROPERTY_STALE_END, /* an end of one session changed the row of another */
	PROPERTY_BATCH,     /* a batch took effect twice */
	PROPERTY_EFFECT,    /* finish_in took effect twice */
	PROPERTY_REST,      /* nothing more happens, and a row or a timer in memory is left */
	PROPERTY_LIVELOCK,  /* steps go on for ever, and no rest can be reached */
};

const char *property_text(enum property property);

void check_break(struct state *state, enum property property);
/* A run of the timer begins, with this fence. */
void check_begin(struct state *state, int timer, uint8_t fence);
/* A cancel of the timer has taken effect. */
void check_cancelled(struct state *state, int timer, bool attempted);
/* finish_in has made its effect. */
void check_effect(struct state *state, int timer);
/* Forgets the history of timers that are over, so that equal futures are equal states. */
void check_timers(struct state *state);
/* For a state in which nothing happens any more by itself. */
enum property check_rest(const struct state *state);

#endif
