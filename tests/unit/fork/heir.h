/* SPDX-License-Identifier: MIT */
/*
 * A fixture's engine in a forked child that has taken it over. These functions do the same as the
 * fixture's, but with assertions that work in a child. Include once per test program.
 */
#ifndef TESTS_HEIR_H
#define TESTS_HEIR_H

#include "child.h"
#include "heir_threads.h"
#include "probe.h"

#include <errno.h>
#include <string.h>

static inline void heir_take(struct fixture *fixture, uint64_t flags)
{
	heir_threads_begin();
	child_need(tw_fork_reinit(fixture->engine, flags), 0);
	memset(&fixture->back, 0, sizeof fixture->back);
}

static inline void heir_advance_to(struct fixture *fixture, int64_t now_ns)
{
	fixture->now_ns = now_ns;
	child_need(tw_clock_set(fixture->clock, now_ns), 0);
	child_need(tw_engine_flush(fixture->engine, PATIENCE_NS), 0);
}

static inline void heir_advance(struct fixture *fixture, int64_t step_ns)
{
	heir_advance_to(fixture, fixture->now_ns + step_ns);
}

static inline struct tw_stats heir_stats(const struct fixture *fixture)
{
	struct tw_stats stats = {.size = sizeof stats};

	child_need(tw_stats_get(fixture->engine, &stats), 0);
	child_need(stats.scheduled,
		   stats.expired + stats.cancelled + stats.unexpired + stats.pending);
	child_need(stats.check_failures, 0);
	return stats;
}

/* Stops the engine, checks its books, and destroys it. `back` records the timeouts that were
 * handed back. */
static inline void heir_close(struct fixture *fixture)
{
	child_need(tw_engine_stop(fixture->engine, back_log_hook, &fixture->back, PATIENCE_NS), 0);
	child_need(heir_stats(fixture).pending, 0);
	child_need(tw_engine_destroy(fixture->engine), 0);
	child_need(tw_clock_destroy(fixture->clock), 0);
}

#endif
