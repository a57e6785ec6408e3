/* SPDX-License-Identifier: MIT */
#include "race.h"

#include "slowdown.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

uint64_t race_argument(int argc, char **argv, int number, uint64_t otherwise)
{
	return number < argc ? strtoull(argv[number], NULL, 10) : otherwise;
}

uint64_t race_size(int argc, char **argv, int number, uint64_t otherwise)
{
	return slowed(race_argument(argc, argv, number, otherwise));
}

void race_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
	fflush(NULL);
	_exit(1);
}

int64_t race_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void race_line_wait(struct race_line *line, uint64_t round)
{
	unsigned spins = 0;

	atomic_fetch_add_explicit(&line->arrived, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&line->arrived, memory_order_acquire) < round * line->threads) {
		if (++spins % 64 == 0)
			sched_yield();
	}
}

static void hung(int signal)
{
	static const char text[] = "hung: the watchdog ended the program\n";

	(void)signal;
	(void)!write(STDERR_FILENO, text, sizeof text - 1);
	_exit(1);
}

void race_watchdog(unsigned seconds)
{
	signal(SIGALRM, hung);
	alarm(seconds * slowdown());
}
