/* SPDX-License-Identifier: MIT */
#include "runtime/atomic.h"
#include "runtime/trace.h"

void atomic_fence(atomic_order order, const void *pc)
{
	struct fiber *self = fiber_self();

	if (!fibers.running)
		return;
	if (order == __ATOMIC_SEQ_CST)
		model_fail("a sequentially consistent fence at %s: not modelled", trace_symbol(pc));
	if (atomic_acquires(order)) {
		fiber_acquire(self, &self->pending);
		atomic_pairs_see();
	}
	if (atomic_releases(order))
		self->released = self->now;
	fiber_tick(self);
}

void atomic_fence_stores(void)
{
	struct fiber *self = fiber_self();
	struct model_clock covered = self->now;

	covered.r[self->number] = self->released.r[self->number];
	clock_join(&self->released, &covered);
	fiber_tick(self);
}

void atomic_fence_loads(void)
{
	struct fiber *self = fiber_self();

	clock_join(&self->reads, &self->pending);
	atomic_pairs_see();
	self->speculates = true;
}
