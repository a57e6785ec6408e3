/* SPDX-License-Identifier: MIT */
/* Runs workloads, probes and replays, each repeat in a child process, and reports them. */
#ifndef PERF_RUN_RUNNER_H
#define PERF_RUN_RUNNER_H

#include "harness/options.h"
#include "harness/probe.h"
#include "peer/peer.h"
#include "report/row.h"
#include "workload/workload.h"

/* Exit codes of the program. */
enum {
	EXIT_GOOD = 0,
	EXIT_LOST = 1,
	EXIT_USAGE = 2,
};

/* Each function of type int returns an exit code, after a message if it is not EXIT_GOOD. */

/* Measures and reports probes, PROBE_REPEAT times each. */
int runner_probes(const struct probe *probes, const char *name, const char *title);

/* Measures and reports probes, `repeat` times each, but at most PROBE_REPEAT times. */
int runner_probes_repeat(const struct probe *probes, const char *name, const char *title,
			 unsigned repeat);

/*
 * Returns the cost of a clock read, or NAN. The figure in the column "beside clock" is without this
 * cost.
 */
double runner_clock_ns(const struct options *options);

/*
 * Measures and reports one row of one engine. A zero in the options stands for the workload's own
 * figure.
 */
int runner_workload(const struct peer *peer, const struct workload *workload,
		    const struct options *options, double clock_ns);

/*
 * The steps of a run, in this order: fill in default options, make one repeat, begin the row, and
 * check the finished row.
 */
void runner_complete(struct options *options, const struct workload *workload);
int runner_repeat(const struct peer *peer, const struct peer_task *task, struct sample *ret_sample);
void runner_row_begin(const struct peer *peer, const struct peer_task *task, struct row *ret_row);
int runner_judge(const struct row *row);

/* run/turns.c: runs the workloads that match the operand and that are measured in turns. */
int runner_turns(const struct peer *ours, const char *operand, const struct options *options);

int runner_replay(const struct options *options);

#endif
