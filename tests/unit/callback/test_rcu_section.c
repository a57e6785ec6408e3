/* SPDX-License-Identifier: MIT */
/*
 * A program that uses liburcu-bp itself and makes calls inside its own read-side section. All calls
 * must work, also stop, and destroy with a virtual clock, because the library does not use
 * liburcu-bp's sections.
 *
 * Seen to fail with this defect: a grace period of the library is also one of liburcu-bp, so a stop
 * waits for the program's section.
 */
#include "child.h"
#include "heir_threads.h"
#include "probe.h"

#include <errno.h>
#include <urcu-bp.h>

Test(rcu_section, all_calls_work_inside_the_programs_own)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	urcu_bp_read_lock();
	probe_schedule(&fixture, &probe, NS_PER_MS);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(probe.runs, 1);
	probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_close(&fixture);
	urcu_bp_read_unlock();
	check_int(fixture.back.count, 1);
	check_int(probe.finalised, 1);
}

static void child_creates(void)
{
	struct tw_engine *engine = NULL;

	heir_threads_begin();
	child_need(tw_engine_create(NULL, &engine), 0);
	child_need(tw_engine_start(engine), 0);
	child_need(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	child_need(tw_engine_destroy(engine), 0);
	urcu_bp_read_unlock();
}

Test(rcu_section, a_child_forked_inside_one_creates_engines)
{
	struct fixture fixture;

	if (!heir_threads_possible())
		return;
	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, NS_PER_S, &count_kind, NULL);
	urcu_bp_read_lock();
	in_child(child_creates);
	urcu_bp_read_unlock();
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
}
