/* SPDX-License-Identifier: MIT */
/*
 * The default engine in a forked child. The child gets one of its own. If the child has taken over
 * the parent's default engine before, it gets that engine.
 *
 * Seen to fail with these defects: a child gets its parent's engine; a child makes a second default
 * engine although it has taken over the parent's.
 */
#include "heir.h"

static struct tw_engine *parents;
static atomic_int runs;

static void child_makes_its_own(void)
{
	struct tw_engine *own;

	heir_threads_begin();
	child_need(tw_schedule(parents, 0, &count_kind, &runs, NULL), -ECHILD);
	own = tw_default_engine();
	child_need(own != NULL && own != parents, true);
	child_need(tw_default_engine() == own, true);
	child_need(tw_schedule(own, 0, &count_kind, &runs, NULL), 0);
	child_need(wait_until_at_least(&runs, 1), true);
	child_need(tw_engine_destroy(own), -EBUSY);
	child_need(tw_engine_destroy(parents), 0);
	child_need(tw_engine_stop(own, NULL, NULL, TW_NEVER), 0);
}

static void child_makes_it_after_a_call(void)
{
	child_need(tw_fork_reinit(NULL, 0), 0);
	child_makes_its_own();
}

static void child_takes_over(void)
{
	heir_threads_begin();
	child_need(tw_engine_destroy(parents), -EBUSY);
	child_need(tw_fork_reinit(parents, TW_REINIT_KEEP), 0);
	child_need(tw_default_engine() == parents, true);
	child_need(tw_engine_pending(parents), 1);
	child_need(tw_engine_stop(parents, NULL, NULL, TW_NEVER), 0);
}

static void parent_open(void)
{
	parents = tw_default_engine();
	check_true(parents != NULL);
	(void)must_schedule(parents, TW_NEVER, &count_kind, &runs);
}

static void parent_close(void)
{
	check_true(tw_default_engine() == parents);
	check_int(tw_engine_pending(parents), 1);
	check_int(tw_engine_stop(parents, NULL, NULL, TW_NEVER), 0);
}

Test(reinit_default, a_child_makes_its_own)
{
	parent_open();
	in_child(child_makes_its_own);
	in_child(child_makes_it_after_a_call);
	parent_close();
}

Test(reinit_default, a_child_keeps_the_one_that_it_has_taken_over)
{
	parent_open();
	in_child(child_takes_over);
	parent_close();
}
