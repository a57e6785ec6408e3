/* SPDX-License-Identifier: MIT */
#include "engine/misuse.h"

#include "base/atomic.h"
#include "thread/log.h"

#include <errno.h>

_Static_assert((int)TWI_MISUSE_COUNT <= 32, "a bit for each");

static _Atomic uint32_t
	/* [atomic] a bit for each enum twi_misuse that was reported without an engine */
	process_reported;

static const char *const texts[TWI_MISUSE_COUNT] = {
	[TWI_MISUSE_STOP_INSIDE] = "tw_engine_stop in a callback of its engine: rejected, it would "
				   "wait for itself",
	[TWI_MISUSE_FLUSH_INSIDE] = "tw_engine_flush in a callback on the worker: rejected, it "
				    "would wait for itself",
	[TWI_MISUSE_DESTROY_INSIDE] = "tw_engine_destroy in a callback of its engine: rejected",
	[TWI_MISUSE_DESTROY_RUNNING] =
		"tw_engine_destroy of an engine that is not stopped: "
		"rejected, tw_engine_stop must have returned 0, and its scaled "
		"kinds must be destroyed before",
	[TWI_MISUSE_DESTROY_DEFAULT] =
		"tw_engine_destroy of the default engine: rejected, it stays until the exit",
	[TWI_MISUSE_LOOP_INSIDE] =
		"tw_engine_poll or tw_loop_exit in a callback of its engine: rejected",
	[TWI_MISUSE_LOOP_OTHER] = "a call of loop mode during another thread's bracket: rejected",
	[TWI_MISUSE_LOOP_TWICE] = "tw_loop_enter inside a bracket of the thread: rejected",
	[TWI_MISUSE_LOOP_OUTSIDE] = "tw_loop_exit outside of a bracket of the thread: rejected",
	[TWI_MISUSE_LOOP_NONE] =
		"a call of loop mode on an engine without TW_ENGINE_LOOP: rejected",
	[TWI_MISUSE_OWNER_ONLY] = "a timeout of an owner-only kind scheduled by a thread that is "
				  "not the owner: rejected",
	[TWI_MISUSE_PARENTS] = "an engine of the parent used in a forked child: rejected, see "
			       "tw_fork_reinit",
	[TWI_MISUSE_HANDLE] = "a handle that no schedule has made: rejected",
	[TWI_MISUSE_OWNER_ONLY_HANDLE] = "a timeout of an owner-only kind cancelled or rescheduled "
					 "by a thread that is not the owner: rejected",
	[TWI_MISUSE_DUE_PENDING] = "tw_due_run of a timeout that is pending, and that no executor "
				   "has: rejected",
	[TWI_MISUSE_DUE_RUNNING] = "tw_due_run of a timeout whose callback runs already: rejected",
	[TWI_MISUSE_DUE_ENDED] = "tw_due_run of a timeout that has ended: rejected",
	[TWI_MISUSE_PERIOD_OUTSIDE] = "tw_period_next outside the timeout's own callback: rejected",
	[TWI_MISUSE_DETACH_INSIDE] = "tw_thread_detach in a callback: rejected",
	[TWI_MISUSE_CLOCK_IN_USE] = "tw_clock_destroy of a clock whose engine is there still: "
				    "rejected",
	[TWI_MISUSE_CLOCK_TWICE] = "a virtual clock given to a second engine: rejected",
	[TWI_MISUSE_CLOCK_SET] = "tw_clock_set back in time, or of a clock that is not virtual: "
				 "rejected",
	[TWI_MISUSE_REINIT_OWN] = "tw_fork_reinit of an engine that is this process's "
				  "already: rejected",
	[TWI_MISUSE_REINIT_INSIDE] = "tw_fork_reinit inside a callback, or an engine created in a "
				     "child that was forked in one: rejected",
};

/*
 * Returns true if this call has set the bit. Then the caller must report the misuse. RELAXED, load
 * and fetch-or: the bits publish nothing.
 */
static bool first_time(_Atomic uint32_t *reported, uint32_t bit)
{
	return (twi_load_relaxed(reported) & bit) == 0 &&
	       (twi_fetch_or_relaxed(reported, bit) & bit) == 0;
}

int twi_misuse(const struct tw_engine *engine, enum twi_misuse what, int error)
{
	/*
	 * Callers that only read pass a const engine. The bit says nothing about the engine itself,
	 * so it may be set all the same.
	 */
	struct tw_engine *own = (struct tw_engine *)(uintptr_t)engine;
	int cancel_state;

	if (!twi_log_wanted() ||
	    !first_time(own != NULL ? &own->misuse_reported : &process_reported, UINT32_C(1)
											 << what))
		return error;
	/*
	 * The library's calls must not be cancellation points, but the log hook may contain some.
	 */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	twi_log(TW_LOG_WARNING, texts[what]);
	(void)pthread_setcancelstate(cancel_state, NULL);
	return error;
}

int twi_misuse_handle(struct tw_handle handle)
{
	if (handle.node == NULL && handle.generation == 0)
		return -EINVAL;
	return twi_misuse(NULL, TWI_MISUSE_HANDLE, -EINVAL);
}
