/* SPDX-License-Identifier: MIT */
/*
 * If there is no memory for a timeout's slot entry, the timeout waits on a list. A cancel used to
 * search that list from its start, so 40,000 cancels took seconds. Now each node links to its
 * neighbours.
 *
 * Seen to fail with this defect: a remove searches for the predecessor from the start of the list.
 */
#include "../wheel/fixture.h"
#include "slowdown.h"

#include <criterion/criterion.h>
#include <time.h>

enum { COUNT = 100000, SECONDS_MAX = 3 };

static double now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

Test(limbo, a_cancel_does_not_walk)
{
	static struct wheel_fixture fixture;
	static struct twi_node *node[COUNT];
	int count = (int)slowed(COUNT);
	double begin_s;

	wheel_open(&fixture, 16);
	fixture.memory_fails = true;
	for (int i = 0; i < count; i++)
		node[i] = wheel_insert(&fixture, 10);
	begin_s = now_s();
	/* Removes the oldest timeout first, because it is the last in the list. */
	for (int i = 0; i < count; i++)
		twi_wheel_remove(fixture.wheel, node[i]);
	cr_assert(now_s() - begin_s < SECONDS_MAX, "it took %.1f s", now_s() - begin_s);
	cr_assert_eq(fixture.wheel->count, 0);
	wheel_judge(&fixture);
	wheel_close(&fixture);
}
