/* SPDX-License-Identifier: MIT */
/*
 * The layers above engines, in a child that takes the engines over. A keyed table stays the
 * parent's, and its timers must do nothing when they are due. A group becomes the child's when the
 * child has taken over each of its engines.
 *
 * Seen to fail with these defects: a table's timer runs its entry without a check of the process;
 * for its count of pending timeouts, a group checks only its first engine.
 */
#include "heir.h"
#include "keyed_scene.h"

static struct fixture fixture;
static struct tw_keyed *table;
static struct item items[2], own_item;

static void child_asks_the_table(void)
{
	struct tw_keyed_info info = {.size = sizeof info};

	child_need(key_schedule(table, "new", 0, &items[0]), -ECHILD);
	child_need(key_replace(table, "one", 0, &items[0]), -ECHILD);
	child_need(key_cancel(table, "one"), -ECHILD);
	child_need(key_get(table, "one", &info), -ECHILD);
	child_need(tw_keyed_destroy(table), -EBUSY);
}

static void child_makes_a_table(void)
{
	struct tw_keyed *own = NULL;

	item_init(&own_item, fixture.engine);
	child_need(tw_keyed_create(fixture.engine, NULL, &own), 0);
	child_need(key_schedule(own, "one", NS_PER_MS, &own_item), TW_KEYED_DONE);
	heir_advance(&fixture, 3 * NS_PER_MS);
	child_need(own_item.runs, 1);
	child_need(own_item.ended, 1);
	child_need(tw_keyed_destroy(own), 0);
}

static void child_has_no_table(void)
{
	child_asks_the_table();
	heir_take(&fixture, TW_REINIT_KEEP);
	child_asks_the_table();
	child_need(tw_engine_pending(fixture.engine), 2);
	/* One timer is due, and the other is handed back. Neither may run its entry in the
	 * child. */
	heir_advance(&fixture, 2 * NS_PER_S);
	child_makes_a_table();
	heir_close(&fixture);
	child_need(fixture.back.count, 1);
	child_asks_the_table();
	for (int i = 0; i < 2; i++)
		child_need(items[i].runs + items[i].ended, 0);
}

Test(reinit_layers, parents_table_is_rejected_in_the_child)
{
	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	for (int i = 0; i < 2; i++)
		item_init(&items[i], fixture.engine);
	check_int(key_schedule(table, "one", NS_PER_S, &items[0]), TW_KEYED_DONE);
	check_int(key_schedule(table, "two", 9 * NS_PER_S, &items[1]), TW_KEYED_DONE);
	fixture_advance(&fixture, NS_PER_MS);
	in_child(child_has_no_table);
	fixture_advance(&fixture, 10 * NS_PER_S);
	for (int i = 0; i < 2; i++)
		check_int(items[i].ended, 1);
	fixture_close(&fixture);
	check_int(tw_keyed_destroy(table), 0);
}

/* The tests of a group, in real time. */
static struct tw_group *group;
static struct tw_handle handles[2];
static atomic_int runs;

static void child_takes_all_of_the_group(void)
{
	heir_threads_begin();
	child_need(tw_fork_reinit(tw_group_engine(group, 0), TW_REINIT_KEEP), 0);
	child_need(tw_group_pending(group), -ECHILD);
	child_need(tw_group_schedule(group, 1, &count_kind, &runs, NULL), 0);
	child_need(tw_timeout_state(handles[1]), -ECHILD);
	child_need(tw_group_destroy(group), -EBUSY);
	child_need(tw_fork_reinit(tw_group_engine(group, 1), TW_REINIT_KEEP), 0);
	child_need(wait_until_at_least(&runs, 1), true);
	child_need(tw_group_pending(group), 2);
	child_need(tw_cancel(handles[1]), TW_CANCEL_DONE);
	child_need(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	child_need(tw_timeout_state(handles[0]), TW_STATE_CANCELLED);
	child_need(tw_group_destroy(group), 0);
}

Test(reinit_layers, group_works_once_the_child_has_all_its_engines)
{
	struct tw_group_options options;

	check_int(tw_group_options_init(&options, sizeof options), 0);
	options.engines = 2;
	check_int(tw_group_create(&options, &group), 0);
	for (uint32_t i = 0; i < 2; i++)
		handles[i] = must_schedule(tw_group_engine(group, i), 3600 * NS_PER_S, &count_kind,
					   &runs);
	/* The engine of this thread must be the first, because the child schedules on that one. */
	check_true(tw_group_here(group) == tw_group_engine(group, 0));
	check_int(tw_engine_flush(tw_group_engine(group, 0), PATIENCE_NS), 0);
	check_int(tw_engine_flush(tw_group_engine(group, 1), PATIENCE_NS), 0);
	in_child(child_takes_all_of_the_group);
	check_int(runs, 0);
	check_int(tw_group_pending(group), 2);
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_group_destroy(group), 0);
}
