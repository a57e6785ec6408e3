/* SPDX-License-Identifier: MIT */
/*
 * mutex-wheel: a hierarchical wheel that one mutex protects. It is a straightforward design without
 * lock-free parts.
 *
 * It has four levels of 256 slots and a tick of 1 ms. Slots are doubly linked lists, so that a
 * cancel is an unlink. The worker wakes up at each tick, turns the wheel, takes due timeouts out in
 * batches, and runs the callbacks without the lock. A schedule reads the clock outside the lock, to
 * hold the lock for a shorter time (rival_clock.h). The worker's latest tick would be a cheaper
 * clock. But when the worker is late, that tick is too old, and timeouts would be early.
 */
#include <stdbool.h>
#include <stdint.h>

struct node {
	struct node *next;
	/* NULL: the node is not pending. */
	struct node *prev;
	uint64_t due_tick;
};

typedef struct node peer_timer;

#include "peer/rival_clock.h"
#include "peer/shared.h"
#include "peer/table.h"

#include <pthread.h>

enum { LEVELS = 4, LEVEL_BITS = 8, SLOTS = 1 << LEVEL_BITS, BATCH = 64 };
#define TICK_NS INT64_C(1000000)

static struct {
	alignas(64) pthread_mutex_t lock;
	/*
	 * The next tick that the worker will handle. The timeouts of all ticks before it have
	 * expired.
	 */
	uint64_t tick;
	/* Written under the lock, read by the worker. */
	bool ended;
	struct node slots[LEVELS][SLOTS];
	/*
	 * The timeouts that were taken out of a slot and have not run yet. A cancel may still
	 * unlink a node from this list.
	 */
	struct node due;
	alignas(64) pthread_t worker;
} wheel;

static void list_init(struct node *head)
{
	head->next = head;
	head->prev = head;
}

static inline void list_add(struct node *head, struct node *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_remove(struct node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->prev = NULL;
}

/*
 * Chooses the level by the distance. A timeout that is too far waits in the farthest slot of the
 * last level.
 */
static inline void place(struct node *node)
{
	uint64_t due_tick = node->due_tick > wheel.tick ? node->due_tick : wheel.tick;
	uint64_t ahead_ticks = due_tick - wheel.tick;
	unsigned level = 0;

	while (level < LEVELS - 1 && ahead_ticks >> (LEVEL_BITS * (level + 1)))
		level++;
	if (ahead_ticks >> (LEVEL_BITS * LEVELS))
		due_tick = wheel.tick + (UINT64_C(1) << (LEVEL_BITS * LEVELS)) - 1;
	list_add(&wheel.slots[level][(due_tick >> (LEVEL_BITS * level)) % SLOTS], node);
}

static inline void peer_timer_init(peer_timer *timer)
{
	timer->prev = NULL;
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	/* Rounds up to the next tick, so that no timeout is early. */
	timer->due_tick = (uint64_t)(rival_deadline_ns(delay_ns) + TICK_NS - 1) / TICK_NS;
	pthread_mutex_lock(&wheel.lock);
	place(timer);
	pthread_mutex_unlock(&wheel.lock);
	return 0;
}

static inline bool peer_timer_cancel(peer_timer *timer)
{
	bool pending;

	pthread_mutex_lock(&wheel.lock);
	pending = timer->prev != NULL;
	if (pending)
		list_remove(timer);
	pthread_mutex_unlock(&wheel.lock);
	return pending;
}

static void take_all(struct node *from, struct node *to)
{
	if (from->next == from)
		return;
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	list_init(from);
}

/* Moves the slot of `level` that begins at this tick into the levels below. */
static void cascade(unsigned level)
{
	struct node moved;

	list_init(&moved);
	take_all(&wheel.slots[level][(wheel.tick >> (LEVEL_BITS * level)) % SLOTS], &moved);
	for (struct node *node = moved.next, *next; node != &moved; node = next) {
		next = node->next;
		place(node);
	}
}

static void turn(void)
{
	for (unsigned level = LEVELS - 1; level > 0; level--)
		if (wheel.tick % (UINT64_C(1) << (LEVEL_BITS * level)) == 0)
			cascade(level);
	take_all(&wheel.slots[0][wheel.tick % SLOTS], &wheel.due);
	wheel.tick++;
}

static unsigned take_batch(struct node **ret_batch)
{
	unsigned count = 0;

	while (count < BATCH && wheel.due.next != &wheel.due) {
		ret_batch[count] = wheel.due.next;
		list_remove(ret_batch[count++]);
	}
	return count;
}

/* Must be called with the lock held. Releases the lock while callbacks run. */
static void run_due(void)
{
	struct node *batch[BATCH];
	unsigned count;

	while ((count = take_batch(batch)) > 0) {
		pthread_mutex_unlock(&wheel.lock);
		for (unsigned i = 0; i < count; i++)
			shared_expired(batch[i]);
		pthread_mutex_lock(&wheel.lock);
	}
}

static bool advance(uint64_t now_tick)
{
	bool ended;

	pthread_mutex_lock(&wheel.lock);
	while (wheel.tick <= now_tick && !wheel.ended) {
		turn();
		run_due();
	}
	ended = wheel.ended;
	pthread_mutex_unlock(&wheel.lock);
	return ended;
}

static void *worker_main(void *unused)
{
	bool ended = false;

	(void)unused;
	while (!ended) {
		uint64_t now_tick = (uint64_t)(measure_now_ns() / TICK_NS);

		ended = advance(now_tick);
		measure_sleep_until_ns((int64_t)(now_tick + 1) * TICK_NS);
	}
	return NULL;
}

/*
 * Chooses the mutex type. An adaptive mutex spins before it sleeps. In schedule-cancel, where two
 * producers hold the lock for the shortest time, spinning halves the cost that they cause each
 * other. In the other workloads spinning doubles that cost.
 */
static int lock_init(unsigned workload_kind)
{
	pthread_mutexattr_t attributes;
	int error;

	pthread_mutexattr_init(&attributes);
	error = pthread_mutexattr_settype(&attributes,
					  workload_kind == WORKLOAD_KIND_SCHEDULE_CANCEL
						  ? PTHREAD_MUTEX_ADAPTIVE_NP
						  : PTHREAD_MUTEX_NORMAL);
	if (!error)
		error = pthread_mutex_init(&wheel.lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return -error;
}

static int wheel_open(const struct peer_task *task)
{
	int error = rival_clock_open(task);

	if (!error)
		error = lock_init(task->workload->kind);
	if (error)
		return error;
	for (unsigned level = 0; level < LEVELS; level++)
		for (unsigned slot = 0; slot < SLOTS; slot++)
			list_init(&wheel.slots[level][slot]);
	list_init(&wheel.due);
	wheel.tick = (uint64_t)(measure_now_ns() / TICK_NS) + 1;
	return -pthread_create(&wheel.worker, NULL, worker_main, NULL);
}

static void wheel_close(void)
{
	pthread_mutex_lock(&wheel.lock);
	wheel.ended = true;
	pthread_mutex_unlock(&wheel.lock);
	pthread_join(wheel.worker, NULL);
}

static const char *wheel_version(void)
{
	return "4 x 256 slots, 1 ms";
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct shared_hooks hooks = {
		.version = wheel_version,
		.open = wheel_open,
		.close = wheel_close,
	};

	rival_clock.monotonic = self == &peer_mutex_wheel_monotonic;
	return shared_run(&hooks, task, ret_sample);
}

const struct peer peer_mutex_wheel = {
	.name = "mutex-wheel",
	.workloads = WORKLOAD_KIND_SHARED,
	.run = run,
};

const struct peer peer_mutex_wheel_monotonic = {
	.name = "mutex-wheel-monotonic",
	.workloads = WORKLOAD_KIND_SCHEDULE_CANCEL | WORKLOAD_KIND_LIVE_RING | WORKLOAD_KIND_FIRE,
	.run = run,
};
