/* SPDX-License-Identifier: MIT */
/* The loop workload on libev, in a file of its own: its names collide with libevent's. */
#include "measure.h"
#include "random.h"
#include "workload.h"

#include <ev.h>
#include <stdlib.h>

#define FROM_US 60000000u
#define TO_US 3600000000u

static void nothing(struct ev_loop *loop, ev_timer *timer, int what)
{
	(void)loop;
	(void)timer;
	(void)what;
}

static double delay_s(struct random *random)
{
	return (double)random_delay_ns(random, FROM_US, TO_US) / 1e9;
}

static void timer_begin(struct ev_loop *loop, ev_timer *timer, double after_s)
{
	timer->at = after_s;
	timer->repeat = 0.;
	ev_timer_start(loop, timer);
}

static double pairs_ns(struct ev_loop *loop, ev_timer *timer, uint64_t ops, struct random *random)
{
	int64_t started_ns = measure_now_ns();

	for (uint64_t i = 0; i < ops; i++) {
		timer_begin(loop, timer, delay_s(random));
		ev_timer_stop(loop, timer);
	}
	return (double)(measure_now_ns() - started_ns) / (double)ops;
}

int workload_libev(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	struct random random = random_seeded(1);
	ev_timer *timer = calloc(live + 1, sizeof(*timer));
	struct ev_loop *loop = ev_loop_new(0);

	*ret_sample = sample_empty();
	if (timer == NULL || loop == NULL)
		return -1;
	for (uint64_t i = 0; i <= live; i++)
		ev_init(&timer[i], nothing);
	for (uint64_t i = 0; i < live; i++)
		timer_begin(loop, &timer[i], delay_s(&random));
	ret_sample->ns_per_op = pairs_ns(loop, &timer[live], options->ops, &random);
	for (uint64_t i = 0; i < live; i++)
		ev_timer_stop(loop, &timer[i]);
	ev_loop_destroy(loop);
	free(timer);
	for (uint64_t id = 1; id <= live + options->ops; id++) {
		tally_add(&ret_sample->account.scheduled, id);
		tally_add(&ret_sample->account.cancelled, id);
	}
	return 0;
}
