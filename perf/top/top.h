/* SPDX-License-Identifier: MIT */
/* tickwheel-perf top: shows an engine under load. */
#ifndef PERF_TOP_TOP_H
#define PERF_TOP_TOP_H

#include "harness/options.h"

/*
 * Returns an exit code (run/runner.h). A zero in the options stands for the command's own default.
 */
int top_run(const struct options *options);

#endif
