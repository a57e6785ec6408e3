/* SPDX-License-Identifier: MIT */
/*
 * Threads that use a set of durable timers. Each thread keeps its share of live timers. In one
 * operation it cancels its oldest timer and schedules a new one.
 */
#ifndef PERF_TOP_DURABLE_LOAD_H
#define PERF_TOP_DURABLE_LOAD_H

#include "harness/options.h"

#include <stdint.h>
#include <tickwheel/durable.h>

struct durable_load;

/* The counts of the threads and of the hooks below. */
struct durable_account {
	uint64_t scheduled;
	uint64_t cancelled;
	uint64_t runs;
};

/* The defaults, if the command line gives no value. */
enum { DURABLE_OPS_A_SECOND = 20000, DURABLE_PENDING = 20000 };

/* The kind of all timers of the load. */
extern const struct tw_durable_kind durable_load_kind;

/* Must be the acknowledgement hook of the set. Counts the acknowledged cancels. */
void durable_load_acked(void *context, const struct tw_durable_ack *acks, size_t count);

/* Starts the threads. The options must be complete. Returns 0 or a negative errno value. */
int durable_load_start(struct tw_durable *set, const struct options *options,
		       struct durable_load **ret_load);

/* Ends the threads and frees the load. Returns the first error of a thread, or 0. */
int durable_load_end(struct durable_load *load);

/* Returns the account. The set must be closed, because until then the counts may change. */
struct durable_account durable_load_account(void);

#endif
