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
	if (engine == NULL)
		return twi_recovery_take();
	error = twi_engine_recoverable(engine);
	return error != 0 ? error : twi_engine_recover(engine, flags);
}

int tw_fork_handlers_enable(void)
{
	return 0;
}

int tw_fork_generation(void)
{
	return (int)(twi_fork_epoch & INT_MAX);
}
