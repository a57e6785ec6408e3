/* SPDX-License-Identifier: MIT */
/*
 * tickwheel as a peer, in several variants: with deadlines that the harness computes (-at); with
 * the coarse clock, which some other peers read (peer/rival_clock.h); with the engine's own
 * measurements; and with options that cost time.
 */
#include "peer/table.h"
#include "workload/workload.h"

#include <errno.h>
#include <stdio.h>
#include <tickwheel.h>
#include <time.h>

/* No workload reaches this limit, so only the cost of counting is measured. */
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
	struct options options = *task->options;
	int error = self->set != NULL ? self->set(&options) : 0;

	return error ? error : run_with(&options, task->workload, ret_sample);
}

static int set_at(struct options *options)
{
	options->at = true;
	return 0;
}

/* Chooses the coarse clock. The tick must not be shorter than the clock's step. */
static int set_coarse(struct options *options)
{
	struct timespec step;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step))
		return -errno;
	options->clock = TW_CLOCK_COARSE;
	options->tick_ns = (uint64_t)step.tv_nsec;
	return 0;
}

static int set_measured(struct options *options)
{
	options->measure = TW_MEASURE_RUNS;
	return 0;
}

static int set_sampled(struct options *options)
{
	options->measure = TW_MEASURE_SAMPLES;
	return 0;
}

static int set_limited(struct options *options)
{
	options->pending_limit = LIMIT_FAR;
	return 0;
}

static int set_ordered(struct options *options)
{
	options->flags = TW_ENGINE_ORDERED;
	return 0;
}

static int set_small_batch(struct options *options)
{
	options->transfer_batch = BATCH_SMALL;
	return 0;
}

const struct peer peer_tickwheel = {
	.name = PEER_OURS,
	.workloads = WORKLOAD_KIND_SHARED | WORKLOAD_KIND_LOOP,
	.ours = true,
	.run = run,
};

const struct peer peer_tickwheel_at = {
	.name = PEER_OURS "-at",
	.workloads = WORKLOAD_KIND_SCHEDULE_CANCEL | WORKLOAD_KIND_LIVE_RING,
	.ours = true,
	.set = set_at,
	.run = run,
};

const struct peer peer_tickwheel_coarse = {
	.name = PEER_OURS "-coarse",
	.workloads = WORKLOAD_KIND_SCHEDULE_CANCEL | WORKLOAD_KIND_LIVE_RING | WORKLOAD_KIND_FIRE,
	.ours = true,
	.set = set_coarse,
	.run = run,
};

const struct peer peer_tickwheel_measured = {
	.name = PEER_OURS "-measured",
	.workloads = WORKLOAD_KIND_SHARED,
	.ours = true,
	.by_name = true,
	.set = set_measured,
	.run = run,
};

const struct peer peer_tickwheel_sampled = {
	.name = PEER_OURS "-sampled",
	.workloads = WORKLOAD_KIND_SHARED,
	.ours = true,
	.by_name = true,
	.set = set_sampled,
	.run = run,
};

const struct peer peer_tickwheel_limited = {
	.name = PEER_OURS "-limited",
	.workloads = WORKLOAD_KIND_SHARED,
	.ours = true,
	.by_name = true,
	.set = set_limited,
	.run = run,
};

const struct peer peer_tickwheel_ordered = {
	.name = PEER_OURS "-ordered",
	.workloads = WORKLOAD_KIND_SHARED,
	.ours = true,
	.by_name = true,
	.set = set_ordered,
	.run = run,
};

const struct peer peer_tickwheel_small_batch = {
	.name = PEER_OURS "-small-batch",
	.workloads = WORKLOAD_KIND_SHARED,
	.ours = true,
	.by_name = true,
	.set = set_small_batch,
	.run = run,
};
