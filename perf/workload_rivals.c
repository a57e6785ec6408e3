/* SPDX-License-Identifier: MIT */
/*
 * The loop workload on libevent, libev and libuv: the same pairs, the same delays, in their own event
 * loop, where each of them has the time already and does not read the clock.
 *
 * A timer's memory is the caller's in all three. The pending ones lie in one array; the one that is
 * scheduled and cancelled is one more, as tickwheel's is the same block again and again.
 */
#include "measure.h"
#include "random.h"
#include "workload.h"

#include <stdlib.h>

#define FROM_US 60000000u
#define TO_US 3600000000u

struct course {
	uint64_t ops;
	uint64_t live;
	struct random random;
	struct sample *sample;
	double ns_per_op;
};

static double delay_s(struct course *course)
{
	return (double)random_delay_ns(&course->random, FROM_US, TO_US) / 1e9;
}

/* All of them end: cancelled. */
static void account(struct course *course)
{
	for (uint64_t id = 1; id <= course->live + course->ops; id++) {
		tally_add(&course->sample->account.scheduled, id);
		tally_add(&course->sample->account.cancelled, id);
	}
	course->sample->ns_per_op = course->ns_per_op;
}

static struct course course_begin(const struct options *options, uint64_t live,
				  struct sample *sample)
{
	*sample = sample_empty();
	return (struct course){
		.ops = options->ops,
		.live = live,
		.random = random_seeded(1),
		.sample = sample,
	};
}

#if defined(PERF_HAVE_LIBEVENT)
#include <event2/event.h>
#include <event2/event_struct.h>

static void event_nothing(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static struct timeval timeval_of(double seconds)
{
	struct timeval value = {.tv_sec = (time_t)seconds};

	value.tv_usec = (suseconds_t)((seconds - (double)value.tv_sec) * 1e6);
	return value;
}

struct event_course {
	struct course *course;
	struct event_base *base;
	struct event *timer;
};

/* Inside the loop the time is cached. */
static void event_pairs(evutil_socket_t fd, short what, void *arg)
{
	struct event_course *run = arg;
	struct course *course = run->course;
	int64_t started_ns;

	(void)fd;
	(void)what;
	for (uint64_t i = 0; i <= course->live; i++)
		evtimer_assign(&run->timer[i], run->base, event_nothing, NULL);
	for (uint64_t i = 0; i < course->live; i++) {
		struct timeval delay = timeval_of(delay_s(course));

		event_add(&run->timer[i], &delay);
	}
	started_ns = measure_now_ns();
	for (uint64_t i = 0; i < course->ops; i++) {
		struct timeval delay = timeval_of(delay_s(course));

		event_add(&run->timer[course->live], &delay);
		event_del(&run->timer[course->live]);
	}
	course->ns_per_op = (double)(measure_now_ns() - started_ns) / (double)course->ops;
	for (uint64_t i = 0; i < course->live; i++)
		event_del(&run->timer[i]);
}

int workload_libevent(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	struct course course = course_begin(options, live, ret_sample);
	struct event_course run = {.course = &course, .base = event_base_new()};
	struct timeval now = {0, 0};

	run.timer = calloc(live + 1, sizeof(*run.timer));
	if (run.base == NULL || run.timer == NULL)
		return -1;
	event_base_once(run.base, -1, EV_TIMEOUT, event_pairs, &run, &now);
	event_base_loop(run.base, EVLOOP_ONCE);
	event_base_free(run.base);
	free(run.timer);
	account(&course);
	return 0;
}
#endif

#if defined(PERF_HAVE_LIBUV)
#include <uv.h>

static void uv_nothing(uv_timer_t *timer)
{
	(void)timer;
}

static uint64_t delay_ms(struct course *course)
{
	return (uint64_t)(delay_s(course) * 1e3);
}

int workload_libuv(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	struct course course = course_begin(options, live, ret_sample);
	uv_timer_t *timer = calloc(live + 1, sizeof(*timer));
	int64_t started_ns;
	uv_loop_t loop;

	if (timer == NULL || uv_loop_init(&loop) != 0)
		return -1;
	for (uint64_t i = 0; i <= live; i++)
		uv_timer_init(&loop, &timer[i]);
	for (uint64_t i = 0; i < live; i++)
		uv_timer_start(&timer[i], uv_nothing, delay_ms(&course), 0);
	started_ns = measure_now_ns();
	for (uint64_t i = 0; i < course.ops; i++) {
		uv_timer_start(&timer[live], uv_nothing, delay_ms(&course), 0);
		uv_timer_stop(&timer[live]);
	}
	course.ns_per_op = (double)(measure_now_ns() - started_ns) / (double)course.ops;
	for (uint64_t i = 0; i <= live; i++)
		uv_close((uv_handle_t *)&timer[i], NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&loop);
	free(timer);
	account(&course);
	return 0;
}
#endif
