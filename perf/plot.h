/* SPDX-License-Identifier: MIT */
/* Draws pictures of results, by a script next to the program. */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include "harness/options.h"

/*
 * Replaces the process by the script, whose exit code becomes the program's. Returns an exit code
 * only if the script cannot be started.
 */
int plot_run(const struct options *options);

#endif
