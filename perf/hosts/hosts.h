/* SPDX-License-Identifier: MIT */
/* The timers of event loops and ours in their place, measured by hosts.c. */
#ifndef PERF_HOSTS_HOSTS_H
#define PERF_HOSTS_HOSTS_H

#include "harness/random.h"

#include <stddef.h>
#include <stdint.h>

struct hosts_figures {
	double restart_ns; /* one start of a random pending timer */
	double fire_ns; /* one run, of timers that all run within a second; below 0: one did not */
};

struct hosts_subject {
	const char *host;
	const char *name;
	struct hosts_figures (*run)(size_t count, size_t operations);
};

extern const struct hosts_subject hosts_uv_own, hosts_uv_ours;
extern const struct hosts_subject hosts_event_own, hosts_event_ours;

/* The time that the loops read. */
extern int64_t hosts_now_ns;

int64_t hosts_true_ns(void);

#endif
