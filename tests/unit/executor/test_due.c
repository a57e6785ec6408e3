/* SPDX-License-Identifier: MIT */
/*
 * A dispatched timeout has run, and its node serves another dispatched timeout that has not. A
 * second run of the first must return stale.
 *
 * Seen to fail with this defect: tw_due_run checks only the state, and not the generation.
 */
#include "probe.h"

#include <errno.h>

enum { TRIES = 1000 };

static struct tw_due last;

static size_t keep(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	check_int(count, 1);
	last = due[0];
	return 1;
}

static struct tw_due dispatched(struct fixture *fixture, atomic_int *runs)
{
	must_schedule(fixture->engine, 1, &count_kind, runs);
	fixture_advance(fixture, 2 * fixture->tick_ns);
	return last;
}

Test(due, a_second_run_is_stale_in_the_nodes_next_life)
{
	static atomic_int first_runs, runs;
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_due first, next;

	options.dispatch = keep;
	fixture_open(&fixture, &options);
	first = dispatched(&fixture, &first_runs);
	check_int(tw_due_run(&first), 0);
	for (int i = 0; i < TRIES; i++) {
		next = dispatched(&fixture, &runs);
		if (next.handle.node == first.handle.node)
			break;
		check_int(tw_due_run(&next), 0);
	}
	cr_assert_eq(next.handle.node, first.handle.node);
	check_int(tw_due_run(&first), -ESTALE);
	check_int(first_runs, 1);
	check_int(tw_due_run(&next), 0);
	fixture_close(&fixture);
}
