/* SPDX-License-Identifier: MIT */
/*
 * The loop workload, written once for all event loops. It runs at a point at which the loop knows
 * the time already, so that no clock is read.
 *
 * A peer's file must define `peer_timer`, the type of a timer whose memory the caller provides,
 * then include this header, and then define the functions declared below. These functions are
 * static, so the compiler inlines them into the loops. All timers lie in one array that is
 * allocated in advance. The workload schedules and cancels the last timer of the array again and
 * again. tickwheel, too, uses the same block each time.
 */
#ifndef PERF_PEER_LOOP_H
#define PERF_PEER_LOOP_H

#include "harness/expiry.h"
#include "harness/measure.h"
#include "harness/shape.h"
#include "peer/peer.h"
#include "workload/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Each peer defines these functions in its file. */

/* Prepares a timer, before any other operation on it. */
static inline void peer_timer_init(peer_timer *timer);
/* Start and stop a timer. Both return 0 or a negative errno value. */
static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns);
static inline int peer_timer_stop(peer_timer *timer);
/* Returns whether the peer reports the timer as pending. */
static inline bool peer_timer_pending(peer_timer *timer);
/* The peer's callback must call this function. */
static inline void loop_expired(void);

struct loop_course {
	peer_timer *timers;
	uint64_t live;
	uint64_t ops;
	struct random random;
	struct sample *sample;
	int error;
};

/* `open` and `run` return 0 or a negative errno value. */
struct loop_hooks {
	const char *(*version)(void);
	int (*open)(void);
	/* Calls loop_body, inside the peer's loop if that makes a difference. */
	int (*run)(struct loop_course *course);
};

static struct expiry loop_expiry;

/*
 * Called when a timer fires. That is an error, because each delay is at least a minute. Counts the
 * timer under id 0, which no timer has, so the account does not balance.
 */
static inline void loop_expired(void)
{
	expiry_add(&loop_expiry, 0);
}

static int loop_prepare(struct loop_course *course)
{
	for (uint64_t i = 0; i < course->live; i++) {
		int error = peer_timer_start(&course->timers[i], loop_delay_ns(&course->random));

		if (error)
			return error;
		tally_add(&course->sample->account.scheduled, i + 1);
	}
	return 0;
}

/*
 * No peer reports an error if a timer that it stops was not pending. So this function checks some
 * timers before the stop.
 */
static inline bool loop_stop(peer_timer *timer, uint64_t id)
{
	bool pending = id % SHAPE_ASKED_EVERY != 0 || peer_timer_pending(timer);

	return peer_timer_stop(timer) == 0 && pending;
}

static int loop_pairs(struct loop_course *course)
{
	peer_timer *timer = &course->timers[course->live];
	struct random random = course->random;
	struct tally scheduled = {0, 0};
	struct tally cancelled = {0, 0};
	int error = 0;

	for (uint64_t id = course->live + 1; id != course->live + 1 + course->ops; id++) {
		error = peer_timer_start(timer, loop_delay_ns(&random));
		if (error)
			break;
		tally_add(&scheduled, id);
		if (loop_stop(timer, id))
			tally_add(&cancelled, id);
	}
	tally_merge(&course->sample->account.scheduled, scheduled);
	course->sample->account.cancelled = cancelled;
	return error;
}

/*
 * Counts the timeouts that are still pending at the end. They are not removed, because that would
 * take longer than the whole run.
 */
static void loop_hand_back(struct loop_course *course)
{
	for (uint64_t i = 0; i < course->live; i++)
		if (peer_timer_pending(&course->timers[i]))
			tally_add(&course->sample->account.unexpired, i + 1);
}

static void loop_body(struct loop_course *course)
{
	struct sample *sample = course->sample;
	int64_t started_ns;
	int64_t cpu_ns;

	for (uint64_t i = 0; i <= course->live; i++)
		peer_timer_init(&course->timers[i]);
	course->error = loop_prepare(course);
	if (course->error)
		return;
	cpu_ns = measure_cpu_ns();
	started_ns = measure_now_ns();
	course->error = loop_pairs(course);
	sample->ns_per_op = (double)(measure_now_ns() - started_ns) / (double)course->ops;
	sample->cpu_ns_per_op = (double)(measure_cpu_ns() - cpu_ns) / (double)course->ops;
	if (peer_timer_pending(&course->timers[course->live]))
		course->error = -EIO;
	loop_hand_back(course);
}

/* Runs one repeat. It frees nothing, because the process ends afterwards. */
static int loop_run(const struct loop_hooks *hooks, const struct peer_task *task,
		    struct sample *ret_sample)
{
	struct loop_course course = {
		.live = task->workload->parameter,
		.ops = task->options->ops,
		.random = random_seeded(1),
		.sample = ret_sample,
	};
	int error;

	*ret_sample = sample_empty();
	snprintf(ret_sample->version, sizeof(ret_sample->version), "%s", hooks->version());
	course.timers = calloc(course.live + 1, sizeof(*course.timers));
	if (!course.timers)
		return -ENOMEM;
	error = hooks->open();
	if (!error)
		error = hooks->run(&course);
	expiry_fill(&loop_expiry, ret_sample);
	ret_sample->peak_rss_bytes = measure_rss_peak_bytes();
	return error ? error : course.error;
}

#endif
