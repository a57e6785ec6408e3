/* SPDX-License-Identifier: MIT */
/*
 * tickwheel as one of the peers; with the time given by the harness; with the coarse clock, which most
 * others read (peer/rival_clock.h); with all that it can measure of itself; and with options that have
 * a price.
 */
#include "peer/table.h"
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <tickwheel.h>
#include <time.h>

/* A limit that no workload comes to: what is seen is the count. */
#define LIMIT_FAR (UINT64_C(1) << 40)

enum { BATCH_SMALL = 1000 };

static int run_with(const struct options *options, const struct workload *workload,
		    struct sample *ret_sample)
{
	int error = workload->run(options, workload->parameter, ret_sample);

	snprintf(ret_sample->version, sizeof(ret_sample->version), "%s", tw_version_string());
	return error;
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	(void)self;
	return run_with(task->options, task->workload, ret_sample);
}

static int run_at(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	struct options options = *task->options;

	(void)self;
	options.at = true;
	return run_with(&options, task->workload, ret_sample);
}

/* Its tick is no less than the clock's step. */
static int run_coarse(const struct peer *self, const struct peer_task *task,
		      struct sample *ret_sample)
{
	struct options options = *task->options;
	struct timespec step;

	(void)self;
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step))
		return -errno;
	options.clock = TW_CLOCK_COARSE;
	options.tick_ns = (uint64_t)step.tv_nsec;
	return run_with(&options, task->workload, ret_sample);
}

static int run_measured(const struct peer *self, const struct peer_task *task,
			struct sample *ret_sample)
{
	struct options options = *task->options;

	(void)self;
	options.measure = TW_MEASURE_RUNS;
	return run_with(&options, task->workload, ret_sample);
}

static int run_sampled(const struct peer *self, const struct peer_task *task,
		       struct sample *ret_sample)
{
	struct options options = *task->options;

	(void)self;
	options.measure = TW_MEASURE_SAMPLES;
	return run_with(&options, task->workload, ret_sample);
}

static int run_limited(const struct peer *self, const struct peer_task *task,
		       struct sample *ret_sample)
{
	struct options options = *task->options;

	(void)self;
	options.pending_limit = LIMIT_FAR;
	return run_with(&options, task->workload, ret_sample);
}

static int run_ordered(const struct peer *self, const struct peer_task *task,
		       struct sample *ret_sample)
{
	struct options options = *task->options;

	(void)self;
	options.flags = TW_ENGINE_ORDERED;
	return run_with(&options, task->workload, ret_sample);
}

static int run_small_batch(const struct peer *self, const struct peer_task *task,
			   struct sample *ret_sample)
{
	struct options options = *task->options;

	(void)self;
	options.transfer_batch = BATCH_SMALL;
	return run_with(&options, task->workload, ret_sample);
}

const struct peer peer_tickwheel = {
	.name = PEER_OURS,
	.workloads = PEER_SHARED | PEER_LOOP,
	.ours = true,
	.run = run,
};

const struct peer peer_tickwheel_at = {
	.name = PEER_OURS "-at",
	.workloads = PEER_SCHEDULE_CANCEL | PEER_LIVE_RING,
	.ours = true,
	.run = run_at,
};

const struct peer peer_tickwheel_coarse = {
	.name = PEER_OURS "-coarse",
	.workloads = PEER_SCHEDULE_CANCEL | PEER_LIVE_RING | PEER_FIRE,
	.ours = true,
	.run = run_coarse,
};

const struct peer peer_tickwheel_measured = {
	.name = PEER_OURS "-measured",
	.workloads = PEER_SHARED,
	.ours = true,
	.by_name = true,
	.run = run_measured,
};

const struct peer peer_tickwheel_sampled = {
	.name = PEER_OURS "-sampled",
	.workloads = PEER_SHARED,
	.ours = true,
	.by_name = true,
	.run = run_sampled,
};

const struct peer peer_tickwheel_limited = {
	.name = PEER_OURS "-limited",
	.workloads = PEER_SHARED,
	.ours = true,
	.by_name = true,
	.run = run_limited,
};

const struct peer peer_tickwheel_ordered = {
	.name = PEER_OURS "-ordered",
	.workloads = PEER_SHARED,
	.ours = true,
	.by_name = true,
	.run = run_ordered,
};

const struct peer peer_tickwheel_small_batch = {
	.name = PEER_OURS "-small-batch",
	.workloads = PEER_SHARED,
	.ours = true,
	.by_name = true,
	.run = run_small_batch,
};
