/* SPDX-License-Identifier: MIT */
/*
 * A thread that stops at a test point of the library until another thread releases it.
 *
 * A thread arms a stand around one call, or (in a callback) for its later steps. It stops at the
 * stand's point once. Programs that use this must be linked to the library with test points.
 */
#ifndef FREEZE_STAND_H
#define FREEZE_STAND_H

#include <stdbool.h>
#include <stdint.h>

struct stand {
	const char *point;
	/* if not NULL, called at each point that the armed thread passes */
	void (*passed)(const char *point);
	_Atomic bool stands;
	_Atomic bool released;
};

/* Makes the calling thread stop when it next reaches the point. */
void stand_arm(struct stand *stand);
void stand_disarm(void);

/* Waits until a thread has stopped at the point. Returns false if none has after `patience_ms`. */
bool stand_await(const struct stand *stand, int64_t patience_ms);
void stand_release(struct stand *stand);

/* Sleep for a moment, and read the time in milliseconds. */
void nap(void);
int64_t now_ms(void);

#endif
