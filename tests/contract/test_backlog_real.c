/* SPDX-License-Identifier: MIT */
/*
 * Defect B18 (docs/internals/testing.md) in real time: one thread schedules a million timeouts of
 * 1 ms, as fast as it can, at a tick of 100 ms. Other hashed wheels transfer at most 100,000
 * timeouts in each tick, so they finish 0.72 to 0.86 s late. Here no timeout may be later than half
 * of 0.72 s. The defect would make every try late, but a busy machine delays only some tries. So
 * one good try of many is enough.
 */
#include "fixture.h"

#include <stdlib.h>

enum { COUNT = 1000000, TRIES = 20 };

static struct tw_engine *engine;
static atomic_int runs;
static _Atomic int64_t worst_ns;

static void on_late(struct tw_handle self, void *arg)
{
	int64_t late_ns = tw_engine_now(engine) - *(int64_t *)arg;

	(void)self;
	if (late_ns > worst_ns)
		worst_ns = late_ns;
	atomic_fetch_add(&runs, 1);
}

static const struct tw_kind late_kind = TW_KIND(on_late, NULL);

/* Returns how late the latest timeout was. */
static int64_t one_try(int64_t *deadlines_ns)
{
	struct tw_options options = fixture_options();

	options.check = TW_CHECK_NONE;
	options.tick_ns = 100000000;
	options.slots = 512;
	atomic_store(&runs, 0);
	atomic_store(&worst_ns, 0);
	engine = real_engine_open(&options);
	for (int i = 0; i < COUNT; i++) {
		deadlines_ns[i] = tw_engine_now(engine) + NS_PER_MS;
		check_int(
			tw_schedule_at(engine, deadlines_ns[i], &late_kind, &deadlines_ns[i], NULL),
			0);
	}
	check_true(wait_until_at_least(&runs, COUNT));
	real_engine_close(engine);
	return atomic_load(&worst_ns);
}

Test(backlog_real, b18_a_million_of_one_ms_run_on_time)
{
	int64_t *deadlines_ns = calloc(COUNT, sizeof(*deadlines_ns));
	int64_t best_ns = INT64_MAX;

	check_int(tw_memory_reserve(COUNT), 0);
	for (int i = 0; i < TRIES && best_ns > 360 * NS_PER_MS; i++)
		best_ns = one_try(deadlines_ns);
	check_at_most(best_ns, 360 * NS_PER_MS);
	free(deadlines_ns);
}
