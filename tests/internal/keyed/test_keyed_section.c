/* SPDX-License-Identifier: MIT */
/*
 * A call of keyed timeouts must run the program's code outside its own read-side section. Otherwise
 * a thread that waits for a grace period would wait for that code.
 *
 * Seen to fail with this defect: an entry and its timer are made inside the section of the
 * scheduling call.
 */
#include "keyed_scene.h"

#include "thread/rcu.h"

#include <pthread.h>
#include <stdlib.h>

/* How often the library called the program's code. No such call may be inside a section. */
struct calls {
	atomic_int thread, allocate, ended;
	pthread_t made;
};

static int thread_hook(void *context, void *(*body)(void *), void *arg)
{
	struct calls *calls = context;

	check_true(!twi_rcu_inside());
	atomic_fetch_add(&calls->thread, 1);
	return pthread_create(&calls->made, NULL, body, arg);
}

static void *allocate(void *context, size_t bytes, size_t align)
{
	struct calls *calls = context;

	check_true(!twi_rcu_inside());
	atomic_fetch_add(&calls->allocate, 1);
	return align <= _Alignof(max_align_t) ? malloc(bytes) : aligned_alloc(align, bytes);
}

static void release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

static int64_t on_run(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	(void)arg;
	check_true(!twi_rcu_inside());
	return TW_KEYED_END;
}

static void on_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct calls *calls = arg;

	(void)self;
	(void)end;
	check_true(!twi_rcu_inside());
	atomic_fetch_add(&calls->ended, 1);
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, on_ended);

static void open_scene(struct calls *calls, struct tw_engine **ret_engine,
		       struct tw_keyed **ret_table)
{
	/* A table's allocator must remain valid for the rest of the process. */
	static struct tw_allocator allocator = {.allocate = allocate, .release = release};
	struct tw_options options = fixture_options();
	struct tw_keyed_options table_options;

	allocator.context = calls;
	options.thread = thread_hook;
	options.thread_context = calls;
	check_int(tw_engine_create(&options, ret_engine), 0);
	check_int(tw_keyed_options_init(&table_options, sizeof table_options), 0);
	table_options.allocator = &allocator;
	check_int(tw_keyed_create(*ret_engine, &table_options, ret_table), 0);
}

Test(keyed_section, calls_of_the_program)
{
	static const char key[64] = "too long to have room in an entry";
	static struct calls calls;
	struct tw_engine *engine;
	struct tw_keyed *table;
	int before;

	open_scene(&calls, &engine, &table);
	before = calls.allocate;
	check_int(tw_keyed_schedule(table, key, 64, NS_PER_S, &kind, &calls, NULL), TW_KEYED_DONE);
	check_int(calls.thread, 1);
	/* One allocation is for entries, and one for the key. */
	check_int(calls.allocate, before + 2);
	check_int(tw_keyed_replace(table, key, 64, NS_PER_S, &kind, &calls, NULL),
		  TW_KEYED_REPLACED);
	check_int(calls.ended, 1);
	check_int(tw_keyed_cancel(table, key, 64, TW_KEYED_ANY), TW_KEYED_DONE);
	check_int(calls.ended, 2);
	check_int(tw_keyed_schedule(table, key, 64, 0, &kind, &calls, NULL), TW_KEYED_DONE);
	check_true(wait_until_at_least(&calls.ended, 3));
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(pthread_join(calls.made, NULL), 0);
	check_int(tw_keyed_destroy(table), 0);
	check_int(tw_engine_destroy(engine), 0);
}
