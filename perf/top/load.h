/* SPDX-License-Identifier: MIT */
/*
 * Threads that use an engine as a server does, until the load ends. Each thread keeps its share of
 * live timeouts. In one operation it cancels its oldest timeout, if that timeout has not expired
 * yet, and schedules a new one. Every eighth operation also reschedules a random timeout to a later
 * deadline.
 */
#ifndef PERF_TOP_LOAD_H
#define PERF_TOP_LOAD_H

#include "harness/bench.h"
#include "harness/options.h"
#include "harness/sample.h"

struct top_load;

/* The defaults, if the command line gives no value. */
enum { TOP_OPS_A_SECOND = 100000, TOP_PENDING = 100000, TOP_HOLD_MS = 10000 };

/* Starts the threads. The options must be complete. Returns 0 or a negative errno value. */
int top_load_start(struct bench *bench, const struct options *options, struct top_load **ret_load);

/*
 * Ends the threads, adds their schedules and cancels to the account, and frees the load. Returns
 * the first error of a thread, or 0.
 */
int top_load_end(struct top_load *load, struct account *account);

#endif
