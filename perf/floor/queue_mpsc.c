/* SPDX-License-Identifier: MIT */
/*
 * The library's own ingress queue without an engine. This file includes the library's internal
 * headers.
 */
#include "floor/queue.h"
#include "harness/measure.h"
#include "harness/probe.h"
#include "queue/mpsc.h"

#include <stdalign.h>

/*
 * A round pushes 256 KiB of nodes, so that they stay in the cache as well as the nodes of a
 * thread's magazine do.
 */
enum { ITEMS = 4096, ROUNDS = 256 };

static alignas(64) struct twi_mpsc_in queue_in;
static alignas(64) struct twi_mpsc_out queue_out;
static struct queue_item warm_items[ITEMS];

static void mpsc_init(void)
{
	twi_mpsc_init(&queue_in, &queue_out);
}

static void mpsc_push(struct queue_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		twi_mpsc_push_mp(&queue_in, (struct twi_mpsc_node *)(void *)&items[i]);
}

static size_t mpsc_drain(void)
{
	size_t count = 0;

	while (twi_mpsc_take_sc(&queue_in, &queue_out))
		count++;
	return count;
}

const struct queue_kind queue_mpsc = {
	.init = mpsc_init,
	.push = mpsc_push,
	.drain = mpsc_drain,
};

double probe_push(const struct probe *probe)
{
	int64_t started_ns = measure_now_ns();

	(void)probe;
	for (int round = 0; round < ROUNDS; round++) {
		mpsc_init();
		mpsc_push(warm_items, ITEMS);
	}
	return (double)(measure_now_ns() - started_ns) / (double)(ROUNDS * ITEMS);
}
