/* SPDX-License-Identifier: MIT */
/* Tests the rule for the soak's memory, with series of known trends. */
#include "check.h"
#include "random.h"
#include "slope.h"

enum { COUNT = 200, FLOOR = 1000 };

static double noise(struct random *random, double width)
{
	return width * ((double)random_below(random, 2001) / 1000 - 1);
}

static bool grows(double step, double width)
{
	struct random random = {7};
	double samples[COUNT];
	struct slope slope;

	for (int i = 0; i < COUNT; i++)
		samples[i] = 1e6 + step * i + noise(&random, width);
	slope = slope_fit(samples, COUNT);
	return slope_grows(&slope, FLOOR);
}

Test(slope, flat_samples_do_not_grow)
{
	check_true(!grows(0, 0));
	check_true(!grows(0, 1));
	check_true(!grows(0, 100000));
}

Test(slope, falling_samples_do_not_grow)
{
	check_true(!grows(-100, 10));
}

Test(slope, a_leak_is_seen_through_noise)
{
	check_true(grows(10, 0));
	check_true(grows(10, 100));
	check_true(grows(1000, 10000));
}

Test(slope, slope_below_the_floor_does_not_grow)
{
	check_true(!grows(4, 0));
}

/* A saw-tooth does not grow, although one of its teeth does. */
Test(slope, saw_does_not_grow_although_a_tooth_does)
{
	double samples[COUNT];
	struct slope slope;

	for (int i = 0; i < COUNT; i++)
		samples[i] = 1e6 + 10000.0 * (i % 10);
	slope = slope_fit(samples, COUNT);
	check_true(!slope_grows(&slope, FLOOR));
	slope = slope_fit(samples, 10);
	check_true(slope_grows(&slope, FLOOR));
}

/*
 * A random walk has no trend but looks as if it had one. So the error must be wider than for
 * independent samples.
 */
Test(slope, walks_are_rarely_mistaken)
{
	struct random random = {3};
	int mistaken = 0;

	for (int walk = 0; walk < 100; walk++) {
		double samples[COUNT] = {1e6};
		struct slope slope;

		for (int i = 1; i < COUNT; i++)
			samples[i] = 1e6 + 0.5 * (samples[i - 1] - 1e6) + noise(&random, 50000);
		slope = slope_fit(samples, COUNT);
		mistaken += slope_grows(&slope, FLOOR);
	}
	check_at_most(mistaken, 5);
}
