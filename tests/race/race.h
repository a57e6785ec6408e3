/* SPDX-License-Identifier: MIT */
/*
 * What the race programs share: arguments, a generator of random numbers, a start line, checks.
 *
 * Each is a plain program, so that it runs under every sanitizer: exit code 0 passed, 1 failed.
 */
#ifndef RACE_H
#define RACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The n-th argument as a number, or the default. */
uint64_t race_argument(int argc, char **argv, int number, uint64_t otherwise);

/* The same for a number of rounds or operations: less of them where all is slow. */
uint64_t race_size(int argc, char **argv, int number, uint64_t otherwise);

/* xorshift64*: quick, and the same for the same seed. */
static inline uint64_t race_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* The same for each thread by itself. */
uint64_t race_chance(void);

/* Ends the program with exit code 1, saying where. */
#define RACE_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			race_fail(__FILE__, __LINE__, #condition);                                 \
	} while (0)
_Noreturn void race_fail(const char *file, int line, const char *condition);

int64_t race_now_ns(void);

/* Threads that begin each round together, as closely as spinning gets them. */
struct race_line {
	_Atomic uint64_t arrived;
	uint64_t threads;
};

/* Waits for the others; `round` counts from 1. */
void race_line_wait(struct race_line *line, uint64_t round);

/* Ends the program with exit code 1 when it has not ended by itself after so many seconds: a hang.
 */
void race_watchdog(unsigned seconds);

/* After so many, all that can happen must have happened; fewer have only the time as their reason. */
enum { RACE_ROUNDS = 10 };

/*
 * Rounds until there were as many operations as the first argument says (0.2 M), and RACE_ROUNDS, by the
 * seed of the second one; or as many seconds as the argument with number `seconds_at` says. Returns how many.
 */
uint64_t race_rounds(int argc, char **argv, int seconds_at, const _Atomic uint64_t *operations,
		     void (*round_run)(uint64_t *random));

/* Threads of a round, each with a random number as its argument. */
void race_start(pthread_t *thread, void *(*const *mains)(void *), size_t count, uint64_t *random);
void race_join(const pthread_t *thread, size_t count);

#endif
