/* SPDX-License-Identifier: MIT */
/*
 * The public functions for a forked child. They check whether the child may make the call, and pass
 * the call on.
 */
#include "engine/misuse.h"
#include "timeout/recovery.h"

#include <errno.h>
#include <limits.h>
#include <tickwheel/fork.h>

static int flags_check(uint64_t flags)
{
	const uint64_t both = TW_REINIT_KEEP | TW_REINIT_FINALISE;

	if ((flags & ~(both | TW_REINIT_RCU_HANDLED)) != 0 || (flags & both) == both)
		return -EINVAL;
	return 0;
}

/*
 * Checks whether the child may take over the library. It may not if another thread of the parent
 * was inside the library at the fork: that thread does not exist in the child and cannot finish its
 * call.
 */
static int library_check(uint64_t flags)
{
	if (!twi_fork_handled() && (flags & TW_REINIT_RCU_HANDLED) == 0)
		return twi_misuse(NULL, TWI_MISUSE_REINIT_HANDLERS, -EPERM);
	return twi_thread_alone() ? 0 : twi_misuse(NULL, TWI_MISUSE_REINIT_THREADS, -EBUSY);
}

/*
 * Returns whether the caller is inside a callback, of one of the parent's engines or of the
 * child's.
 */
static bool inside_callback(void)
{
	return twi_fork_inside() || twi_thread_self.run != NULL || twi_thread_self.worker != NULL;
}

int tw_fork_reinit(struct tw_engine *engine, uint64_t flags)
{
	int error = flags_check(flags);

	if (error != 0)
		return error;
	if (engine != NULL && !twi_engine_of_parent(engine))
		return twi_misuse(NULL, TWI_MISUSE_REINIT_OWN, -EBUSY);
	if (engine == NULL && !twi_forked())
		return 0;
	if (inside_callback())
		return twi_misuse(NULL, TWI_MISUSE_REINIT_INSIDE, -EDEADLK);
	if (twi_forked())
		error = library_check(flags);
	if (error == 0 && engine != NULL)
		error = twi_engine_recoverable(engine);
	if (error != 0)
		return error;
	if (engine != NULL)
		return twi_engine_recover(engine, flags);
	twi_recovery_take();
	return 0;
}

int tw_fork_handlers_enable(void)
{
	return twi_fork_handlers_enable();
}

int tw_fork_generation(void)
{
	return (int)(twi_fork_epoch & INT_MAX);
}
