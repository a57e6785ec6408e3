/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf top --durable: a set of durable timers under load, live.
 */
#ifndef PERF_TOP_DURABLE_H
#define PERF_TOP_DURABLE_H

#include "harness/options.h"

/* An exit code, as in run/runner.h. Zeros in the options take figures of its own. */
int top_durable_run(const struct options *options);

#endif
