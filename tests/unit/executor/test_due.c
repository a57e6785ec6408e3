/* SPDX-License-Identifier: MIT */
/*
 * The same node serves two dispatched timeouts, one after the other. The first one has run, the
 * second one has not. Another tw_due_run of the first one must return -ESTALE. If a dispatch hook
 * runs a timeout and then rejects it, the engine must not put back the second timeout instead.
 *
 * Seen to fail with these defects: tw_due_run, or the engine's put-back, checks only the state, and
 * not the generation.
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

static struct fixture other;
static struct tw_due other_next;
static atomic_int other_runs;

/* Runs the timeout. Schedules a timeout in another engine, which gets the same node, and which that
 * engine's executor keeps. Then rejects the first timeout. */
static size_t run_and_reject(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	check_int(count, 1);
	check_int(tw_due_run(due), 0);
	for (int i = 0; i < TRIES; i++) {
		other_next = dispatched(&other, &other_runs);
		if (other_next.handle.node == due->handle.node)
			break;
		check_int(tw_due_run(&other_next), 0);
	}
	atomic_store(&other_runs, 0);
	return 0;
}

static void loop_open(struct fixture *fixture, tw_dispatch_hook *hook)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	options.dispatch = hook;
	options.rejection = TW_REJECTION_REQUEUE;
	fixture_open(fixture, &options);
	check_int(tw_engine_start(fixture->engine), 0);
}

Test(due, a_rejected_one_that_has_run_is_not_put_back)
{
	static atomic_int runs;
	struct fixture fixture;

	loop_open(&fixture, run_and_reject);
	loop_open(&other, keep);
	must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, 2 * fixture.tick_ns);
	check_int(runs, 1);
	check_int(tw_timeout_state(other_next.handle), TW_STATE_EXPIRED);
	check_int(tw_due_run(&other_next), 0);
	check_int(other_runs, 1);
	fixture_close(&other);
	fixture_close(&fixture);
}
