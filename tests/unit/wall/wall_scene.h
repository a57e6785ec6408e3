/* SPDX-License-Identifier: MIT */
/*
 * An engine in virtual time with its own wall clock, which begins at a date of this century. The
 * test moves both clocks, and steps the wall clock. Include once per test program.
 */
#ifndef TESTS_WALL_SCENE_H
#define TESTS_WALL_SCENE_H

#include "probe.h"

/* 2026-01-01, in nanoseconds. */
#define DATE_NS (INT64_C(1767225600) * NS_PER_S)
#define HOUR_NS (INT64_C(3600) * NS_PER_S)
#define YEAR_NS (INT64_C(365) * 24 * HOUR_NS)

struct wall_scene {
	struct fixture fixture;
	int64_t wall_ns;
};

static inline int64_t wall_now(const struct wall_scene *scene)
{
	return scene->wall_ns;
}

/* Sets the wall clock, and waits until the worker, or in loop mode a poll, has noticed the new
 * time. */
static inline void wall_set(struct wall_scene *scene, int64_t wall_ns)
{
	scene->wall_ns = wall_ns;
	check_int(tw_clock_set_wall(scene->fixture.clock, wall_ns), 0);
	fixture_flush(&scene->fixture);
}

static inline void wall_step(struct wall_scene *scene, int64_t step_ns)
{
	wall_set(scene, scene->wall_ns + step_ns);
}

/* Lets time pass on both clocks. */
static inline void wall_pass(struct wall_scene *scene, int64_t time_ns)
{
	scene->wall_ns += time_ns;
	fixture_advance(&scene->fixture, time_ns);
}

static inline void wall_open(struct wall_scene *scene, const struct tw_options *options)
{
	/* The engine's clock begins at three hours, so that a test can set the wall clock to an
	 * earlier time than the engine's. */
	fixture_open_at(&scene->fixture, options, 3 * HOUR_NS);
	scene->wall_ns = DATE_NS;
	check_int(tw_clock_set_wall(scene->fixture.clock, DATE_NS), 0);
}

static inline struct tw_handle must_wall(struct wall_scene *scene, int64_t wall_ns,
					 const struct tw_kind *kind, void *arg)
{
	struct tw_handle handle = {0};

	check_int(tw_schedule_wall(scene->fixture.engine, wall_ns, kind, arg, &handle), 0);
	return handle;
}

/* Initialises a probe with a finaliser, and schedules it at a date. */
static inline struct tw_handle probe_wall(struct wall_scene *scene, struct probe *probe,
					  int64_t wall_ns)
{
	probe_init(probe, scene->fixture.engine);
	return must_wall(scene, wall_ns, &probe_final_kind, probe);
}

static inline int64_t deadline_of(struct tw_handle handle)
{
	struct tw_timeout timeout = {.size = sizeof timeout};

	check_int(tw_timeout_get(handle, &timeout), 0);
	return timeout.deadline_ns;
}

#endif
