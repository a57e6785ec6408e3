/* SPDX-License-Identifier: MIT */
/*
 * The kernel's timer (timerfd) behind the descriptor of a loop or of a park. There is one such
 * timer in a run. The kernel sets a timer under a lock. So all settings have one order, and a
 * thread that sets the timer sees the writes that other threads made before their earlier settings.
 */
#include "runtime/timer.h"

#include "runtime/fiber.h"
#include "runtime/memory.h"
#include "runtime/trace.h"

#include <string.h>
#include <sys/timerfd.h>

#define PC __builtin_return_address(0)
#define NS_PER_S INT64_C(1000000000)

static struct {
	struct granule granule; /* used only to see whether the timer is contended */
	struct model_clock set; /* what came before the last setting */
	int64_t until_ns;
	int64_t kept_ns; /* the value that setup has left */
	bool begun;
} timer MODEL_STATE;

int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
			   struct itimerspec *ret_before);
int __wrap_close(int fd);

void timer_begin(void)
{
	if (!timer.begun)
		timer.kept_ns = timer.until_ns;
	timer.begun = true;
	timer.until_ns = timer.kept_ns;
	memset(&timer.set, 0, sizeof timer.set);
}

int __wrap_timerfd_create(int clock, int flags)
{
	(void)clock;
	(void)flags;
	timer.until_ns = INT64_MAX;
	return TIMER_FD;
}

static bool timer_ready(struct fiber *self)
{
	(void)self;
	return timer.until_ns <= fibers.now_ns;
}

/* Returns the time of a setting. A zero time disarms the timer, so it means never. */
static int64_t until_of(const struct timespec *until)
{
	int64_t until_ns = (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec;

	return until_ns == 0 ? INT64_MAX : until_ns;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
			   struct itimerspec *ret_before)
{
	struct fiber *self = fiber_self();

	(void)flags;
	(void)ret_before;
	if (fd != TIMER_FD)
		model_fail("a timer is set that was never made");
	if (fibers.running) {
		fiber_point(memory_touch(&timer.granule, true));
		fiber_acquire(self, &timer.set);
		clock_join(&timer.set, &self->now);
		fiber_tick(self);
	}
	timer.until_ns = until_of(&value->it_value);
	for (unsigned i = 0; i < fibers.count; i++) {
		if (fibers.fiber[i].ready == timer_ready)
			fibers.fiber[i].until_ns = timer.until_ns;
	}
	trace_event("sets the timer", NULL, (uint64_t)timer.until_ns, PC);
	return 0;
}

int __wrap_close(int fd)
{
	if (fd != TIMER_FD && fd != EVENT_FD)
		model_fail("a descriptor is closed that was never made");
	return 0;
}

int64_t timer_until_ns(void)
{
	return timer.until_ns;
}

void model_timer_wait(void)
{
	fiber_point(memory_touch(&timer.granule, false));
	(void)fiber_wait(timer_ready, NULL, "its descriptor", timer.until_ns);
}
