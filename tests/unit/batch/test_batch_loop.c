/* SPDX-License-Identifier: MIT */
/*
 * Batches whose caller is the worker itself: the owner of a loop. The items of such a batch go
 * directly into the wheel and out of it, and may be owner-only.
 *
 * Seen to fail with these defects: the owner is not recognised, so that its items go through the
 * ring; a batch checks only the first item's kind, and then never ends.
 */
#include "loop_scene.h"

#include <errno.h>
#include <pthread.h>

enum { COUNT = 40 };

struct many {
	struct tw_engine *engine;
	struct tw_item item[COUNT];
	struct tw_handle handle[COUNT];
	int error[COUNT];
	int scheduled;
};

static void many_init(struct many *many, struct tw_engine *engine, const struct tw_kind *kind,
		      atomic_int *runs)
{
	many->engine = engine;
	for (int i = 0; i < COUNT; i++)
		many->item[i] =
			(struct tw_item){.time_ns = (i % 5) * TICK_NS, .kind = kind, .arg = runs};
}

static void *many_schedule(void *argument)
{
	struct many *many = argument;

	many->scheduled =
		tw_schedule_many(many->engine, many->item, COUNT, many->handle, many->error);
	return NULL;
}

static void by_another_thread(struct many *many)
{
	pthread_t thread;

	check_int(pthread_create(&thread, NULL, many_schedule, many), 0);
	check_int(pthread_join(thread, NULL), 0);
}

Test(batch_loop, owners_batch_bypasses_the_lane)
{
	ON_EACH_VARIANT(scene)
	{
		struct many many;
		int outcomes[COUNT];

		many_init(&many, scene.fixture.engine, scene.kind, &scene.runs);
		(void)many_schedule(&many);
		check_int(many.scheduled, COUNT);
		/* The owner's timeouts do not go through a lane, so they count as transferred at
		 * once. They are pending in the wheel, or fresh. */
		check_int(stats_of(many.engine).transferred, COUNT);
		check_int(tw_cancel_many(many.handle, COUNT / 2, outcomes), COUNT / 2);
		check_int(outcomes[0], TW_CANCEL_DONE);
		check_int(scene_poll(&scene, 5 * TICK_NS), COUNT / 2);
		check_int(scene.runs, COUNT / 2);
		check_int(tw_cancel_many(many.handle, COUNT, outcomes), 0);
	}
}

Test(batch_loop, batch_of_another_thread_rejects_owner_only_items)
{
	ON_EACH_VARIANT(scene)
	{
		bool owned = (variant & OWNED) != 0;
		struct many many;

		many_init(&many, scene.fixture.engine, scene.kind, &scene.runs);
		many.item[3].kind = &shared_kind;
		by_another_thread(&many);
		check_int(many.scheduled, owned ? 1 : COUNT);
		check_int(many.error[0], owned ? -EPERM : 0);
		check_int(many.error[3], 0);
		check_int(stats_of(many.engine).rejected, owned ? COUNT - 1 : 0);
		check_int(scene_poll(&scene, 5 * TICK_NS), many.scheduled);
	}
}

/* If the loop has no owner, the first owner-only item makes the caller the owner. */
Test(batch_loop, first_owner_only_item_makes_the_caller_the_owner)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct many many;
	atomic_int runs = 0;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	many_init(&many, fixture.engine, &shared_kind, &runs);
	many.item[COUNT / 2].kind = &owned_kind;
	(void)many_schedule(&many);
	check_int(many.scheduled, COUNT);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_RUNNING);
	check_int(tw_clock_set(fixture.clock, 5 * TICK_NS), 0);
	check_int(tw_engine_poll(fixture.engine, 0), COUNT);
	fixture_close(&fixture);
}

static void *cancel_all(void *argument)
{
	struct many *many = argument;

	many->scheduled = tw_cancel_many(many->handle, COUNT, many->error);
	return NULL;
}

/* Another thread's batch must not cancel the owner-only timeouts, but must cancel the rest. */
Test(batch_loop, cancel_of_another_thread_leaves_owner_only_items)
{
	struct scene scene;
	struct many many;
	pthread_t thread;

	(void)scene_open(&scene, 0);
	many_init(&many, scene.fixture.engine, &shared_kind, &scene.runs);
	for (int i = 0; i < COUNT; i += 2)
		many.item[i].kind = &owned_kind;
	(void)many_schedule(&many);
	check_int(many.scheduled, COUNT);
	check_int(pthread_create(&thread, NULL, cancel_all, &many), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_int(many.scheduled, COUNT / 2);
	check_int(many.error[0], -EPERM);
	check_int(many.error[1], TW_CANCEL_DONE);
	check_int(scene_poll(&scene, 5 * TICK_NS), COUNT / 2);
	fixture_close(&scene.fixture);
}
