/* SPDX-License-Identifier: MIT */
/*
 * The rows of the freeze test: in each, one public call is stopped at one test point. A row also
 * says which delays this causes.
 */
#ifndef FREEZE_ROWS_H
#define FREEZE_ROWS_H

#include "scene.h"
#include "stand.h"

/* The effects of a thread that is stopped at the point. */
enum {
	/* A stop of this engine waits for the thread. Without this bit the stop ends. */
	STOP_WAITS = 1,
	/* The thread is inside a read-side section, so stops of all engines wait for it. */
	SECTION = 2 | STOP_WAITS,
	/* The engine is closed already, so it rejects schedules of other threads. */
	CLOSED = 4,
	/* The thread moves the clock. No other thread may move it meanwhile. */
	MOVES_CLOCK = 8,
	/* The engine has no memory for rings, so it uses the link queues. */
	RINGLESS = 16,
};

struct row {
	const char *call;
	const char *point;
	/* Makes one attempt to stop the victim: arms `row_stand` around the call. */
	void (*attempt)(void);
	enum setting setting;
	unsigned effects;
};

extern const struct row rows[];
extern const size_t row_count;

/* The stand of the current row. */
extern struct stand row_stand;

#endif
