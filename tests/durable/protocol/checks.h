/* SPDX-License-Identifier: MIT */
/*
 * Checks of the properties that must hold. A step that breaks a property records it in its state
 * (`broken`).
 */
#ifndef PROTOCOL_CHECKS_H
#define PROTOCOL_CHECKS_H

#include "state.h"

enum property {
	PROPERTY_NONE = 0,
	PROPERTY_LOST, /* an acknowledged timer neither ran nor was cancelled */
	/*
	 * a run began after a cancel returned DONE, ABSORBED or ATTEMPTED, or a cancel returned
	 * DONE after a run
	 */
	PROPERTY_CANCELLED,
	/* a timer ran a second time, although no session ended during its first run */
	PROPERTY_TWICE,
	PROPERTY_EARLY, /* a timer ran before its deadline by the server's clock */
	PROPERTY_FENCE, /* a run had a smaller fence than an earlier run */
	/* the end of a run under one session changed a row of another session */
	PROPERTY_STALE_END,
	PROPERTY_BATCH,  /* a batch took effect twice */
	PROPERTY_EFFECT, /* finish_in took effect twice */
	PROPERTY_REST,   /* no step happens any more, but a row or a timer in memory is left */
	/* steps continue for ever, and no state in which they end can be reached */
	PROPERTY_LIVELOCK,
};

const char *property_text(enum property property);

void check_break(struct state *state, enum property property);
/* Checks a run of the timer that begins with this fence. */
void check_begin(struct state *state, int timer, uint8_t fence);
/* Checks a cancel of the timer that has taken effect. */
void check_cancelled(struct state *state, int timer, bool attempted);
/* Checks the effect that finish_in has made. */
void check_effect(struct state *state, int timer);
/* Forgets the history of timers that are over, so that states with equal futures are equal. */
void check_timers(struct state *state);
/* Checks a state from which no step happens by itself. */
enum property check_rest(const struct state *state);

#endif
