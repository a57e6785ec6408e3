/* SPDX-License-Identifier: MIT */
/*
 * Calls many functions of the library while the allocator fails at its k-th call, for every k. Each
 * k has a new process. No call may crash, each must return a code, and no accepted timeout may be
 * lost. When there is memory again, the engine must be usable.
 */
#include "child.h"
#include "fault.h"
#include "probe.h"
#include "slowdown.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FAR_COUNT = 30000,
	SOON_COUNT = 3000,
	/* Exit codes of a tour, which is one run of all calls. */
	TOUR_GOOD = 0,
	TOUR_BAD = 1,
	TOUR_NO_FAILURE = 2,
};

struct tour {
	struct fault fault;
	struct tw_clock *clock;
	struct tw_engine *engine;
	atomic_int soon_runs;
	atomic_int far_runs;
	int soon_accepted;
	int far_accepted;
	int cancelled;
	struct back_log back;
};

/* Replaces cr_assert, which a forked process must not use. */
#define need(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition);          \
			_exit(TOUR_BAD);                                                           \
		}                                                                                  \
	} while (0)

static void tour_create(struct tour *tour)
{
	struct tw_options options;
	int error;

	need(tw_options_init(&options, sizeof(options)) == 0);
	error = tw_clock_create_virtual(0, &tour->clock);
	need(error == 0 || error == -ENOMEM);
	if (error != 0) {
		fault_disarm(&tour->fault);
		need(tw_clock_create_virtual(0, &tour->clock) == 0);
	}
	options.clock = tour->clock;
	options.slow_ns = INT64_MAX;
	options.check = TW_CHECK_CHEAP;
	options.flags = TW_ENGINE_ORDERED;
	error = tw_engine_create(&options, &tour->engine);
	need(error == 0 || error == -ENOMEM);
	if (error != 0) {
		fault_disarm(&tour->fault);
		need(tw_engine_create(&options, &tour->engine) == 0);
	}
}

static bool tour_schedule(struct tour *tour, int64_t delay_ns, atomic_int *runs, bool cancel)
{
	struct tw_handle handle;
	int error = tw_schedule(tour->engine, delay_ns, &count_kind, runs, &handle);

	need(error == 0 || error == -ENOMEM);
	if (error == 0 && cancel) {
		need(tw_cancel(handle) == TW_CANCEL_DONE);
		tour->cancelled++;
		return false;
	}
	return error == 0;
}

static void tour_fill(struct tour *tour)
{
	int far_count = (int)slowed(FAR_COUNT), soon_count = (int)slowed(SOON_COUNT);
	int error = tw_memory_reserve(1000);
	int i;

	need(error == 0 || error == -ENOMEM);
	error = tw_thread_attach();
	need(error == 0 || error == -ENOMEM);
	for (i = 0; i < far_count; i++)
		tour->far_accepted += tour_schedule(tour, NS_PER_S + i * NS_PER_MS / 8,
						    &tour->far_runs, i % 7 == 0);
	for (i = 0; i < soon_count; i++)
		tour->soon_accepted +=
			tour_schedule(tour, i % 10 * NS_PER_MS, &tour->soon_runs, false);
}

static void tour_expire(struct tour *tour)
{
	need(tw_clock_set(tour->clock, 20 * NS_PER_MS) == 0);
	/*
	 * If the worker gets no memory for its wheel, it keeps the timeouts until there is some. The
	 * first flush makes the worker try while the allocator still fails.
	 */
	need(tw_engine_flush(tour->engine, PATIENCE_NS) == 0);
	fault_disarm(&tour->fault);
	need(tw_engine_flush(tour->engine, PATIENCE_NS) == 0);
	need(tour->soon_runs == tour->soon_accepted);
	need(tour->far_runs == 0);
	need(tw_engine_pending(tour->engine) == tour->far_accepted);
}

static void tour_afterwards(struct tour *tour)
{
	int i;

	for (i = 0; i < 1000; i++)
		need(tw_schedule(tour->engine, 1, &count_kind, &tour->soon_runs, NULL) == 0);
	need(tw_clock_set(tour->clock, 30 * NS_PER_MS) == 0);
	need(tw_engine_flush(tour->engine, PATIENCE_NS) == 0);
	need(tour->soon_runs == tour->soon_accepted + 1000);
}

static void tour_stop(struct tour *tour)
{
	struct tw_stats stats = {.size = sizeof(stats)};

	need(tw_engine_stop(tour->engine, back_log_hook, &tour->back, PATIENCE_NS) == 0);
	need(tour->back.count == tour->far_accepted);
	need(tw_stats_get(tour->engine, &stats) == 0);
	need(stats.pending == 0 && stats.check_failures == 0);
	need(stats.cancelled == (uint64_t)tour->cancelled);
	need(stats.scheduled == stats.expired + stats.cancelled + stats.unexpired);
	need(tw_engine_destroy(tour->engine) == 0);
	need(tw_clock_destroy(tour->clock) == 0);
	need(tour->fault.bad_releases == 0);
}

static int tour_run(long long k, long long count)
{
	struct tour *tour = calloc(1, sizeof(*tour));

	need(tour != NULL);
	fault_init(&tour->fault);
	need(tw_memory_allocator_set(&tour->fault.allocator) == 0);
	fault_arm(&tour->fault, k, count);
	tour_create(tour);
	tour_fill(tour);
	tour_expire(tour);
	tour_afterwards(tour);
	tour_stop(tour);
	return tour->fault.failed > 0 ? TOUR_GOOD : TOUR_NO_FAILURE;
}

static int tour_in_child(long long k, long long count)
{
	pid_t child = quiet_fork();
	int status = 0;

	if (child == 0) {
		alarm(60);
		child_end(tour_run(k, count));
	}
	check_int(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "k = %lld ended by signal %d", k, WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* Tries k = 1, then 2, and so on, until the tour makes fewer than k allocations. */
static void check_every_k(long long count)
{
	long long k = 0;
	int code;

	do {
		code = tour_in_child(++k, count);
		cr_assert(code != TOUR_BAD, "fails at k = %lld", k);
	} while (code == TOUR_GOOD && k < 2000);
	check_at_least(k, 4);
	check_int(code, TOUR_NO_FAILURE);
}

Test(allocation_failure, engine_survives_one_failed_allocation)
{
	check_every_k(1);
}

Test(allocation_failure, engine_survives_ten_failed_allocations)
{
	check_every_k(10);
}

Test(allocation_failure, all_calls_from_there_fail)
{
	check_every_k(LLONG_MAX);
}
