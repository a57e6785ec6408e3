/* SPDX-License-Identifier: MIT */
/*
 * The measured work, written once for the timers of all event loops. A file that includes this
 * header must define the four static functions that are declared below. subject_update makes the
 * loop read the time. subject_turn runs the loop once without waiting. The timers' callback must
 * call subject_fired.
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

/*
 * Starts random timers again with their own delays, as a server does with a connection's timer when
 * the connection is used. Returns the cost of one start.
 */
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

/*
 * Lets all timers fire within a second, in which the loop runs each millisecond. Returns the cost
 * of one run.
 */
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
