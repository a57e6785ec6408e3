/* SPDX-License-Identifier: MIT */
/*
 * reschedule-later, reschedule-earlier: the idle timeouts of a thousand connections get a later, or
 * an earlier, deadline at each packet.
 *
 * One operation is one reschedule, for one connection after the other. In reschedule-later the new
 * deadline is 60 s from now. In reschedule-earlier the delay falls from an hour to a minute, by one
 * step in each round over all connections.
 */
#include "harness/producer.h"
#include "workload/workload.h"

#include <errno.h>

#define NEAR_NS INT64_C(60000000000)
#define FAR_NS INT64_C(3600000000000)

enum { CONNECTIONS = 1000 };

static int prepare(struct producer *producer, int64_t delay_ns)
{
	for (uint64_t i = 0; i < producer->live_count; i++) {
		int error = producer_schedule(producer, delay_ns, &bench_kind,
					      producer->first_id + i, &producer->live[i]);

		if (error)
			return error;
		tally_add(&producer->scheduled, producer->first_id + i);
	}
	return 0;
}

static inline int reschedule_one(struct producer *producer, struct tw_handle handle,
				 int64_t delay_ns)
{
	if (!producer->at)
		return tw_reschedule(handle, delay_ns);
	if (producer->at_calls++ % PRODUCER_CLOCK_EVERY == 0)
		producer->at_now_ns = tw_engine_now(producer->engine);
	return tw_reschedule_at(handle, producer->at_now_ns + delay_ns);
}

/* Reschedules one timeout after the other. The delay falls by `step_ns` after each round. */
static int run(struct producer *producer, int64_t delay_ns, int64_t step_ns)
{
	uint64_t at = 0;

	if (producer->live_count == 0)
		return 0;
	for (uint64_t i = 0; i < producer->ops; i++) {
		int outcome = reschedule_one(producer, producer->live[at], delay_ns);

		if (outcome != TW_RESCHEDULE_DONE)
			return outcome < 0 ? outcome : -EIO;
		if (++at == producer->live_count) {
			at = 0;
			delay_ns -= step_ns;
		}
	}
	return 0;
}

static int prepare_later(struct producer *producer)
{
	return prepare(producer, NEAR_NS);
}

static int prepare_earlier(struct producer *producer)
{
	return prepare(producer, FAR_NS);
}

static int run_later(struct producer *producer)
{
	return run(producer, NEAR_NS, 0);
}

static int run_earlier(struct producer *producer)
{
	int64_t rounds = (int64_t)(producer->ops / CONNECTIONS) + 1;

	return run(producer, FAR_NS, (FAR_NS - NEAR_NS) / rounds);
}

int workload_reschedule(const struct options *options, uint64_t earlier, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.prepare = earlier ? prepare_earlier : prepare_later,
		.run = earlier ? run_earlier : run_later,
		.ops = options->ops,
		.live_count = CONNECTIONS,
	};

	return producers_bench(options, &plan, ret_sample);
}
