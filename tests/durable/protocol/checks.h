/* SPDX-License-Identifier: MIT */
/* The properties that must hold. A step that breaks one records it in its state (`broken`). */
#ifndef PROTOCOL_CHECKS_H
#define PROTOCOL_CHECKS_H

#include "state.h"

enum property {
	PROPERTY_NONE = 0,
	PROPERTY_LOST, /* an acknowledged timer neither runs nor was cancelled */
	/* a run begins after DONE, ABSORBED or ATTEMPTED; or DONE after a run */
	PROPERTY_CANCELLED,
	PROPERTY_TWICE,     /* a second run, although no session ended during the first */
	PROPERTY_EARLY,     /* a run before its deadline by the server's clock */
	PROPERTY_FENCE,     /* a run with a smaller fence than an earlier run */
	PROPERTY_STALE_END, /* one session's end of a run changed another session's row */
	PROPERTY_BATCH,     /* a batch took effect twice */
	PROPERTY_EFFECT,    /* finish_in took effect twice */
	PROPERTY_REST,      /* nothing more happens, but a row or a timer in memory is left */
	PROPERTY_LIVELOCK,  /* steps continue for ever, and no state of rest can be reached */
};

const char *property_text(enum property property);

void check_break(struct state *state, enum property property);
/* Checks a run of the timer that begins, with this fence. */
void check_begin(struct state *state, int timer, uint8_t fence);
/* Checks a cancel of the timer that has taken effect. */
void check_cancelled(struct state *state, int timer, bool attempted);
/* Checks the effect that finish_in has made. */
void check_effect(struct state *state, int timer);
/* Forgets the history of timers that are over, so that states with equal futures are equal. */
void check_timers(struct state *state);
/* Checks a state in which nothing more happens by itself. */
enum property check_rest(const struct state *state);

#endif
