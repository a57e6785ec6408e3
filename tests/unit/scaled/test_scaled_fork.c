/* SPDX-License-Identifier: MIT */
/*
 * A scaled kind in a forked child must stay the parent's, whether or not the child takes over the
 * engine.
 *
 * Seen to fail with these defects: a child uses its parent's kind; the child cannot destroy the
 * engine because of its parent's kinds.
 */
#include "child.h"
#include "heir_threads.h"
#include "scaled_scene.h"

static struct fixture forked;
static struct tw_scaled *forked_scaled;
static struct tw_handle forked_handle;
static struct probe forked_probe;

static void all_say_echild(void)
{
	int64_t deadline_ns;

	child_need(tw_scaled_schedule(forked_scaled, &probe_kind, &forked_probe, NULL), -ECHILD);
	child_need(tw_scaled_touch(forked_scaled, forked_handle), -ECHILD);
	child_need(tw_scaled_deadline(forked_scaled, forked_handle, &deadline_ns), -ECHILD);
	child_need(tw_scaled_pending(forked_scaled), -ECHILD);
	child_need(tw_scaled_stop(forked_scaled, NULL, NULL, 0), -ECHILD);
}

static void child_destroys(void)
{
	struct tw_scaled *scaled;
	double factor;

	all_say_echild();
	child_need(tw_scaled_factor_set(forked.engine, 0), -ECHILD);
	child_need(tw_scaled_factor_get(forked.engine, &factor), -ECHILD);
	child_need(tw_scaled_create(forked.engine, 0, 1, &scaled), -ECHILD);
	child_need(tw_scaled_destroy(forked_scaled), 0);
	child_need(tw_engine_destroy(forked.engine), 0);
}

/* Takes over the engine in the child, but not the kind, and makes a kind of the child's own. */
static void child_takes_over(void)
{
	struct tw_scaled *scaled = NULL;
	struct tw_handle handle;

	heir_threads_begin();
	child_need(tw_fork_reinit(forked.engine, TW_REINIT_KEEP), 0);
	all_say_echild();
	child_need(tw_scaled_factor_set(forked.engine, 0), 0);
	child_need(tw_scaled_create(forked.engine, 0, NS_PER_S, &scaled), 0);
	child_need(tw_scaled_schedule(scaled, &probe_kind, &forked_probe, &handle), 0);
	child_need(tw_clock_set(forked.clock, 100 * NS_PER_S), 0);
	child_need(tw_engine_flush(forked.engine, PATIENCE_NS), 0);
	child_need(forked_probe.runs, 1);
	child_need(tw_scaled_stop(scaled, NULL, NULL, PATIENCE_NS), 0);
	child_need(tw_scaled_destroy(scaled), 0);
	child_need(tw_engine_stop(forked.engine, NULL, NULL, PATIENCE_NS), 0);
	child_need(tw_scaled_destroy(forked_scaled), 0);
	child_need(tw_engine_destroy(forked.engine), 0);
}

Test(scaled_fork, kind_stays_the_parents)
{
	fixture_open(&forked, NULL);
	forked_scaled = scaled_open(forked.engine, NS_PER_S, 2 * NS_PER_S);
	forked_handle = scaled_probe(&forked, forked_scaled, &forked_probe);
	fixture_flush(&forked);
	in_child(child_destroys);
	in_child(child_takes_over);
	fixture_advance(&forked, 3 * NS_PER_S);
	check_int(forked_probe.runs, 1);
	scaled_close(forked_scaled);
	fixture_close(&forked);
}
