/* SPDX-License-Identifier: MIT */
/* Compares engines in contests. */
#ifndef PERF_RUN_COMPARE_H
#define PERF_RUN_COMPARE_H

#include "harness/options.h"

#include <stdbool.h>

/* Returns whether the operand matches a contest. */
bool compare_has(const char *operand);

/*
 * Measures and reports every engine that is built in and chosen, in each contest that matches the
 * operands. All engines make their first repeat, then all make the second, and so on. Returns an
 * exit code, after a message if it is not EXIT_GOOD.
 */
int compare_run(const struct options *options);

#endif
