/* SPDX-License-Identifier: MIT */
/*
 * Pictures of results, which a script next to the program draws.
 */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include "harness/options.h"

/* Goes on as the script, whose exit code is the harness's; returns one only if it cannot begin. */
int plot_run(const struct options *options);

#endif
