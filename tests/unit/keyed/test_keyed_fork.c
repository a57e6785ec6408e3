/* SPDX-License-Identifier: MIT */
/*
 * The hook of an entry forks the process. The hook returns in the child, too, inside a call on the
 * parent's table.
 *
 * Seen to fail with these defects: the entry is given to the child's reclaimer, which finds the
 * entry after the entry's table was destroyed; the copy of the entry's key is not released.
 */
#include "child.h"
#include "fault.h"
#include "heir_threads.h"
#include "keyed_scene.h"

enum { LONG_KEY_BYTES = 100 };

static pid_t child;

static void on_end_fork(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	(void)self;
	(void)arg;
	(void)end;
	fflush(NULL);
	child = quiet_fork();
}

static const struct tw_keyed_kind forking_kind = TW_KEYED_KIND(on_item, on_end_fork);

/*
 * Uses a table of the child's own, which must work. Its reclaimer must find only its own entries.
 */
static void child_uses_another(void)
{
	struct tw_engine *engine = NULL;
	struct tw_keyed *table = NULL;
	static struct item item;

	heir_threads_begin();
	child_need(tw_fork_reinit(NULL, 0), 0);
	child_need(tw_engine_create(NULL, &engine), 0);
	child_need(tw_keyed_create(engine, NULL, &table), 0);
	item_init(&item, engine);
	for (int i = 0; i < 10; i++) {
		child_need(key_schedule(table, "a", NS_PER_S, &item), TW_KEYED_DONE);
		child_need(key_cancel(table, "a"), TW_KEYED_DONE);
	}
	child_need(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	/* This call waits until the reclaimer has freed the table's entries. */
	child_need(tw_keyed_destroy(table), 0);
	child_need(tw_engine_destroy(engine), 0);
}

Test(keyed_fork, child_of_a_fork_in_a_hook_can_destroy_the_table)
{
	static const char key[LONG_KEY_BYTES] = "long";
	struct tw_keyed_options options;
	struct tw_keyed *table = NULL;
	struct fixture fixture;
	struct fault fault;
	static struct item item;

	fixture_open(&fixture, NULL);
	fault_init(&fault);
	check_int(tw_keyed_options_init(&options, sizeof options), 0);
	options.allocator = &fault.allocator;
	check_int(tw_keyed_create(fixture.engine, &options, &table), 0);
	item_init(&item, fixture.engine);
	check_int(tw_keyed_schedule(table, key, sizeof key, NS_PER_S, &forking_kind, &item, NULL),
		  TW_KEYED_DONE);
	check_int(tw_keyed_cancel(table, key, sizeof key, TW_KEYED_ANY), TW_KEYED_DONE);
	if (child == 0) {
		child_need(tw_keyed_destroy(table), 0);
		child_need(atomic_load(&fault.live_bytes), 0);
		child_uses_another();
		child_end(0);
	}
	child_await(child);
	scene_close(&fixture, table);
	check_int(atomic_load(&fault.live_bytes), 0);
}
