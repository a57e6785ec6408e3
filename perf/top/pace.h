/* SPDX-License-Identifier: MIT */
/*
 * Threads that do operations at a pace, until they are told to end.
 */
#ifndef PERF_TOP_PACE_H
#define PERF_TOP_PACE_H

#include "harness/options.h"

#include <stddef.h>
#include <stdint.h>

struct pace;

struct pace_work {
	/* At the begin of each thread. NULL: nothing to do. Returns 0 or a negative errno value. */
	int (*begin)(void);
	/* One operation. Returns 0; -EAGAIN: it is to be done again, a little later; or an error, which ends
	 * the thread. */
	int (*operate)(void *member);
	/* A member for each thread. */
	void *members;
	size_t member_bytes;
};

/* How many live timers a thread keeps: its share of `pending`, 1 or more. */
uint64_t pace_live(const struct options *options, unsigned index);

/* Each thread first does as many operations as it keeps live timers; then its share of `ops` a second. `work` is
 * copied. Returns 0 or a negative errno value; then no thread is left. */
int pace_start(const struct pace_work *work, const struct options *options, struct pace **ret_pace);

/* Ends the threads, and frees. Returns the first error of one, or 0. NULL: 0. */
int pace_end(struct pace *pace);

#endif
