/* SPDX-License-Identifier: MIT */
/*
 * Threads that use an engine as a server does, until they are told to end: each keeps its share of
 * live timeouts, and in one operation cancels its oldest (if that has not expired yet) and schedules
 * a new one. Every eighth operation also pushes another one out.
 */
#ifndef PERF_TOP_LOAD_H
#define PERF_TOP_LOAD_H

#include "harness/bench.h"
#include "harness/options.h"
#include "harness/sample.h"

struct top_load;

/* Where the command line gives nothing. */
enum { TOP_OPS_A_SECOND = 100000, TOP_PENDING = 100000, TOP_HOLD_MS = 10000 };

/* options: complete. 0 or a negative errno value. */
int top_load_start(struct bench *bench, const struct options *options, struct top_load **ret_load);

/* Ends the threads, adds what they have scheduled and cancelled, and frees. The first error of one, or 0. */
int top_load_end(struct top_load *load, struct account *account);

#endif
