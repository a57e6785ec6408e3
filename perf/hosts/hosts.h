/* SPDX-License-Identifier: MIT */
/* The costs of an event loop's timers, and of tickwheel's timers that replace them. */
#ifndef PERF_HOSTS_HOSTS_H
#define PERF_HOSTS_HOSTS_H

#include "harness/random.h"

#include <stddef.h>
#include <stdint.h>

struct hosts_figures {
	double restart_ns; /* the cost of starting a random pending timer again */
	/*
	 * The cost of one run, if all timers run within a second. Below 0: a timer did not run.
	 */
	double fire_ns;
};

struct hosts_subject {
	const char *host;
	const char *name;
	struct hosts_figures (*run)(size_t count, size_t operations);
};

extern const struct hosts_subject hosts_uv_own, hosts_uv_ours;
extern const struct hosts_subject hosts_event_own, hosts_event_ours;

/* The simulated time, which the loops read. */
extern int64_t hosts_now_ns;

int64_t hosts_true_ns(void);

#endif
