/* SPDX-License-Identifier: MIT */
/*
 * The work of the timers of an event loop, written once for all of them. A file that includes it
 * defines `static void` subject_open(size_t count), subject_start(size_t i, unsigned ms),
 * subject_update(void), which lets the loop read the time, and subject_turn(void), which runs the
 * loop once without waiting. Its callback calls subject_fired.
 */
#ifndef PERF_HOSTS_SUBJECT_H
#define PERF_HOSTS_SUBJECT_H

#include "hosts/hosts.h"

#include <stdlib.h>

static uint64_t fired;

static inline void subject_fired(void)
{
	fired++;
}

static void subject_open(size_t count);
static inline void subject_start(size_t i, unsigned ms);
static inline void subject_update(void);
static void subject_turn(void);

enum { RESTART_MS = 60000, RESTART_SPREAD_MS = 3540000, FIRE_MS = 1000, MS = 1000000 };

/* A random timer is started again with its own time, as a connection's is when it is used. */
static double subject_restart(size_t count, size_t operations, struct random *random)
{
	unsigned *ms = calloc(count, sizeof *ms);
	int64_t began_ns;
	double taken_ns;

	for (size_t i = 0; i < count; i++) {
		ms[i] = RESTART_MS + (unsigned)random_below(random, RESTART_SPREAD_MS);
		subject_start(i, ms[i]);
	}
	began_ns = hosts_true_ns();
	for (size_t n = 0; n < operations; n++) {
		size_t i = (size_t)random_below(random, (uint32_t)count);

		if (n % 64 == 0) {
			hosts_now_ns += 20000;
			subject_update();
		}
		subject_start(i, ms[i]);
	}
	taken_ns = (double)(hosts_true_ns() - began_ns) / (double)operations;
	free(ms);
	return taken_ns;
}

/* All timers fire within a second, and the loop runs each millisecond. */
static double subject_fire(size_t count, struct random *random)
{
	int64_t began_ns;

	for (size_t i = 0; i < count; i++)
		subject_start(i, 1 + (unsigned)random_below(random, FIRE_MS));
	began_ns = hosts_true_ns();
	for (int i = 0; i < FIRE_MS + 2; i++) {
		hosts_now_ns += MS;
		subject_turn();
	}
	return fired == count ? (double)(hosts_true_ns() - began_ns) / (double)count : -1;
}

static struct hosts_figures subject_run(size_t count, size_t operations)
{
	struct random random = random_seeded(1);
	struct hosts_figures figures;

	subject_open(count);
	figures.restart_ns = subject_restart(count, operations, &random);
	figures.fire_ns = subject_fire(count, &random);
	return figures;
}

#endif
