/* SPDX-License-Identifier: MIT */
/*
 * tw_options_init, and the options that tw_engine_create rejects. It must return the right code for
 * each.
 */
#include "fixture.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* The options as a newer version of the header might declare them. */
struct newer_options {
	struct tw_options known;
	uint64_t unknown[4];
};

static struct tw_options defaults(void)
{
	struct tw_options options;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	return options;
}

static void check_rejected(const struct tw_options *options, int error)
{
	struct tw_engine *const untouched = (struct tw_engine *)&untouched;
	struct tw_engine *engine = untouched;

	check_int(tw_engine_create(options, &engine), error);
	check_true(engine == untouched);
}

static void check_accepted(const struct tw_options *options)
{
	struct tw_engine *engine = NULL;

	check_int(tw_engine_create(options, &engine), 0);
	check_true(engine != NULL);
	check_int(tw_engine_state(engine), TW_ENGINE_NEW);
	check_int(tw_engine_destroy(engine), 0);
}

Test(options, defaults_are_as_documented)
{
	struct tw_options options = defaults();

	check_int(options.size, sizeof(options));
	check_int(options.flags, 0);
	check_int(options.tick_ns, NS_PER_MS);
	check_int(options.slots, 4096);
	check_int(options.transfer_batch, 100000);
	check_int(options.pending_limit, 0);
	check_int(options.check, TW_CHECK_NONE);
	check_int(options.scheduling_policy, -1);
	check_int(options.scheduling_priority, 0);
	check_int(options.wheel, TW_WHEEL_HIERARCHICAL);
	check_true(strcmp(options.thread_name, "tickwheel") == 0);
	check_true(!options.cpu_set && !options.clock && !options.dispatch && !options.thread);
	check_accepted(&options);
}

Test(options, null_means_all_defaults)
{
	check_accepted(NULL);
}

Test(options, init_of_bad_arguments)
{
	struct tw_options options;

	check_int(tw_options_init(NULL, sizeof(options)), -EINVAL);
	check_int(tw_options_init(&options, 0), -EINVAL);
	check_int(tw_options_init(&options, sizeof(options) - 1), -EINVAL);
}

Test(options, init_of_a_newer_header_clears_the_tail)
{
	struct newer_options newer;

	memset(&newer, 0xAA, sizeof(newer));
	check_int(tw_options_init(&newer.known, sizeof(newer)), 0);
	check_int(newer.unknown[0], 0);
	check_int(newer.unknown[3], 0);
	check_accepted(&newer.known);
}

Test(options, create_without_an_output_is_rejected)
{
	struct tw_options options = defaults();

	check_int(tw_engine_create(&options, NULL), -EINVAL);
	check_int(tw_engine_create(NULL, NULL), -EINVAL);
}

Test(options, tick_of_zero_or_absurd_is_rejected)
{
	const uint64_t bad[] = {0, 1, 999, 3600 * UINT64_C(1000000000) + 1, INT64_MAX, UINT64_MAX};
	struct tw_options options = defaults();
	size_t i;

	for (i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
		options.wheel = i % 2 == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
		options.tick_ns = bad[i / 2];
		check_rejected(&options, -EINVAL);
		options.tick_ns = 1000;
		check_accepted(&options);
		options.tick_ns = 3600 * UINT64_C(1000000000);
		check_accepted(&options);
	}
}

Test(options, slots_of_zero_or_absurd_are_rejected)
{
	const uint32_t bad[] = {0, (1u << 24) + 1, UINT32_MAX};
	struct tw_options options = defaults();
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		options.slots = bad[i];
		check_rejected(&options, -EINVAL);
	}
	options.slots = 1;
	check_accepted(&options);
	options.slots = 1000;
	check_accepted(&options);
}

/*
 * The tick times the number of slots must not overflow. The limit applies to the hierarchical wheel
 * too, although that wheel does not use the option `slots`.
 */
Test(options, tick_times_slots_overflows)
{
	struct tw_options options = defaults();

	options.tick_ns = 3600 * UINT64_C(1000000000);
	for (options.wheel = TW_WHEEL_HASHED; options.wheel <= TW_WHEEL_HIERARCHICAL;
	     options.wheel++) {
		options.slots = 1u << 24;
		check_rejected(&options, -ERANGE);
		options.slots = 1u << 22;
		check_rejected(&options, -ERANGE);
		/* 2^21 + 1 is rounded up to 2^22. */
		options.slots = (1u << 21) + 1;
		check_rejected(&options, -ERANGE);
	}
}

Test(options, unknown_flags_and_values_are_rejected)
{
	struct tw_options options;
	int bit;

	for (bit = 0; bit < 64; bit++) {
		options = defaults();
		options.flags = UINT64_C(1) << bit;
		if ((options.flags & (TW_ENGINE_ORDERED | TW_ENGINE_LOOP | TW_ENGINE_ALIGNED)) != 0)
			check_accepted(&options);
		else
			check_rejected(&options, -EINVAL);
	}
	options = defaults();
	options.wheel = TW_WHEEL_HIERARCHICAL + 1;
	check_rejected(&options, -EINVAL);
	options = defaults();
	options.check = TW_CHECK_FULL + 1;
	check_rejected(&options, -EINVAL);
}

Test(options, transfer_batch_beyond_its_bounds_is_rejected)
{
	struct tw_options options = defaults();

	options.transfer_batch = 0;
	check_rejected(&options, -EINVAL);
	options.transfer_batch = TW_TRANSFER_BATCH_MAX + 1;
	check_rejected(&options, -EINVAL);
	options.transfer_batch = 1;
	check_accepted(&options);
}

Test(options, smaller_size_is_rejected)
{
	struct tw_options options = defaults();

	options.size = 0;
	check_rejected(&options, -EINVAL);
	options.size = sizeof(options.size);
	check_rejected(&options, -EINVAL);
	options.size = sizeof(options) - 1;
	check_rejected(&options, -EINVAL);
}

Test(options, larger_size_is_accepted_if_the_tail_is_zero)
{
	struct newer_options newer = {.known = defaults()};

	newer.known.size = sizeof(newer);
	check_accepted(&newer.known);
	newer.unknown[3] = UINT64_C(1) << 63;
	check_rejected(&newer.known, -E2BIG);
	newer.unknown[3] = 0;
	newer.unknown[0] = 1;
	check_rejected(&newer.known, -E2BIG);
}

static int unused_thread_hook(void *context, void *(*body)(void *arg), void *arg)
{
	(void)context;
	(void)body;
	(void)arg;
	return EAGAIN;
}

Test(options, thread_hook_excludes_the_options_that_it_replaces)
{
	struct tw_options options = defaults();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	options.thread = unused_thread_hook;
	check_accepted(&options);
	options.cpu_set = &cpus;
	options.cpu_set_bytes = sizeof(cpus);
	check_rejected(&options, -EINVAL);
	options.cpu_set = NULL;
	options.cpu_set_bytes = 0;
	options.scheduling_policy = SCHED_OTHER;
	check_rejected(&options, -EINVAL);
}

Test(options, cpu_set_without_size_is_rejected)
{
	struct tw_options options = defaults();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	options.cpu_set = &cpus;
	check_rejected(&options, -EINVAL);
}

Test(options, spin_beyond_a_millisecond_is_rejected)
{
	struct tw_options options = defaults();

	check_int(options.spin_ns, 0);
	options.spin_ns = 1000001;
	check_rejected(&options, -EINVAL);
	options.spin_ns = UINT64_MAX;
	check_rejected(&options, -EINVAL);
	options.spin_ns = 1000000;
	check_accepted(&options);
}

/* A real-time thread that spins on its only CPU must be rejected, because no other thread could
 * run there to end the spin. */
Test(options, real_time_spin_on_the_only_cpu_is_rejected)
{
	const int32_t classes[] = {SCHED_FIFO, SCHED_RR, SCHED_OTHER};
	struct tw_options options = defaults();
	cpu_set_t cpus, own;
	size_t i;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	options.spin_ns = 1000;
	options.cpu_set = &cpus;
	options.cpu_set_bytes = sizeof(cpus);
	for (i = 0; i < 3; i++) {
		options.scheduling_policy = classes[i];
		options.scheduling_priority = classes[i] == SCHED_OTHER ? 0 : 1;
		if (classes[i] == SCHED_OTHER)
			check_accepted(&options);
		else
			check_rejected(&options, -EINVAL);
	}
	options.scheduling_policy = SCHED_FIFO;
	options.scheduling_priority = 1;
	CPU_SET(1, &cpus);
	check_accepted(&options);
	/* Without the option cpu_set, the worker inherits the CPUs of this thread. */
	options.cpu_set = NULL;
	options.cpu_set_bytes = 0;
	check_int(sched_getaffinity(0, sizeof(own), &own), 0);
	if (CPU_COUNT(&own) == 1)
		check_rejected(&options, -EINVAL);
	else
		check_accepted(&options);
	for (i = 0; i < 8 * sizeof(own) && !CPU_ISSET(i, &own); i++)
		;
	CPU_ZERO(&own);
	CPU_SET(i, &own);
	check_int(sched_setaffinity(0, sizeof(own), &own), 0);
	check_rejected(&options, -EINVAL);
	options.spin_ns = 0;
	check_accepted(&options);
}

Test(options, scheduling_policy_below_inherit_is_rejected)
{
	struct tw_options options = defaults();

	options.scheduling_policy = -2;
	check_rejected(&options, -EINVAL);
}
