/* SPDX-License-Identifier: MIT */
/*
 * The shared workloads, written once for all peers that run inside the process.
 *
 * A peer's file must define `peer_timer`, the type of a timer whose memory the caller provides,
 * then include this header, and then define the functions declared below. These functions are
 * static and are compiled together with the loops, so an operation costs as much as in a program
 * that uses the peer directly. All timers of a run are in arrays that are allocated and touched in
 * advance. If a timer is scheduled and cancelled at once, the next operation uses the same timer
 * again, as with tickwheel.
 *
 * One thread runs all the callbacks.
 */
#ifndef PERF_PEER_SHARED_H
#define PERF_PEER_SHARED_H

#include "harness/crew.h"
#include "harness/expiry.h"
#include "harness/measure.h"
#include "harness/shape.h"
#include "peer/peer.h"
#include "workload/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each peer defines these functions in its file. */

/* Prepares a timer before any other operation. Its memory is already touched. */
static inline void peer_timer_init(peer_timer *timer);
/* Starts a timer that is not pending, on any thread. Returns 0 or a negative errno value. */
static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns);
/* Cancels a timer, on any thread. Returns true if this call has prevented the timer from firing. */
static inline bool peer_timer_cancel(peer_timer *timer);
/* The peer's callback must call this function. */
static inline void shared_expired(peer_timer *timer);

/* All functions but `version` may be NULL. Those of type int return 0 or a negative errno value. */
struct shared_hooks {
	const char *(*version)(void);
	/* Called before the producers begin, and when they have ended. */
	int (*open)(const struct peer_task *task);
	void (*close)(void);
	/* Called on each producer's thread, outside of the measured time. */
	int (*thread_begin)(struct producer *producer);
	int (*thread_end)(struct producer *producer);
};

struct shared_timer {
	peer_timer timer;
	uint64_t id;
	/* 0: the lateness of this timer is not measured. */
	int64_t deadline_ns;
};

static struct expiry shared_expiry;

/*
 * Returns whether to ask the peer, before a cancel, whether the timer is pending. Some peers'
 * cancels do not report that. Enough timers are asked about to notice a wrong count.
 */
static inline bool shared_asks(const peer_timer *timer)
{
	/* `peer_timer` is the first member of struct shared_timer. */
	const struct shared_timer *own = (const struct shared_timer *)(const void *)timer;

	return own->id % SHAPE_ASKED_EVERY == 0;
}

static inline void shared_expired(peer_timer *timer)
{
	/* `peer_timer` is the first member of struct shared_timer. */
	const struct shared_timer *own = (const struct shared_timer *)(const void *)timer;

	if (own->deadline_ns)
		histogram_add(&shared_expiry.lateness_ns, measure_now_ns() - own->deadline_ns);
	expiry_add(&shared_expiry, own->id);
}

static inline int shared_start(struct producer *producer, struct shared_timer *timer, uint64_t id,
			       int64_t delay_ns)
{
	int error;

	timer->id = id;
	error = peer_timer_start(&timer->timer, delay_ns);
	if (!error)
		tally_add(&producer->scheduled, id);
	return error;
}

static int shared_schedule_cancel(struct producer *producer)
{
	struct shared_timer *timer = producer->own;
	struct producer own = *producer;
	uint64_t end_id = own.first_id + own.ops;
	int error = 0;

	for (uint64_t id = own.first_id; id != end_id; id++) {
		error = shared_start(&own, timer, id, SCHEDULE_CANCEL_DELAY_NS);
		if (error)
			break;
		if (peer_timer_cancel(&timer->timer))
			tally_add(&own.cancelled, id);
	}
	producer->scheduled = own.scheduled;
	producer->cancelled = own.cancelled;
	return error;
}

static int shared_live_ring_prepare(struct producer *producer)
{
	struct shared_timer *timers = producer->own;
	int error = 0;

	for (uint64_t i = 0; i < producer->live_count && !error; i++)
		error = shared_start(producer, &timers[i], producer->first_id + i,
				     live_ring_delay_ns(&producer->random));
	return error;
}

static int shared_live_ring(struct producer *producer)
{
	struct shared_timer *timers = producer->own;
	struct producer own = *producer;
	uint64_t slot = 0;
	int error = 0;

	for (uint64_t i = 0; i < own.ops && own.live_count && !error; i++) {
		struct shared_timer *timer = &timers[slot];

		if (peer_timer_cancel(&timer->timer))
			tally_add(&own.cancelled, timer->id);
		error = shared_start(&own, timer, own.first_id + own.live_count + i,
				     live_ring_delay_ns(&own.random));
		slot = slot + 1 == own.live_count ? 0 : slot + 1;
	}
	producer->scheduled = own.scheduled;
	producer->cancelled = own.cancelled;
	return error;
}

static int shared_fire(struct producer *producer)
{
	struct shared_timer *timers = producer->own;
	struct producer own = *producer;
	int error = 0;

	for (uint64_t i = 0; i < own.ops && !error; i++) {
		uint64_t id = own.first_id + i;
		int64_t delay_ns = fire_delay_ns(&own.random);

		if (id % SHAPE_LATENESS_EVERY == 0)
			timers[i].deadline_ns = measure_now_ns() + delay_ns;
		error = shared_start(&own, &timers[i], id, delay_ns);
	}
	producer->scheduled = own.scheduled;
	return error;
}

static int shared_light(struct producer *producer)
{
	struct shared_timer *timers = producer->own;
	int64_t next_ns = measure_now_ns();
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && !error; i++) {
		int64_t delay_ns = light_delay_ns(&producer->random);
		int64_t before_ns = measure_now_ns();

		timers[i].deadline_ns = before_ns + delay_ns;
		error = shared_start(producer, &timers[i], producer->first_id + i, delay_ns);
		producer->inside_ns += measure_now_ns() - before_ns;
		next_ns += LIGHT_PERIOD_NS * (int64_t)producer->count;
		measure_sleep_until_ns(next_ns);
	}
	return error;
}

/* Returns how many timers can be pending at once, for a peer that allocates memory in advance. */
static inline uint64_t shared_pending_max(const struct peer_task *task)
{
	switch (task->workload->kind) {
	case WORKLOAD_KIND_LIVE_RING:
		return task->workload->parameter;
	case WORKLOAD_KIND_FIRE:
	case WORKLOAD_KIND_LIGHT:
		return task->options->ops;
	default:
		return task->options->producers;
	}
}

/* One run of a workload. */
struct shared_course {
	const struct shared_hooks *hooks;
	struct crew crew;
	struct sample *sample;
	uint64_t wait_expired;
	int64_t wait_timeout_ns;
};

static uint64_t shared_timer_count(const struct producer *producer, unsigned kind)
{
	switch (kind) {
	case WORKLOAD_KIND_LIVE_RING:
		return producer->live_count;
	case WORKLOAD_KIND_FIRE:
	case WORKLOAD_KIND_LIGHT:
		return producer->ops;
	default:
		return 1;
	}
}

/*
 * Makes each producer's array of timers. The arrays share no cache lines, so that producers share
 * nothing but the peer.
 */
static int shared_timers_make(struct crew *crew, unsigned kind)
{
	for (unsigned i = 0; i < crew->plan.count; i++) {
		uint64_t count = shared_timer_count(&crew->producers[i], kind);
		size_t bytes = (count * sizeof(struct shared_timer) + 127) / 64 * 64;
		struct shared_timer *timers = aligned_alloc(64, bytes);

		if (!timers)
			return -ENOMEM;
		memset(timers, 0, bytes);
		for (uint64_t j = 0; j < count; j++)
			peer_timer_init(&timers[j].timer);
		crew->producers[i].own = timers;
	}
	return 0;
}

/*
 * Cancels the timers that are still pending at the end of a ring, and counts them as handed back.
 * Of all engines, only tickwheel hands timeouts back by itself.
 */
static void shared_hand_back(struct shared_course *course)
{
	struct crew *crew = &course->crew;

	for (unsigned i = 0; i < crew->plan.count; i++) {
		struct shared_timer *timers = crew->producers[i].own;

		for (uint64_t j = 0; j < crew->producers[i].live_count; j++)
			if (peer_timer_cancel(&timers[j].timer))
				tally_add(&course->sample->account.unexpired, timers[j].id);
	}
}

static int shared_caught_up(void *context)
{
	const struct shared_course *course = context;

	expiry_wait(&shared_expiry, course->wait_expired, course->wait_timeout_ns);
	return 0;
}

static int shared_plan(struct shared_course *course, const struct peer_task *task,
		       struct crew_plan *plan)
{
	*plan = (struct crew_plan){
		.count = task->options->producers,
		.ops = task->options->ops,
		.begin = course->hooks->thread_begin,
		.end = course->hooks->thread_end,
		.caught_up = shared_caught_up,
		.context = course,
	};
	switch (task->workload->kind) {
	case WORKLOAD_KIND_SCHEDULE_CANCEL:
		plan->run = shared_schedule_cancel;
		return 0;
	case WORKLOAD_KIND_LIVE_RING:
		plan->live_count = task->workload->parameter;
		plan->prepare = shared_live_ring_prepare;
		plan->run = shared_live_ring;
		return 0;
	case WORKLOAD_KIND_FIRE:
		plan->run = shared_fire;
		course->wait_expired = plan->ops;
		course->wait_timeout_ns = FIRE_WAIT_NS;
		return 0;
	case WORKLOAD_KIND_LIGHT:
		plan->run = shared_light;
		course->wait_expired = plan->ops;
		course->wait_timeout_ns = LIGHT_WAIT_NS;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int shared_course_run(struct shared_course *course, const struct peer_task *task)
{
	const struct shared_hooks *hooks = course->hooks;
	int error = hooks->open ? hooks->open(task) : 0;

	if (!error)
		error = shared_timers_make(&course->crew, task->workload->kind);
	if (error)
		return error;
	error = crew_run(&course->crew, course->sample);
	if (!error)
		shared_hand_back(course);
	if (hooks->close)
		hooks->close();
	return error;
}

/* Runs one repeat. It frees nothing, because the process ends afterwards. */
static int shared_run(const struct shared_hooks *hooks, const struct peer_task *task,
		      struct sample *ret_sample)
{
	struct shared_course course = {.hooks = hooks, .sample = ret_sample};
	struct crew_plan plan;
	int error = shared_plan(&course, task, &plan);

	*ret_sample = sample_empty();
	snprintf(ret_sample->version, sizeof(ret_sample->version), "%s", hooks->version());
	if (!error)
		error = crew_init(&course.crew, &plan);
	if (!error)
		error = shared_course_run(&course, task);
	expiry_fill(&shared_expiry, ret_sample);
	ret_sample->peak_rss_bytes = measure_rss_peak_bytes();
	return error;
}

#endif
