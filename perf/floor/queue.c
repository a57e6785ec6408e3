/* SPDX-License-Identifier: MIT */
/*
 * The ingress queue measured against liburcu's wfcqueue.
 *
 * Each producer pushes a million items of a node's size, each once. Meanwhile the consumer does
 * nothing, drains without pause, or drains every millisecond as an engine's worker does. If not all
 * pushed items have come out at the end, the figure is NAN.
 */
#include "floor/queue.h"

#include "harness/measure.h"
#include "harness/probe.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 1000000, PRODUCERS_MAX = 2 };
#define PAUSE_NS INT64_C(1000000)

enum consumer { CONSUMER_NONE, CONSUMER_BUSY, CONSUMER_TICKS, CONSUMER_AFTER };

struct queue_case {
	const struct queue_kind *kind;
	enum consumer consumer;
};

struct pusher {
	pthread_t thread;
	const struct queue_kind *kind;
	struct queue_item *items;
	int64_t started_ns;
	int64_t ended_ns;
};

static pthread_barrier_t go;
static atomic_bool pushed_all;

static void *pusher_main(void *arg)
{
	struct pusher *pusher = arg;

	pthread_barrier_wait(&go);
	pusher->started_ns = measure_now_ns();
	pusher->kind->push(pusher->items, ITEMS);
	pusher->ended_ns = measure_now_ns();
	return NULL;
}

static size_t consume(const struct queue_case *what)
{
	size_t count = 0;

	while (!atomic_load(&pushed_all)) {
		if (what->consumer == CONSUMER_TICKS)
			measure_sleep_ns(PAUSE_NS);
		count += what->kind->drain();
	}
	return count;
}

static void *consumer_main(void *arg)
{
	static size_t count;
	const struct queue_case *what = arg;

	count = 0;
	pthread_barrier_wait(&go);
	if (what->consumer == CONSUMER_BUSY || what->consumer == CONSUMER_TICKS)
		count = consume(what);
	return &count;
}

/* Allocates the items, and touches their memory so that no page fault is measured. */
static struct queue_item *items_create(unsigned producers)
{
	size_t bytes = sizeof(struct queue_item) * ITEMS * producers;
	struct queue_item *items = aligned_alloc(sizeof(struct queue_item), bytes);

	if (items)
		memset(items, 0xff, bytes);
	return items;
}

static double wall_ns(const struct pusher *pushers, unsigned count)
{
	int64_t started_ns = INT64_MAX;
	int64_t ended_ns = INT64_MIN;

	for (unsigned i = 0; i < count; i++) {
		if (pushers[i].started_ns < started_ns)
			started_ns = pushers[i].started_ns;
		if (pushers[i].ended_ns > ended_ns)
			ended_ns = pushers[i].ended_ns;
	}
	return (double)(ended_ns - started_ns);
}

static void start(struct pusher *pushers, unsigned count, const struct queue_case *what,
		  struct queue_item *items, pthread_t *ret_consumer)
{
	pthread_barrier_init(&go, NULL, count + 1);
	atomic_store(&pushed_all, false);
	what->kind->init();
	for (unsigned i = 0; i < count; i++) {
		pushers[i] = (struct pusher){.kind = what->kind, .items = items + i * ITEMS};
		if (pthread_create(&pushers[i].thread, NULL, pusher_main, &pushers[i]))
			abort();
	}
	if (pthread_create(ret_consumer, NULL, consumer_main, (void *)(uintptr_t)what))
		abort();
}

static size_t finish(struct pusher *pushers, unsigned count, pthread_t consumer)
{
	void *taken = NULL;

	for (unsigned i = 0; i < count; i++)
		pthread_join(pushers[i].thread, NULL);
	atomic_store(&pushed_all, true);
	pthread_join(consumer, &taken);
	pthread_barrier_destroy(&go);
	return *(size_t *)taken;
}

/* Drains the rest when all producers have ended. With CONSUMER_AFTER only this part is timed. */
static double run(const struct queue_case *what, unsigned producers, struct queue_item *items)
{
	struct pusher pushers[PRODUCERS_MAX];
	pthread_t consumer;
	size_t taken;
	int64_t after_ns;
	double ops = (double)ITEMS * producers;

	start(pushers, producers, what, items, &consumer);
	taken = finish(pushers, producers, consumer);
	after_ns = measure_now_ns();
	taken += what->kind->drain();
	after_ns = measure_now_ns() - after_ns;
	if (taken != (size_t)ITEMS * producers)
		return NAN;
	if (what->consumer == CONSUMER_AFTER)
		return (double)after_ns / ops;
	return wall_ns(pushers, producers) / ops;
}

double probe_queue(const struct probe *probe)
{
	struct queue_item *items = items_create(probe->producers);
	double ns_per_op = items ? run(probe->parameter, probe->producers, items) : NAN;

	free(items);
	return ns_per_op;
}

static const struct queue_case mpsc_alone = {&queue_mpsc, CONSUMER_NONE};
static const struct queue_case mpsc_busy = {&queue_mpsc, CONSUMER_BUSY};
static const struct queue_case mpsc_ticks = {&queue_mpsc, CONSUMER_TICKS};
static const struct queue_case mpsc_take = {&queue_mpsc, CONSUMER_AFTER};
static const struct queue_case wfcq_alone = {&queue_wfcqueue, CONSUMER_NONE};
static const struct queue_case wfcq_busy = {&queue_wfcqueue, CONSUMER_BUSY};
static const struct queue_case wfcq_ticks = {&queue_wfcqueue, CONSUMER_TICKS};
static const struct queue_case wfcq_take = {&queue_wfcqueue, CONSUMER_AFTER};
static const struct queue_case splice_busy = {&queue_wfcqueue_spliced, CONSUMER_BUSY};
static const struct queue_case splice_ticks = {&queue_wfcqueue_spliced, CONSUMER_TICKS};
static const struct queue_case splice_take = {&queue_wfcqueue_spliced, CONSUMER_AFTER};

const struct probe queue_probes[] = {
	{"mpsc-alone", "push, no consumer", probe_queue, &mpsc_alone, 1},
	{"wfcqueue-alone", "push, no consumer", probe_queue, &wfcq_alone, 1},
	{"mpsc-alone", "push, no consumer", probe_queue, &mpsc_alone, 2},
	{"wfcqueue-alone", "push, no consumer", probe_queue, &wfcq_alone, 2},
	{"mpsc-ticks", "push, consumer every ms", probe_queue, &mpsc_ticks, 1},
	{"wfcqueue-ticks", "push, consumer every ms", probe_queue, &wfcq_ticks, 1},
	{"wfcqueue-splice-ticks", "push, consumer every ms, splice", probe_queue, &splice_ticks, 1},
	{"mpsc-ticks", "push, consumer every ms", probe_queue, &mpsc_ticks, 2},
	{"wfcqueue-ticks", "push, consumer every ms", probe_queue, &wfcq_ticks, 2},
	{"wfcqueue-splice-ticks", "push, consumer every ms, splice", probe_queue, &splice_ticks, 2},
	{"mpsc-busy", "push, consumer without pause", probe_queue, &mpsc_busy, 1},
	{"wfcqueue-busy", "push, consumer without pause", probe_queue, &wfcq_busy, 1},
	{"wfcqueue-splice-busy", "push, consumer without pause, splice", probe_queue, &splice_busy,
	 1},
	{"mpsc-busy", "push, consumer without pause", probe_queue, &mpsc_busy, 2},
	{"wfcqueue-busy", "push, consumer without pause", probe_queue, &wfcq_busy, 2},
	{"wfcqueue-splice-busy", "push, consumer without pause, splice", probe_queue, &splice_busy,
	 2},
	{"mpsc-take", "take, after all were pushed", probe_queue, &mpsc_take, 1},
	{"wfcqueue-take", "take, after all were pushed", probe_queue, &wfcq_take, 1},
	{"wfcqueue-splice-take", "splice and walk, after all were pushed", probe_queue,
	 &splice_take, 1},
	{.name = NULL},
};
