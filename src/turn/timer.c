/* SPDX-License-Identifier: MIT */
#include "turn/timer.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "turn/fresh.h"
#include "turn/sleep.h"
#include "worker/left.h"

bool twi_timer_made(const struct twi_worker *worker)
{
	return worker->park.timer_fd != TWI_TIMER_FD_NONE;
}

static bool timer_driven(const struct twi_worker *worker)
{
	return worker->park.timer_fd == TWI_TIMER_FD_DRIVEN;
}

static TWI_WORKER_ONLY void timer_set(struct twi_worker *worker, int64_t kernel_ns)
{
	/*
	 * RELAXED: the kernel makes all settings that are counted here before our setting; see
	 * timer.h.
	 */
	uint32_t kicks = twi_load_relaxed(&worker->park.kicks);

	if (kernel_ns == worker->timer_ns)
		return;
	twi_timer_fd_set(worker->park.timer_fd, kernel_ns);
	TWI_TEST_POINT("poll:set");
	/* RELAXED: the kernel's order of the settings is enough; see timer.h. */
	if (twi_load_relaxed(&worker->park.word) == TWI_AWAKE) {
		twi_timer_fd_set(worker->park.timer_fd, TWI_TIMER_FD_NOW);
		kernel_ns = TWI_TIMER_FD_NOW;
	}
	worker->armed_ns = kernel_ns;
	worker->timer_ns = kicks == worker->kicks_expected ? kernel_ns : TWI_TIMER_UNKNOWN;
}

/*
 * Returns whether the clock is moved by hand. The kernel cannot wait for such a clock, so the
 * thread that moves it wakes the owner.
 */
static bool hand_moved(int64_t until_ns, int64_t kernel_ns)
{
	return kernel_ns == INT64_MAX && until_ns != INT64_MAX;
}

int64_t twi_timer_due_ns(struct twi_worker *worker)
{
	twi_fresh_flush(worker);
	if (twi_wheel_owes(worker->wheel))
		return 0;
	return twi_wheel_boundary_ns(worker->wheel, twi_wheel_next_due(worker->wheel));
}

void twi_timer_arm(struct twi_worker *worker, int64_t published_ns, unsigned left)
{
	int64_t due_ns = twi_timer_due_ns(worker);
	int64_t until_ns = due_ns < published_ns ? due_ns : published_ns;
	int64_t kernel_ns;

	/* The driver of a scaled kind reads the time at each poll, and sets a timer of its own. */
	if (TWI_UNLIKELY(timer_driven(worker))) {
		worker->armed_ns = twi_sleep_rejected(worker, left) ? 0 : until_ns;
		return;
	}
	kernel_ns = twi_sleep_kernel_ns(worker, left, until_ns);
	if (twi_sleep_rejected(worker, left) ||
	    (hand_moved(until_ns, kernel_ns) && twi_clock_now_ns(worker->clock) >= until_ns))
		kernel_ns = TWI_TIMER_FD_NOW;
	TWI_PROBE2(park, worker, kernel_ns == TWI_TIMER_FD_NOW ? 0 : until_ns);
	timer_set(worker, kernel_ns);
}

void twi_timer_nearer(struct twi_worker *worker, int64_t deadline_ns)
{
	const struct twi_wheel *wheel = worker->wheel;
	uint64_t tick = twi_due_tick(twi_since(deadline_ns, wheel->epoch_ns), wheel->tick_ns);
	int64_t due_ns = twi_wheel_needs_ns(wheel, deadline_ns);
	int64_t kernel_ns;

	/*
	 * In a scaled kind, a poll by the driver is under way. The end of that poll computes the
	 * time.
	 */
	if (TWI_UNLIKELY(timer_driven(worker)))
		return;
	kernel_ns = twi_sleep_kernel_ns(worker, TWI_LEFT_NOTHING, due_ns);
	if (hand_moved(due_ns, kernel_ns) && twi_clock_now_ns(worker->clock) >= due_ns)
		kernel_ns = TWI_TIMER_FD_NOW;
	/*
	 * The timer may already be set to a time before the published one, because the owner had
	 * another reason to poll early.
	 */
	if (kernel_ns < worker->armed_ns)
		timer_set(worker, kernel_ns);
	/*
	 * RELAXED: a producer that sees the new value need not wake the owner, because the timer is
	 * set. A producer that sees the old value causes one superfluous wake-up.
	 */
	twi_store_relaxed(&worker->wake_before_ns, twi_wheel_boundary_ns(worker->wheel, tick - 1));
	twi_fresh_update(worker);
}
