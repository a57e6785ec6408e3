/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf top: an engine under load, live.
 */
#ifndef PERF_TOP_TOP_H
#define PERF_TOP_TOP_H

#include "harness/options.h"

/* An exit code, as in run/runner.h. Zeros in the options take figures of its own. */
int top_run(const struct options *options);

#endif
