/* SPDX-License-Identifier: MIT */
/* tickwheel-perf top --durable: shows a set of durable timers under load. */
#ifndef PERF_TOP_DURABLE_H
#define PERF_TOP_DURABLE_H

#include "harness/options.h"

/*
 * Returns an exit code (run/runner.h). A zero in the options stands for the command's own default.
 */
int top_durable_run(const struct options *options);

#endif
