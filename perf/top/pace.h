/* SPDX-License-Identifier: MIT */
/* Threads that do operations at a fixed rate, until pace_end. */
#ifndef PERF_TOP_PACE_H
#define PERF_TOP_PACE_H

#include "harness/options.h"

#include <stddef.h>
#include <stdint.h>

struct pace;

struct pace_work {
	/*
	 * Called in each thread before its first operation. NULL: there is nothing to do. Returns 0
	 * or a negative errno value.
	 */
	int (*begin)(void);
	/*
	 * Does one operation. Returns 0; -EAGAIN if the operation must be tried again a little
	 * later; or an error, which ends the thread.
	 */
	int (*operate)(void *member);
	/* An array with one element for each thread, which operate() gets. */
	void *members;
	size_t member_bytes;
};

/* Returns how many live timers a thread keeps: its share of `pending`, at least 1. */
uint64_t pace_live(const struct options *options, unsigned index);

/*
 * Starts the threads. Each first does as many operations as it keeps live timers, and then its
 * share of `ops` a second. Copies `work`. Returns 0, or a negative errno value after ending all
 * threads.
 */
int pace_start(const struct pace_work *work, const struct options *options, struct pace **ret_pace);

/*
 * Ends the threads, and frees the pace. Returns the first error of a thread, or 0. NULL is
 * accepted.
 */
int pace_end(struct pace *pace);

#endif
