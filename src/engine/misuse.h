/* SPDX-License-Identifier: MIT */
/*
 * Misuse: calls that a program must not make. Each is rejected with an error code, with or without
 * a log hook. If a log hook is set, it is called once per engine and kind of misuse, so that a loop
 * does not flood the log. If only a handle is known, the hook is called once per process, because
 * the handle's engine may be freed.
 */
#ifndef TWI_ENGINE_MISUSE_H
#define TWI_ENGINE_MISUSE_H

#include "base/compiler.h"
#include "engine/engine.h"

enum twi_misuse {
	/* Misuse of an engine. */
	TWI_MISUSE_STOP_INSIDE,
	TWI_MISUSE_FLUSH_INSIDE,
	TWI_MISUSE_DESTROY_INSIDE,
	TWI_MISUSE_DESTROY_RUNNING,
	TWI_MISUSE_DESTROY_DEFAULT,
	TWI_MISUSE_LOOP_INSIDE,
	TWI_MISUSE_LOOP_OTHER,
	TWI_MISUSE_LOOP_TWICE,
	TWI_MISUSE_LOOP_OUTSIDE,
	TWI_MISUSE_LOOP_NONE,
	TWI_MISUSE_OWNER_ONLY,
	TWI_MISUSE_PARENTS,
	/* Misuse of a handle, a clock, a thread, a forked child. */
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
	TWI_MISUSE_REINIT_INSIDE,
	TWI_MISUSE_COUNT,
};

/* Reports a misuse. `engine` may be NULL. Returns `error`. Must be called outside RCU sections. */
TWI_COLD int twi_misuse(const struct tw_engine *engine, enum twi_misuse what, int error);

/*
 * Returns -EINVAL for a handle that cannot be valid. A zeroed handle is not reported, because it
 * names no timeout.
 */
TWI_COLD int twi_misuse_handle(struct tw_handle handle);

#endif
