/* SPDX-License-Identifier: MIT */
/*
 * The rows: which public call is frozen at which test point, and the delays that this causes.
 */
#ifndef FREEZE_ROWS_H
#define FREEZE_ROWS_H

#include "scene.h"
#include "stand.h"

/* The effects of a thread that has stopped at the point. */
enum {
	/* Stop of this engine waits for the thread. Without this bit it ends. */
	STOP_WAITS = 1,
	/* The thread is stopped in a read-side section, so stops of all engines wait for it. */
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
	/* Makes one attempt: arms `row_stand` around the call. */
	void (*attempt)(void);
	enum setting setting;
	unsigned effects;
};

extern const struct row rows[];
extern const size_t row_count;

/* The stand of the current row. */
extern struct stand row_stand;

#endif
