/* SPDX-License-Identifier: MIT */
/*
 * Shared by the race programs: arguments, a generator of random numbers, a start line, checks.
 *
 * Each race test is a program without a test framework, so that it runs under every sanitizer. Exit
 * code 0: passed, 1: failed.
 */
#ifndef RACE_H
#define RACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the n-th argument as a number, or the default. */
uint64_t race_argument(int argc, char **argv, int number, uint64_t otherwise);

/*
 * Does the same for a number of rounds or operations. Returns less if the build or the machine is
 * slow (slowdown.h).
 */
uint64_t race_size(int argc, char **argv, int number, uint64_t otherwise);

/* Returns the next random number (xorshift64*). It is fast, and repeats for the same seed. */
static inline uint64_t race_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* Returns a random number from a generator that each thread has for itself. */
uint64_t race_chance(void);

/* If the condition does not hold, ends the program with exit code 1 and prints where. */
#define RACE_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			race_fail(__FILE__, __LINE__, #condition);                                 \
	} while (0)
_Noreturn void race_fail(const char *file, int line, const char *condition);

int64_t race_now_ns(void);

/* A start line: lets threads begin each round at the same time, by spinning. */
struct race_line {
	_Atomic uint64_t arrived;
	uint64_t threads;
};

/* Waits for the other threads of the round. `round` counts from 1. */
void race_line_wait(struct race_line *line, uint64_t round);

/*
 * Ends the program with exit code 1 if it still runs after this many seconds, because such a
 * program hangs.
 */
void race_watchdog(unsigned seconds);

/*
 * RACE_ROUNDS rounds may be too few to show every outcome. RACE_ROUNDS_MOST rounds must show all.
 */
enum { RACE_ROUNDS = 10, RACE_ROUNDS_MOST = 1000 };

/*
 * Runs rounds, seeded by the second argument. There are at least RACE_ROUNDS, and enough for the
 * number of operations that the first argument asks for (default: 0.2 M). If `seconds_at` is not 0,
 * the argument with this number bounds the time in seconds. In any case rounds continue, up to
 * RACE_ROUNDS_MOST, until all_seen() returns true. The outcome of a round is random, so no fixed
 * number of rounds is certain to show each outcome. Returns how many rounds ran. If at least
 * RACE_ROUNDS rounds ran, all_seen() must hold.
 */
uint64_t race_rounds(int argc, char **argv, int seconds_at, const _Atomic uint64_t *operations,
		     void (*round_run)(uint64_t *random), bool (*all_seen)(void));

/* Start and join the threads of a round. Each gets a random number as its argument. */
void race_start(pthread_t *thread, void *(*const *mains)(void *), size_t count, uint64_t *random);
void race_join(const pthread_t *thread, size_t count);

#endif
