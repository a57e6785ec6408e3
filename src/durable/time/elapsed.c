/* SPDX-License-Identifier: MIT */
#include "durable/time/elapsed.h"

#include "base/tick.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { READ_TRIES = 10 };

#define NOTED_NS INT64_C(1000000)

int64_t twi_elapsed_system_ns(void *context)
{
	struct timespec now;

	(void)context;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * TWI_NS_PER_S + now.tv_nsec;
}

void twi_elapsed_system_boot(char *ret, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, ret, size - 1);

	if (fd >= 0)
		(void)close(fd);
	ret[length < 0 ? 0 : length] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

/* RELAXED: only a number, and only this thread changes it. */
static void known(struct tw_durable *set, const struct tw_durable_clock *clock)
{
	set->clock = *clock;
	twi_store_relaxed(&set->step_ns, clock->step_ns);
}

static int keep(struct tw_durable *set, const struct tw_durable_clock *clock)
{
	const struct tw_durable_store *store = &set->options.store;
	int error = store->ops->clock_set(store->store, clock);

	if (error == 0)
		known(set, clock);
	return error;
}

/* Returns whether the distance of the two clocks has changed. */
static bool apart(int64_t step_ns, int64_t before_ns)
{
	return step_ns >= before_ns + NOTED_NS || step_ns <= before_ns - NOTED_NS;
}

/*
 * Returns whether the numbers are so small that their sums with times cannot overflow, and the name
 * of the boot has an end.
 */
static bool sane(const struct tw_durable_clock *clock)
{
	int64_t most_ns = INT64_MAX / 2;

	return clock->base_ns <= most_ns && clock->base_ns >= -most_ns &&
	       clock->step_ns <= most_ns && clock->step_ns >= -most_ns &&
	       memchr(clock->boot, '\0', sizeof clock->boot) != NULL;
}

/*
 * Returns the wall clock minus CLOCK_BOOTTIME, both read almost at one moment. If this thread is
 * interrupted between the readings in every try, the distance is wrong for the whole boot. That
 * only harms the order of lists.
 */
static int64_t distance(struct tw_durable *set)
{
	int64_t before_ns, wall_ns, after_ns = set->hooks.boot_ns(set->hooks.context);
	int tries = READ_TRIES;

	do {
		before_ns = after_ns;
		wall_ns = twi_durable_wall_ns(set);
		after_ns = set->hooks.boot_ns(set->hooks.context);
	} while (after_ns - before_ns >= NOTED_NS / 2 && --tries > 0);
	return wall_ns - before_ns;
}

int twi_elapsed_open(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	struct tw_durable_clock clock = {.boot = ""};
	int error = store->ops->clock(store->store, &clock);
	bool same;

	if (error != 0 && error != -ENOENT)
		return error;
	if (!sane(&clock))
		return -EUCLEAN;
	same = clock.boot[0] != '\0' && strcmp(clock.boot, set->boot) == 0;
	if (!same) {
		memcpy(clock.boot, set->boot, sizeof clock.boot);
		clock.base_ns = distance(set) - clock.step_ns;
	}
	/* Callers read boot_base_ns, but only after the open. */
	set->boot_base_ns = clock.base_ns;
	if (!same)
		return keep(set, &clock);
	known(set, &clock);
	return 0;
}

int twi_elapsed_follow(struct tw_durable *set)
{
	struct tw_durable_clock clock = set->clock;
	int64_t step_ns;

	/*
	 * A wall clock that is not accepted yet is not stored. RELAXED: only this thread changes
	 * the state.
	 */
	if (!set->elapsed || twi_load_relaxed(&set->state) == TW_DURABLE_STATE_CLOCK_STEPPED)
		return 0;
	step_ns = set->axes[TWI_AXIS_WALL].now_ns - set->axes[TWI_AXIS_ELAPSED].now_ns;
	if (!apart(step_ns, clock.step_ns))
		return 0;
	clock.step_ns = step_ns;
	return keep(set, &clock);
}
