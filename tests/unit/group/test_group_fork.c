/* SPDX-License-Identifier: MIT */
/*
 * A group in a forked child that takes over some or all of its engines. As long as one engine
 * belongs to the parent, a call on all of them must return -ECHILD before it has changed anything.
 *
 * Seen to fail with these defects: a stop checks only the first engine, and stops it although
 * others belong to the parent; a destroy treats an engine of the child as the parent's.
 */
#include "heir.h"

#include <errno.h>

enum { THREE = 3 };

static struct tw_group *group;
static struct tw_handle handles[THREE];
static atomic_int runs;

static void group_open(void)
{
	struct tw_group_options options;

	check_int(tw_group_options_init(&options, sizeof options), 0);
	options.engines = THREE;
	check_int(tw_group_create(&options, &group), 0);
	for (uint32_t i = 0; i < THREE; i++)
		handles[i] = must_schedule(tw_group_engine(group, i), 3600 * NS_PER_S, &count_kind,
					   &runs);
}

static void group_close(void)
{
	check_int(tw_group_pending(group), THREE);
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_group_destroy(group), 0);
}

static void all_say_echild(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	child_need(tw_group_pending(group), -ECHILD);
	child_need(tw_group_stats_get(group, &stats), -ECHILD);
	child_need(tw_group_stop(group, NULL, NULL, TW_NEVER), -ECHILD);
}

/* Takes over the first engine or the last, so that the engine after it, or before it, is the
 * parent's. */
static void child_takes(uint32_t number)
{
	struct tw_engine *engine = tw_group_engine(group, number);

	all_say_echild();
	child_need(tw_fork_reinit(engine, TW_REINIT_KEEP), 0);
	all_say_echild();
	child_need(tw_timeout_state(handles[number]), TW_STATE_INIT);
	child_need(tw_schedule(engine, 1, &count_kind, &runs, NULL), 0);
	child_need(wait_until_at_least(&runs, 1), true);
	child_need(tw_group_destroy(group), -EBUSY);
	child_need(tw_engine_pending(engine), 1);
	child_need(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	child_need(tw_group_destroy(group), 0);
}

static void child_takes_the_first(void)
{
	child_takes(0);
}

static void child_takes_the_last(void)
{
	child_takes(THREE - 1);
}

Test(group_fork, child_may_take_over_one_engine)
{
	group_open();
	in_child(child_takes_the_first);
	in_child(child_takes_the_last);
	group_close();
}

/* Takes over all engines. Then the group must work like any other. */
static void child_takes_all(void)
{
	int outcomes[THREE];

	for (uint32_t i = 0; i < THREE; i++)
		child_need(tw_fork_reinit(tw_group_engine(group, i), i == 1 ? 0 : TW_REINIT_KEEP),
			   0);
	child_need(tw_group_pending(group), THREE - 1);
	child_need(tw_cancel_many(handles, THREE, outcomes), THREE - 1);
	child_need(outcomes[0], TW_CANCEL_DONE);
	child_need(outcomes[1], TW_CANCEL_STALE);
	child_need(outcomes[2], TW_CANCEL_DONE);
	child_need(tw_group_schedule(group, 1, &count_kind, &runs, NULL), 0);
	child_need(wait_until_at_least(&runs, 1), true);
	child_need(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	child_need(tw_group_destroy(group), 0);
}

Test(group_fork, all_are_taken_over)
{
	group_open();
	in_child(child_takes_all);
	group_close();
}

/* Cancels a batch with handles of the child's engine and of the parent's. */
static void child_cancels_of_both(void)
{
	int outcomes[THREE];

	child_need(tw_cancel_many(handles, THREE, outcomes), -ECHILD);
	child_need(tw_fork_reinit(tw_group_engine(group, 1), TW_REINIT_KEEP), 0);
	child_need(tw_cancel_many(handles, THREE, outcomes), 1);
	child_need(outcomes[0], -ECHILD);
	child_need(outcomes[1], TW_CANCEL_DONE);
	child_need(outcomes[2], -ECHILD);
}

Test(group_fork, child_cancels_a_batch_of_both_engines)
{
	group_open();
	in_child(child_cancels_of_both);
	group_close();
}
