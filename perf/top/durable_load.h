/* SPDX-License-Identifier: MIT */
/*
 * Threads that use a set of durable timers: each keeps its share of live ones, and in one operation
 * cancels its oldest and schedules a new one.
 */
#ifndef PERF_TOP_DURABLE_LOAD_H
#define PERF_TOP_DURABLE_LOAD_H

#include "harness/options.h"

#include <stdint.h>
#include <tickwheel/durable.h>

struct durable_load;

/* What the threads, and the hooks below, have seen. */
struct durable_account {
	uint64_t scheduled;
	uint64_t cancelled;
	uint64_t runs;
};

/* Where the command line gives nothing. */
enum { DURABLE_OPS_A_SECOND = 20000, DURABLE_PENDING = 20000 };

/* The one kind of the load's timers. */
extern const struct tw_durable_kind durable_load_kind;

/* Hook of the set: it counts the cancels that are acknowledged. */
void durable_load_acked(void *context, const struct tw_durable_ack *acks, size_t count);

/* options: complete. 0 or a negative errno value. */
int durable_load_start(struct tw_durable *set, const struct options *options,
		       struct durable_load **ret_load);

/* Ends the threads and frees them. Returns the first error of one, or 0. */
int durable_load_end(struct durable_load *load);

/* After the set is closed: nothing changes any more. */
struct durable_account durable_load_account(void);

#endif
