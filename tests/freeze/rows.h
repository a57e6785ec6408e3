/* SPDX-License-Identifier: MIT */
/*
 * Which public call is frozen at which test point, and what that delays.
 */
#ifndef FREEZE_ROWS_H
#define FREEZE_ROWS_H

#include "scene.h"
#include "stand.h"

/* What it means that a thread stands there. */
enum {
	/* Stop of this engine waits for it; else it ends. */
	STOP_WAITS = 1,
	/* It stands in a read-side section: stops of all engines wait for it. */
	SECTION = 2 | STOP_WAITS,
	/* The engine is closed already: others' schedules are refused. */
	CLOSED = 4,
	/* It moves the clock, which nobody else may do meanwhile. */
	MOVES_CLOCK = 8,
	/* The engine has no memory for rings: the link queues serve. */
	RINGLESS = 16,
};

struct row {
	const char *call;
	const char *point;
	/* One attempt: arms `row_stand` around the call. */
	void (*attempt)(void);
	enum setting setting;
	unsigned effects;
};

extern const struct row rows[];
extern const size_t row_count;

/* The stand of the row that is on. */
extern struct stand row_stand;

#endif
