/* SPDX-License-Identifier: MIT */
/* Draws pictures of results, by a script next to the program. */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include "harness/options.h"

/*
 * Replaces the process by the script, so the script's exit code becomes the program's. Returns only
 * if the script cannot be started: an exit code.
 */
int plot_run(const struct options *options);

#endif
