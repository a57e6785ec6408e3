/* SPDX-License-Identifier: MIT */
/*
 * Models membarrier(2), private expedited.
 *
 * The model assumes that each other thread executes a full barrier (passes it) at some point
 * between the beginning and the end of the call. A compiler may move accesses across that point,
 * but not across a compiler fence (atomic_signal_fence). So the call has two effects:
 *
 * - take the thread's last compiler fence before its barrier: the thread's accesses before this
 *   fence come before all accesses of the caller after the call;
 * - take the thread's first compiler fence after its barrier: the caller's accesses before the call
 *   come before all accesses of the thread after this fence.
 *
 * This orders the caller with each thread, but no two other threads. A thread without such a fence
 * is not ordered. Without a barrier, a compiler fence orders nothing.
 *
 * The threads pass their barriers one after the other, in ascending or descending order, and other
 * threads may run in between. A call may also fail, which counts as a weak answer. Then it orders
 * nothing.
 */
#include "runtime/barrier.h"

#include "runtime/explore.h"
#include "runtime/fiber.h"
#include "runtime/trace.h"

#include <errno.h>
#include <linux/membarrier.h>

static unsigned calls MODEL_STATE; /* calls in this run */

void barrier_begin(void)
{
	calls = 0;
}

unsigned model_barriers(void)
{
	return calls;
}

void barrier_compiler_fence(void)
{
	struct fiber *self = fiber_self();

	if (!fibers.running)
		return;
	self->flushed = self->now;
	fiber_acquire(self, &self->barriers);
	fiber_tick(self);
}

/* Models the full barrier that one other thread passes. */
static void thread_pass(struct fiber *self, struct fiber *other, const struct model_clock *before)
{
	if (other == self)
		return;
	if (other->life == FIBER_ALIVE)
		fiber_point(true);
	fiber_acquire(self, &other->flushed);
	clock_join(&other->barriers, before);
}

static unsigned others_alive(const struct fiber *self)
{
	unsigned alive = 0;

	for (unsigned i = 1; i < fibers.count; i++)
		alive += &fibers.fiber[i] != self && fibers.fiber[i].life == FIBER_ALIVE;
	return alive;
}

static long barrier_all(void)
{
	struct fiber *self = fiber_self();
	unsigned count = fibers.count;
	struct model_clock before;
	bool backwards;

	calls++;
	if (explore_weak(2) == 1) {
		trace_event("barrier fails", NULL, 0, NULL);
		errno = ENOMEM;
		return -1;
	}
	before = self->now;
	backwards = explore_choose(others_alive(self) > 1 ? 2 : 1) == 1;
	fiber_tick(self);
	for (unsigned i = 0; i < count; i++)
		thread_pass(self, &fibers.fiber[backwards ? count - 1 - i : i], &before);
	trace_event("barrier", NULL, 0, NULL);
	fiber_tick(self);
	return 0;
}

long barrier_call(int command)
{
	if (command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
		return 0;
	if (command != MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		model_fail("membarrier command %d: not modelled", command);
	return fibers.running ? barrier_all() : 0;
}
