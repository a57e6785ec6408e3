/* SPDX-License-Identifier: MIT */
/*
 * tickwheel as one of the peers; and once more with the time given by the harness.
 */
#include "peer/table.h"
#include "workload.h"

#include <stdio.h>
#include <tickwheel.h>

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
