/* SPDX-License-Identifier: MIT */
/*
 * The cost of changing a cache line that another thread changed last. The line of a timeout's node
 * moves in this way from its producer to the worker, and back. The program prefetches the lines in
 * the order of their addresses. The remaining cost is the least that any design with two threads
 * pays for each move.
 */
#include "harness/measure.h"
#include "harness/probe.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { LINES = 8192, AHEAD = 8, ROUNDS = PROBE_OPS / LINES };

struct line {
	_Alignas(64) _Atomic uint64_t word;
};

static struct line lines[LINES + AHEAD];
/*
 * If the number is odd, the other thread may touch the lines; otherwise the measuring thread may.
 */
static _Atomic uint64_t turn;

static void turn_await(uint64_t wanted)
{
	while (atomic_load_explicit(&turn, memory_order_acquire) < wanted)
		;
}

static void *other_thread(void *arg)
{
	for (uint64_t round = 0; round < ROUNDS; round++) {
		turn_await(2 * round + 1);
		for (int i = 0; i < LINES; i++)
			atomic_store_explicit(&lines[i].word, round, memory_order_relaxed);
		atomic_store_explicit(&turn, 2 * round + 2, memory_order_release);
	}
	return arg;
}

static void lines_swap(uint64_t round)
{
	for (int i = 0; i < LINES; i++) {
		uint64_t expected = round;

		__builtin_prefetch(&lines[i + AHEAD], 1);
		(void)atomic_compare_exchange_strong_explicit(&lines[i].word, &expected, round + 1,
							      memory_order_acq_rel,
							      memory_order_acquire);
	}
}

double probe_line(const struct probe *probe)
{
	int64_t took_ns = 0, started_ns;
	pthread_t other;

	(void)probe;
	atomic_store(&turn, 0);
	if (pthread_create(&other, NULL, other_thread, NULL))
		return NAN;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		atomic_store_explicit(&turn, 2 * round + 1, memory_order_release);
		turn_await(2 * round + 2);
		started_ns = measure_now_ns();
		lines_swap(round);
		took_ns += measure_now_ns() - started_ns;
	}
	pthread_join(other, NULL);
	return (double)took_ns / ROUNDS / LINES;
}
