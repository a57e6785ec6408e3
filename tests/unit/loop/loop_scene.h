/* SPDX-License-Identifier: MIT */
/*
 * A loop in virtual time, with one timeout that the tests reschedule. The variants are owner-only
 * or shared timeouts, each wheel, ordered or not. The engine checks its wheel in each turn.
 */
#ifndef TESTS_LOOP_SCENE_H
#define TESTS_LOOP_SCENE_H

#include "fixture.h"
#include "slowdown.h"

#define TICK_NS INT64_C(1000000)

struct scene {
	struct fixture fixture;
	const struct tw_kind *kind;
	struct tw_handle handle;
	atomic_int runs;
};

static inline void on_count(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind shared_kind = TW_KIND(on_count, NULL);
static const struct tw_kind owned_kind = TW_KIND_OWNER_ONLY(on_count, NULL);

/* Bits of a variant. */
enum { OWNED = 1, HIERARCHICAL = 2, ORDERED = 4, VARIANTS = 8 };

static inline bool scene_open(struct scene *scene, int variant)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP | ((variant & ORDERED) != 0 ? TW_ENGINE_ORDERED : 0);
	options.wheel = (variant & HIERARCHICAL) != 0 ? TW_WHEEL_HIERARCHICAL : TW_WHEEL_HASHED;
	fixture_open(&scene->fixture, &options);
	check_int(tw_engine_start(scene->fixture.engine), 0);
	scene->kind = (variant & OWNED) != 0 ? &owned_kind : &shared_kind;
	scene->runs = 0;
	return true;
}

#define ON_EACH_VARIANT(scene)                                                                     \
	struct scene scene;                                                                        \
	for (int variant = 0; variant < VARIANTS; fixture_close(&scene.fixture), variant++)        \
		if (scene_open(&scene, variant))

/*
 * Returns the step from one tested case to the next of `count` cases. A slow run skips cases. The
 * step is odd, so that all kinds of cases are still tested.
 */
static inline int case_stride(int count)
{
	return count / (int)slowed((uint64_t)count) | 1;
}

static inline struct tw_handle scene_schedule(struct scene *scene, int64_t deadline_ns)
{
	check_int(tw_schedule_at(scene->fixture.engine, deadline_ns, scene->kind, &scene->runs,
				 &scene->handle),
		  0);
	return scene->handle;
}

static inline int64_t scene_poll(struct scene *scene, int64_t now_ns)
{
	check_int(tw_clock_set(scene->fixture.clock, now_ns), 0);
	return tw_engine_poll(scene->fixture.engine, 0);
}

/* Returns the beginning of the first tick after a deadline. */
static inline int64_t boundary_ns(int64_t deadline_ns)
{
	return (deadline_ns / TICK_NS + 1) * TICK_NS;
}

static inline int64_t deadline_of(struct tw_handle handle)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};

	check_int(tw_timeout_get(handle, &timeout), 0);
	check_int(timeout.state, TW_STATE_INIT);
	return timeout.deadline_ns;
}

/*
 * Checks that the timeout is pending, and runs once, in the first poll at or after its deadline.
 * Also polls just before the deadline: a hierarchical wheel may need a turn to move the timeout to
 * its lowest level.
 */
static inline void check_runs_at(struct scene *scene, int64_t deadline_ns)
{
	check_int(deadline_of(scene->handle), deadline_ns);
	check_int(scene_poll(scene, deadline_ns - 1), 0);
	check_int(tw_engine_next_due(scene->fixture.engine), boundary_ns(deadline_ns));
	check_int(scene->runs, 0);
	check_int(scene_poll(scene, deadline_ns), 1);
	check_int(scene->runs, 1);
	check_int(tw_engine_next_due(scene->fixture.engine), TW_NEVER);
	check_int(tw_reschedule(scene->handle, 0), TW_RESCHEDULE_EXPIRED);
}

#endif
