/* SPDX-License-Identifier: MIT */
/*
 * The engines side by side.
 */
#ifndef PERF_RUN_COMPARE_H
#define PERF_RUN_COMPARE_H

#include "harness/options.h"

#include <stdbool.h>

/* Whether there is a contest that the operand means. */
bool compare_has(const char *operand);

/*
 * Measures and reports every engine that is built in and asked for, in each contest that the operands
 * mean: the first repeat of each engine, then the second, and so on. Returns an exit code, after a
 * message where it is not EXIT_GOOD.
 */
int compare_run(const struct options *options);

#endif
