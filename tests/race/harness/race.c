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

uint64_t race_chance(void)
{
	static _Thread_local uint64_t state;

	if (state == 0)
		state = (uint64_t)(uintptr_t)&state | 1;
	return race_random(&state);
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

static bool rounds_end(uint64_t rounds, bool late, bool enough, bool (*all_seen)(void))
{
	if (rounds < RACE_ROUNDS)
		return late;
	return (late || enough) && (rounds >= RACE_ROUNDS_MOST || all_seen());
}

uint64_t race_rounds(int argc, char **argv, int seconds_at, const _Atomic uint64_t *operations,
		     void (*round_run)(uint64_t *random), bool (*all_seen)(void))
{
	uint64_t wanted = race_size(argc, argv, 1, 200000);
	uint64_t random = race_argument(argc, argv, 2, 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	int64_t seconds = (int64_t)race_argument(argc, argv, seconds_at, 0);
	int64_t until_ns = race_now_ns() + seconds * INT64_C(1000000000);
	uint64_t rounds = 0;

	race_watchdog(seconds != 0 ? (unsigned)seconds + 60 : 1700);
	while (!rounds_end(rounds, seconds != 0 && race_now_ns() >= until_ns,
			   atomic_load(operations) >= wanted, all_seen)) {
		round_run(&random);
		rounds++;
	}
	return rounds;
}

void race_start(pthread_t *thread, void *(*const *mains)(void *), size_t count, uint64_t *random)
{
	for (size_t i = 0; i < count; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL, mains[i],
					  (void *)(uintptr_t)race_random(random)) == 0);
}

void race_join(const pthread_t *thread, size_t count)
{
	for (size_t i = 0; i < count; i++)
		RACE_CHECK(pthread_join(thread[i], NULL) == 0);
}
