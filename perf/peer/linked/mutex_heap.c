/* SPDX-License-Identifier: MIT */
/*
 * mutex-heap: a binary heap that one mutex protects.
 *
 * The heap's array holds each deadline next to its node, so that sifting reads only the array. A
 * node knows its place, so that a cancel need not search. The worker sleeps on a condition variable
 * until the earliest deadline. Only the first schedule with an earlier deadline signals the
 * condition. The worker takes due timeouts in batches and runs the callbacks without the lock. The
 * clock is read outside the lock (rival_clock.h).
 */
#include <stdbool.h>
#include <stdint.h>

struct node {
	/* The node's index in the heap's array. 0: the node is not pending. */
	uint32_t place;
};

typedef struct node peer_timer;

#include "peer/rival_clock.h"
#include "peer/shared.h"
#include "peer/table.h"

#include <pthread.h>
#include <time.h>

enum { TOP = 1, BATCH = 64, NS_PER_S = 1000000000 };

struct entry {
	int64_t deadline_ns;
	struct node *node;
};

static struct {
	alignas(64) pthread_mutex_t lock;
	/* The array, used from index TOP on. */
	struct entry *entries;
	uint32_t count;
	bool ended;
	/*
	 * The worker wakes up at this time at the latest, so a thread need not signal the worker
	 * for a later deadline. INT64_MIN: the worker is awake, or about to wake up.
	 */
	int64_t looks_at_ns;
	alignas(64) pthread_cond_t earlier;
	pthread_t worker;
} heap;

static inline void put(uint32_t place, struct entry entry)
{
	heap.entries[place] = entry;
	entry.node->place = place;
}

static inline void sift_up(uint32_t place, struct entry entry)
{
	while (place > TOP && entry.deadline_ns < heap.entries[place / 2].deadline_ns) {
		put(place, heap.entries[place / 2]);
		place /= 2;
	}
	put(place, entry);
}

static inline void sift_down(uint32_t place, struct entry entry)
{
	uint32_t child;

	while ((child = place * 2) <= heap.count) {
		if (child < heap.count &&
		    heap.entries[child + 1].deadline_ns < heap.entries[child].deadline_ns)
			child++;
		if (entry.deadline_ns <= heap.entries[child].deadline_ns)
			break;
		put(place, heap.entries[child]);
		place = child;
	}
	put(place, entry);
}

/* Takes an entry out of the heap. The last entry fills the gap, and moves up or down as needed. */
static inline void take(uint32_t place)
{
	struct entry last = heap.entries[heap.count--];

	heap.entries[place].node->place = 0;
	if (place > heap.count)
		return;
	if (place > TOP && last.deadline_ns < heap.entries[place / 2].deadline_ns)
		sift_up(place, last);
	else
		sift_down(place, last);
}

static inline void peer_timer_init(peer_timer *timer)
{
	timer->place = 0;
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	struct entry entry = {.deadline_ns = rival_deadline_ns(delay_ns), .node = timer};
	bool signals;

	pthread_mutex_lock(&heap.lock);
	sift_up(++heap.count, entry);
	signals = entry.deadline_ns < heap.looks_at_ns;
	if (signals)
		heap.looks_at_ns = INT64_MIN;
	pthread_mutex_unlock(&heap.lock);
	if (signals)
		pthread_cond_signal(&heap.earlier);
	return 0;
}

static inline bool peer_timer_cancel(peer_timer *timer)
{
	bool pending;

	pthread_mutex_lock(&heap.lock);
	pending = timer->place != 0;
	if (pending)
		take(timer->place);
	pthread_mutex_unlock(&heap.lock);
	return pending;
}

static unsigned take_batch(int64_t now_ns, struct node **ret_batch)
{
	unsigned count = 0;

	while (count < BATCH && heap.count > 0 && heap.entries[TOP].deadline_ns <= now_ns) {
		ret_batch[count++] = heap.entries[TOP].node;
		take(TOP);
	}
	return count;
}

/* Must be called with the lock held. Releases the lock while callbacks run. */
static void run_batch(struct node **batch, unsigned count)
{
	pthread_mutex_unlock(&heap.lock);
	for (unsigned i = 0; i < count; i++)
		shared_expired(batch[i]);
	pthread_mutex_lock(&heap.lock);
}

static void sleep_until_earliest(void)
{
	struct timespec until;

	if (heap.count == 0) {
		heap.looks_at_ns = INT64_MAX;
		pthread_cond_wait(&heap.earlier, &heap.lock);
	} else {
		heap.looks_at_ns = heap.entries[TOP].deadline_ns;
		until.tv_sec = heap.looks_at_ns / NS_PER_S;
		until.tv_nsec = heap.looks_at_ns % NS_PER_S;
		pthread_cond_timedwait(&heap.earlier, &heap.lock, &until);
	}
	heap.looks_at_ns = INT64_MIN;
}

static void *worker_main(void *unused)
{
	struct node *batch[BATCH];

	(void)unused;
	pthread_mutex_lock(&heap.lock);
	while (!heap.ended) {
		unsigned count = take_batch(measure_now_ns(), batch);

		if (count > 0)
			run_batch(batch, count);
		else
			sleep_until_earliest();
	}
	pthread_mutex_unlock(&heap.lock);
	return NULL;
}

static int cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;
	int error;

	pthread_condattr_init(&attributes);
	error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	if (!error)
		error = pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
	return -error;
}

/* Allocates and touches an array for all timeouts that can be pending at once. */
static int heap_open(const struct peer_task *task)
{
	size_t bytes = (shared_pending_max(task) + TOP) * sizeof(*heap.entries);
	int error = rival_clock_open(task);

	if (!error)
		error = cond_init(&heap.earlier);
	if (error)
		return error;
	heap.entries = malloc(bytes);
	if (!heap.entries)
		return -ENOMEM;
	memset(heap.entries, 0xff, bytes);
	pthread_mutex_init(&heap.lock, NULL);
	return -pthread_create(&heap.worker, NULL, worker_main, NULL);
}

static void heap_close(void)
{
	pthread_mutex_lock(&heap.lock);
	heap.ended = true;
	pthread_mutex_unlock(&heap.lock);
	pthread_cond_signal(&heap.earlier);
	pthread_join(heap.worker, NULL);
	free(heap.entries);
}

static const char *heap_version(void)
{
	return "binary heap, places in nodes";
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct shared_hooks hooks = {
		.version = heap_version,
		.open = heap_open,
		.close = heap_close,
	};

	rival_clock.monotonic = self == &peer_mutex_heap_monotonic;
	return shared_run(&hooks, task, ret_sample);
}

const struct peer peer_mutex_heap = {
	.name = "mutex-heap",
	.workloads = WORKLOAD_KIND_SHARED,
	.run = run,
};

const struct peer peer_mutex_heap_monotonic = {
	.name = "mutex-heap-monotonic",
	.workloads = WORKLOAD_KIND_SCHEDULE_CANCEL | WORKLOAD_KIND_LIVE_RING | WORKLOAD_KIND_FIRE,
	.run = run,
};
