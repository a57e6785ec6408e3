/* SPDX-License-Identifier: MIT */
/* The engine in virtual time that most tests use. */
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Returns the default options, but with the hashed wheel, unless TESTS_WHEEL=hierarchical is set.
 * So whole suites can run with either wheel.
 */
static struct tw_options defaults(void)
{
	const char *wheel = getenv("TESTS_WHEEL");
	struct tw_options options;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.wheel = wheel != NULL && strcmp(wheel, "hierarchical") == 0 ? TW_WHEEL_HIERARCHICAL
									    : TW_WHEEL_HASHED;
	return options;
}

struct tw_options fixture_options(void)
{
	struct tw_options options = defaults();

	options.check = TW_CHECK_FULL;
	return options;
}

/* Opens the engine. In loop mode the thread of the test enters the loop, so it is the owner. */
static struct tw_engine *engine_open(const struct tw_options *options)
{
	struct tw_engine *engine = NULL;

	check_int(tw_engine_create(options, &engine), 0);
	if ((options->flags & TW_ENGINE_LOOP) != 0)
		check_int(tw_loop_enter(engine), 0);
	return engine;
}

void fixture_open_at(struct fixture *fixture, const struct tw_options *options, int64_t start_ns)
{
	struct tw_options own = options ? *options : fixture_options();

	memset(fixture, 0, sizeof(*fixture));
	check_int(tw_clock_create_virtual(start_ns, &fixture->clock), 0);
	own.clock = fixture->clock;
	fixture->engine = engine_open(&own);
	fixture->now_ns = start_ns;
	fixture->tick_ns = (int64_t)own.tick_ns;
}

void fixture_open(struct fixture *fixture, const struct tw_options *options)
{
	fixture_open_at(fixture, options, 0);
}

void fixture_flush(struct fixture *fixture)
{
	check_int(tw_engine_flush(fixture->engine, PATIENCE_NS), 0);
}

void fixture_advance_to(struct fixture *fixture, int64_t now_ns)
{
	/* Must be set before the clock moves, because callbacks that become due by the move may
	 * read it. */
	fixture->now_ns = now_ns;
	check_int(tw_clock_set(fixture->clock, now_ns), 0);
	fixture_flush(fixture);
}

void fixture_advance(struct fixture *fixture, int64_t step_ns)
{
	fixture_advance_to(fixture, fixture->now_ns + step_ns);
}

void back_log_hook(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		   int64_t remaining_ns)
{
	struct back_log *log = context;

	log->handle = handle;
	atomic_store(&log->kind, kind);
	atomic_store(&log->arg, arg);
	atomic_store(&log->remaining_ns, remaining_ns);
	atomic_fetch_add(&log->count, 1);
}

void fixture_stop(struct fixture *fixture)
{
	check_int(tw_engine_stop(fixture->engine, back_log_hook, &fixture->back, PATIENCE_NS), 0);
}

struct tw_stats stats_of(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof(stats)};

	check_int(tw_stats_get(engine, &stats), 0);
	return stats;
}

void check_books(struct tw_engine *engine)
{
	struct tw_stats stats = stats_of(engine);

	check_int(stats.scheduled,
		  stats.expired + stats.cancelled + stats.unexpired + stats.pending);
	check_int(stats.pending, tw_engine_pending(engine));
	check_int(stats.check_failures, 0);
}

void check_last_books(struct tw_engine *engine)
{
	struct tw_stats stats = stats_of(engine);

	check_books(engine);
	check_int(stats.pending, 0);
	check_int(stats.ingress, 0);
	check_int(stats.unreclaimed, 0);
	check_int(stats.parks, stats.woken_by_deadline + stats.woken_by_producer +
				       stats.woken_by_call + stats.woken_otherwise);
}

void fixture_destroy(struct fixture *fixture)
{
	check_int(tw_engine_destroy(fixture->engine), 0);
	check_int(tw_clock_destroy(fixture->clock), 0);
}

void fixture_close(struct fixture *fixture)
{
	fixture_stop(fixture);
	check_last_books(fixture->engine);
	fixture_destroy(fixture);
}

struct tw_engine *real_engine_open(const struct tw_options *options)
{
	struct tw_options own = options ? *options : defaults();

	return engine_open(&own);
}

void real_engine_close(struct tw_engine *engine)
{
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_last_books(engine);
	check_int(tw_engine_destroy(engine), 0);
}

int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + (int64_t)now.tv_nsec;
}

void sleep_ns(int64_t duration_ns)
{
	struct timespec left = {.tv_sec = (time_t)(duration_ns / NS_PER_S),
				.tv_nsec = (long)(duration_ns % NS_PER_S)};

	while (nanosleep(&left, &left) == -1 && errno == EINTR)
		;
}

bool wait_until_at_least(atomic_int *value, int target)
{
	int64_t limit_ns = monotonic_ns() + PATIENCE_NS;

	while (atomic_load(value) < target) {
		if (monotonic_ns() > limit_ns)
			return false;
		sleep_ns(100 * NS_PER_US);
	}
	return true;
}

bool same_handle(struct tw_handle left, struct tw_handle right)
{
	return left.node == right.node && left.generation == right.generation;
}
