/* SPDX-License-Identifier: MIT */
/*
 * Calls that a program should not have made. Each is refused with a code of its own, as it was without
 * a log; who has set a hook is told in words, once per engine and kind, so that a loop does not flood it. What
 * is known of a handle alone is told once per process: its engine may be gone.
 */
#ifndef TWI_ENGINE_MISUSE_H
#define TWI_ENGINE_MISUSE_H

#include "base/compiler.h"
#include "engine/engine.h"

enum twi_misuse {
	/* Of an engine. */
	TWI_MISUSE_STOP_INSIDE,
	TWI_MISUSE_SETTLE_INSIDE,
	TWI_MISUSE_DESTROY_INSIDE,
	TWI_MISUSE_DESTROY_RUNNING,
	TWI_MISUSE_LOOP_INSIDE,
	TWI_MISUSE_LOOP_OTHER,
	TWI_MISUSE_LOOP_NONE,
	TWI_MISUSE_OWNER_ONLY,
	TWI_MISUSE_PARENTS,
	/* Of a handle, a clock, a thread, a forked child. */
	TWI_MISUSE_HANDLE,
	TWI_MISUSE_OWNER_ONLY_HANDLE,
	TWI_MISUSE_DUE_PENDING,
	TWI_MISUSE_DUE_RUNNING,
	TWI_MISUSE_DUE_ENDED,
	TWI_MISUSE_PERIOD_OUTSIDE,
	TWI_MISUSE_DETACH_INSIDE,
	TWI_MISUSE_CLOCK_IN_USE,
	TWI_MISUSE_CLOCK_TWICE,
	TWI_MISUSE_CLOCK_SET,
	TWI_MISUSE_REINIT_OWN,
	TWI_MISUSE_REINIT_HANDLERS,
	TWI_MISUSE_REINIT_THREADS,
	TWI_MISUSE_REINIT_INSIDE,
	TWI_MISUSE_COUNT,
};

/* Tells of it; `engine` may be NULL. Returns `error`. Outside read-side sections. */
TWI_COLD int twi_misuse(const struct tw_engine *engine, enum twi_misuse what, int error);

/* -EINVAL, for a handle that is not sane. One of zeros names none, and is not worth a line. */
TWI_COLD int twi_misuse_handle(struct tw_handle handle);

#endif
