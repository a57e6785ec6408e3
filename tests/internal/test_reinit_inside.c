/* SPDX-License-Identifier: MIT */
/*
 * A process forks between two steps of a stop: the stop has stored its hook, but has not closed the
 * engine yet. The child's engine must be open, and the child's own stop must stop it. The child
 * makes no thread.
 *
 * Seen to fail with this defect: the child keeps the parent's claim on the stop (`stop_claimed`),
 * so its own stop closes nothing, and waits.
 */
#include "engine/engine.h"

#include "heir.h"

static struct fixture fixture;
static struct probe probe;

static void child_stops_it(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_start(fixture.engine), 0);
	child_need(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, NS_PER_S), 0);
	child_need(fixture.back.count, 1);
	heir_close(&fixture);
}

Test(reinit_inside, child_may_stop_after_a_stop_that_had_only_claimed)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	(void)probe_schedule(&fixture, &probe, NS_PER_S);
	atomic_store(&fixture.engine->stop_claimed, true);
	in_child(child_stops_it);
	atomic_store(&fixture.engine->stop_claimed, false);
	fixture_close(&fixture);
	check_int(probe.finalised, 1);
}
