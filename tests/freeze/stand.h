/* SPDX-License-Identifier: MIT */
/*
 * A thread that stands at a test point of the library until it is told to go on.
 *
 * A thread arms a stand around one call, or (in a callback) for what its thread does afterwards,
 * and stands at the stand's point once. Programs that link this have the library with test points.
 */
#ifndef FREEZE_STAND_H
#define FREEZE_STAND_H

#include <stdbool.h>
#include <stdint.h>

struct stand {
	const char *point;
	/* Told of each point that the armed thread passes; NULL: nobody. */
	void (*passed)(const char *point);
	_Atomic bool stands;
	_Atomic bool released;
};

/* The calling thread stands at the point when it next comes there. */
void stand_arm(struct stand *stand);
void stand_disarm(void);

/* False: nobody stood there in that time. */
bool stand_await(const struct stand *stand, int64_t patience_ms);
void stand_release(struct stand *stand);

/* A short sleep, and the time in milliseconds. */
void nap(void);
int64_t now_ms(void);

#endif
