/* SPDX-License-Identifier: MIT */
/*
 * Makes keys, and a random order of them that a processor cannot prefetch, for the keyed workloads
 * and the workloads on the bare hash table.
 */
#ifndef PERF_WORKLOAD_KEYED_H
#define PERF_WORKLOAD_KEYED_H

#include "harness/crew.h"
#include "harness/random.h"

#include <stdint.h>
#include <stdlib.h>

enum {
	/*
	 * How many operations, a batch, are timed together. Between two batches, cancelled entries
	 * are put back.
	 */
	KEYED_BATCH = 1024,
};

/* The values of a workload's parameter. */
enum keyed_work { KEYED_REPLACE, KEYED_REPLACE_ANY, KEYED_CANCEL, KEYED_GET };

struct keyed_key {
	uint64_t half[2];
};

static inline uint64_t keyed_mixed(uint64_t z)
{
	z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	return z ^ (z >> 32);
}

/* Returns a key of 16 bytes. */
static inline struct keyed_key keyed_key(uint64_t number)
{
	return (struct keyed_key){{keyed_mixed(number + 1), number}};
}

/* Shuffles the order. */
static inline void keyed_shuffle(struct producer *producer, uint32_t *order)
{
	for (uint64_t i = 1; i < producer->live_count; i++) {
		uint32_t other = random_below(&producer->random, (uint32_t)i + 1);
		uint32_t number = order[i];

		order[i] = order[other];
		order[other] = number;
	}
}

/*
 * Returns the numbers of a producer's keys, from `first` on, each once, in random order. Returns
 * NULL if there is no memory.
 */
static inline uint32_t *keyed_order(struct producer *producer, uint64_t first)
{
	uint32_t *order = malloc((producer->live_count + 1) * sizeof(*order));

	for (uint64_t i = 0; order != NULL && i < producer->live_count; i++)
		order[i] = (uint32_t)(first + i);
	if (order != NULL)
		keyed_shuffle(producer, order);
	return order;
}

/*
 * workload/keyed_bare.c: the same operations on liburcu's hash table alone, with as many nodes.
 * keyed_bare_step does one operation for each of `count` keys of the order. keyed_bare_put is not
 * timed; it puts back the nodes that KEYED_CANCEL has taken.
 */
int keyed_bare_open(uint64_t keys, uint64_t producers);
void keyed_bare_close(void);
void keyed_bare_put(unsigned producer, const uint32_t *order, uint64_t count);
void keyed_bare_step(enum keyed_work work, unsigned producer, const uint32_t *order,
		     uint64_t count);
/* Waits for a grace period if few nodes are free. This is not timed. */
void keyed_bare_flush(unsigned producer);

#endif
