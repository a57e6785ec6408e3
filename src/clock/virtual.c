/* SPDX-License-Identifier: MIT */
#include "clock/virtual.h"

#include "base/tsan.h"
#include "thread/fork.h"
#include "thread/rcu.h"
#include "thread/thread.h"

#include <errno.h>
#include <stddef.h>

static struct twi_clock_virtual *virtual_of(struct tw_clock *clock)
{
	return TWI_CONTAINER_OF(clock, struct twi_clock_virtual, clock);
}

static int64_t virtual_now_ns(struct tw_clock *clock)
{
	/*
	 * E8: the worker's last look before it sleeps must not miss a move. Any other reader sees
	 * all that the mover did before the move.
	 */
	return twi_load_seq_cst(&virtual_of(clock)->now_ns);
}

/*
 * Returns the time under ThreadSanitizer. A callback sees all that the mover did before the move,
 * so this edge is reported to the sanitizer. A thread that only schedules needs no such edge.
 */
static int64_t tsan_now_ns(struct tw_clock *clock)
{
	int64_t now_ns = virtual_now_ns(clock);

	if (twi_thread_self.worker != NULL)
		twi_tsan_acquire(clock);
	return now_ns;
}

static int64_t virtual_futex_until_ns(struct tw_clock *clock, int64_t until_ns)
{
	(void)clock;
	(void)until_ns;
	return INT64_MAX;
}

static int virtual_inherit(struct tw_clock *clock, struct twi_park *park)
{
	(void)park;
	/*
	 * RELAXED: another thread that moves the clock needs this value only after it has learned
	 * of the engine. The step by which it learned of the engine also made this store visible to
	 * it.
	 */
	twi_store_relaxed(&virtual_of(clock)->fork_epoch, twi_fork_epoch);
	return 0;
}

static int virtual_attach(struct tw_clock *clock, struct twi_park *park)
{
	struct twi_park *expected = NULL;

	/*
	 * E9: pairs with the load in sleeper_wake(). The park must be initialised before a mover
	 * wakes it.
	 */
	if (!twi_cas_acq_rel(&virtual_of(clock)->sleeper, &expected, park))
		return -EBUSY;
	(void)virtual_inherit(clock, park);
	return 0;
}

static void virtual_detach(struct tw_clock *clock, struct twi_park *park)
{
	(void)park;
	/*
	 * E9: pairs with virtual_busy() and the next virtual_attach(). All that this engine did
	 * must come before the clock is freed or used by another engine.
	 */
	twi_store_release(&virtual_of(clock)->sleeper, NULL);
}

static bool virtual_busy(struct tw_clock *clock)
{
	/*
	 * E9: pairs with virtual_detach(). Without it the last engine could still use the clock
	 * when it is freed.
	 */
	return twi_load_acquire(&virtual_of(clock)->sleeper) != NULL;
}

static enum tw_clock_type virtual_type(struct tw_clock *clock)
{
	(void)clock;
	return TW_CLOCK_VIRTUAL;
}

static int64_t virtual_wall_ns(struct tw_clock *clock)
{
	int64_t wall_ns;

	/*
	 * E8: a worker that has seen a new value of wall_steps must see the wall time that belongs
	 * to it. If the date does not fit into the number, the last date before "never" is
	 * returned.
	 */
	if (__builtin_add_overflow(virtual_now_ns(clock),
				   twi_load_seq_cst(&virtual_of(clock)->wall_ahead_ns), &wall_ns) ||
	    wall_ns == INT64_MAX)
		return INT64_MAX - 1;
	return wall_ns;
}

static _Atomic uint32_t *virtual_wall_steps(struct tw_clock *clock)
{
	return &virtual_of(clock)->wall_steps;
}

#define VIRTUAL_OPS(now)                                                                           \
	{                                                                                          \
		.now_ns = (now), .futex_until_ns = virtual_futex_until_ns,                         \
		.attach = virtual_attach, .detach = virtual_detach, .inherit = virtual_inherit,    \
		.busy = virtual_busy, .type = virtual_type, .moved = true,                         \
		.wall_ns = virtual_wall_ns, .wall_steps = virtual_wall_steps,                      \
	}

static const struct twi_clock_ops virtual_ops = VIRTUAL_OPS(virtual_now_ns);
static const struct twi_clock_ops tsan_ops = VIRTUAL_OPS(tsan_now_ns);

static const struct twi_clock_ops *ops_of_process(void)
{
	return twi_tsan_there() ? &tsan_ops : &virtual_ops;
}

/* RELAXED: no other thread has the clock yet. */
void twi_clock_virtual_init(struct twi_clock_virtual *clock, int64_t now_ns)
{
	clock->clock = (struct tw_clock){.ops = ops_of_process()};
	twi_store_relaxed(&clock->now_ns, now_ns);
	twi_store_relaxed(&clock->sleeper, NULL);
	twi_store_relaxed(&clock->fork_epoch, twi_fork_epoch);
	twi_store_relaxed(&clock->wall_ahead_ns, 0);
	twi_store_relaxed(&clock->wall_steps, 0);
}

/* Wakes the worker that uses the clock. The caller must have stored the new time before. */
static void sleeper_wake(struct twi_clock_virtual *self)
{
	struct twi_park *sleeper;

	/*
	 * E10: a thread that frees the engine waits for a grace period after the detach. So the
	 * park exists until we leave the RCU section.
	 */
	twi_rcu_enter();
	/* E9: pairs with virtual_attach(), so that the park is initialised. */
	sleeper = twi_load_acquire(&self->sleeper);
	TWI_TEST_POINT("clock_set:moved");
	/*
	 * If fork_epoch is the parent's, the worker does not exist in this process, and its
	 * descriptor is shared with the parent. So it must not be woken. RELAXED: as in
	 * virtual_inherit().
	 */
	if (sleeper != NULL && twi_load_relaxed(&self->fork_epoch) == twi_fork_epoch)
		twi_park_wake(sleeper);
	twi_rcu_leave();
}

int twi_clock_virtual_set(struct tw_clock *clock, int64_t now_ns)
{
	struct twi_clock_virtual *self = virtual_of(clock);

	/* RELAXED: only one thread at a time may move the clock. */
	if (clock->ops != ops_of_process() || now_ns == INT64_MAX ||
	    now_ns < twi_load_relaxed(&self->now_ns))
		return -EINVAL;
	twi_tsan_release(clock);
	/*
	 * E8: pairs with virtual_now_ns(). The new time must be stored before the check whether the
	 * worker sleeps.
	 */
	twi_store_seq_cst(&self->now_ns, now_ns);
	sleeper_wake(self);
	return 0;
}

int twi_clock_virtual_set_wall(struct tw_clock *clock, int64_t wall_ns)
{
	struct twi_clock_virtual *self = virtual_of(clock);

	if (clock->ops != ops_of_process() || wall_ns == INT64_MAX || wall_ns < 0)
		return -EINVAL;
	twi_tsan_release(clock);
	/*
	 * E8: pairs with virtual_wall_ns(). This store must come before the count is raised,
	 * because a worker that sees a new count reads the wall time. RELAXED, the load: only one
	 * thread at a time may move the clock.
	 */
	twi_store_seq_cst(&self->wall_ahead_ns, wall_ns - twi_load_relaxed(&self->now_ns));
	/*
	 * E8: pairs with twi_wall_stepped(). The count must be raised before the check whether the
	 * worker sleeps.
	 */
	(void)twi_fetch_add_seq_cst(&self->wall_steps, 1);
	sleeper_wake(self);
	return 0;
}
