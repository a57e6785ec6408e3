/* SPDX-License-Identifier: MIT */
/*
 * Runs workloads, probes and replays, each repeat in a process of its own, and reports them.
 */
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

/* Each returns an exit code, after a message where it is not EXIT_GOOD. */

/* Measures and reports probes, PROBE_REPEAT passes each. */
int runner_probes(const struct probe *probes, const char *name, const char *title);

/* As many passes as that, but PROBE_REPEAT at most. */
int runner_probes_repeat(const struct probe *probes, const char *name, const char *title,
			 unsigned repeat);

/* Measures the clock alone. The column "beside the clock" subtracts this figure. */
double runner_clock_ns(const struct options *options);

/* One row of one engine. Zeros in the options take the workload's own figures. */
int runner_workload(const struct peer *peer, const struct workload *workload,
		    const struct options *options, double clock_ns);

/* The steps of a run: fill in default options; make one repeat, which returns 0 or an exit code;
 * describe the row; and check it. */
void runner_complete(struct options *options, const struct workload *workload);
int runner_repeat(const struct peer *peer, const struct peer_task *task, struct sample *ret_sample);
void runner_row_begin(const struct peer *peer, const struct peer_task *task, struct row *ret_row);
int runner_judge(const struct row *row);

/* run/turns.c: those that the operand means and that are measured in turns. */
int runner_turns(const struct peer *ours, const char *operand, const struct options *options);

int runner_replay(const struct options *options);

#endif
