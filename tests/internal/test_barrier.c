/* SPDX-License-Identifier: MIT */
/*
 * A thread whose lane is busy pushes without a fence. So before it sleeps, the worker makes a
 * memory barrier in all threads of the process. If the barrier fails, the worker sleeps only for a
 * short time. This program replaces the system's barrier by functions of its own. The barrier
 * matters if a push loads the published deadline too early. A test cannot force that, so the tests
 * use a push that does not load it at all.
 *
 * Seen to fail with these defects:
 * - the worker makes no barrier before it sleeps;
 * - lanes are never marked as busy, or are marked although the system has no such barrier;
 * - after a failed barrier, a worker's sleep is not short, or a loop's sleep is not short after a
 *   poll, or after its descriptor was made;
 * - sleeps stay short when the barrier succeeds again.
 */
#include "asleep.h"
#include "rings.h"
#include "thread/barrier.h"

#include "engine/engine.h"
#include "ingress/push.h"
#include "probe.h"
#include "thread/rcu.h"

#include <poll.h>

enum {
	/* more pushes than make a lane busy */
	BURST = 3000,
	/*
	 * the time in which nothing may happen; the short sleeps must end several times within it
	 */
	STILL_MS = 50,
	LOOKS = 5,
};

static atomic_bool able, good;
static atomic_int barriers, good_barriers;

bool twi_barrier_able(void)
{
	return atomic_load(&able);
}

/* Returns false, so that sections use fences of their own. Then only the barriers before sleeps are
 * counted. */
bool twi_barrier_register(void)
{
	return false;
}

bool twi_barrier_all(void)
{
	bool result = atomic_load(&good);

	atomic_fetch_add(&barriers, 1);
	atomic_fetch_add(&good_barriers, result);
	return result;
}

static struct twi_worker *worker_of(const struct tw_engine *engine)
{
	return (struct twi_worker *)(uintptr_t)&engine->worker;
}

/* Returns true if the calling thread's lane is marked as busy. */
static bool busy(const struct tw_engine *engine)
{
	return twi_lane_unfenced(twi_lane_of(worker_of(engine), twi_thread()));
}

static void burst(struct tw_engine *engine)
{
	static atomic_int unused;

	for (int i = 0; i < BURST; i++)
		(void)must_schedule(engine, TW_NEVER, &count_kind, &unused);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
}

static struct tw_engine *busy_engine_open(bool is_able, bool is_good)
{
	struct tw_engine *engine;

	atomic_store(&able, is_able);
	atomic_store(&good, is_good);
	engine = real_engine_open(NULL);
	/* The started worker sleeps, and the first schedule with an earlier deadline has to wake
	 * it. */
	check_int(tw_engine_start(engine), 0);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	burst(engine);
	return engine;
}

/* Pushes a timeout that is due at once, and does not check whether the worker sleeps. */
static void push_unseen(struct tw_engine *engine, atomic_int *fired)
{
	struct twi_thread *thread = twi_thread();
	struct twi_worker *worker = worker_of(engine);
	struct twi_lane *lane = twi_lane_of(worker, thread);
	struct twi_node *node = twi_pool_take_warm(&thread->stock);
	uint64_t generation;

	check_true(node != NULL);
	generation = twi_node_begin(node, engine, &count_kind, fired, 0).generation;
	twi_rcu_enter();
	(void)twi_lane_begin_count(lane);
	twi_lane_push(worker, lane, node, generation);
	twi_rcu_leave();
}

Test(barrier, sleeping_worker_makes_a_barrier_for_busy_lanes)
{
	struct tw_engine *engine;

	atomic_store(&able, true);
	atomic_store(&good, true);
	engine = real_engine_open(NULL);
	(void)must_schedule(engine, TW_NEVER, &count_kind, NULL);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_true(!busy(engine));
	check_int(atomic_load(&barriers), 0);
	burst(engine);
	check_true(busy(engine));
	/* If the worker has not made a barrier yet, its next sleep must make one. */
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_true(wait_until_at_least(&barriers, 1));
	real_engine_close(engine);
}

Test(barrier, without_a_system_barrier_no_lane_is_busy)
{
	struct tw_engine *engine = busy_engine_open(false, false);

	check_true(!busy(engine));
	check_int(atomic_load(&barriers), 0);
	real_engine_close(engine);
}

Test(barrier, after_a_barrier_the_worker_sleeps_without_limit)
{
	struct tw_engine *engine = busy_engine_open(true, true);
	atomic_int fired = 0;

	check_true(busy(engine));
	check_true(wait_until_at_least(&barriers, 1));
	check_true(asleep_park_await(engine));
	/*
	 * After a successful barrier the worker sleeps without a time limit. So the push, which
	 * does not wake it, must stay in its lane.
	 */
	push_unseen(engine, &fired);
	sleep_ns(STILL_MS * NS_PER_MS);
	check_int(atomic_load(&fired), 0);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_true(wait_until_at_least(&fired, 1));
	real_engine_close(engine);
}

/* Waits until the worker has slept `count` times. Only short sleeps end by themselves. */
static bool parks_await(struct tw_engine *engine, uint64_t count)
{
	int64_t limit_ns = monotonic_ns() + PATIENCE_NS;

	while (stats_of(engine).parks < count) {
		if (monotonic_ns() > limit_ns)
			return false;
		sleep_ns(NS_PER_MS);
	}
	return true;
}

Test(barrier, after_a_failed_barrier_sleeps_are_short)
{
	struct tw_engine *engine = busy_engine_open(true, false);
	atomic_int fired = 0;
	uint64_t before;

	check_true(busy(engine));
	check_true(parks_await(engine, stats_of(engine).parks + LOOKS));
	push_unseen(engine, &fired);
	check_true(wait_until_at_least(&fired, 1));
	/* When the barrier succeeds again, the worker must sleep long again. */
	atomic_store(&good, true);
	check_true(wait_until_at_least(&good_barriers, 1));
	check_true(asleep_park_await(engine));
	before = stats_of(engine).parks;
	sleep_ns(STILL_MS * NS_PER_MS);
	check_int(stats_of(engine).parks - before, 0);
	real_engine_close(engine);
}

static struct tw_engine *loop_open(bool is_good)
{
	struct tw_options options;
	struct tw_engine *engine;

	atomic_store(&able, true);
	atomic_store(&good, is_good);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	check_int(tw_engine_create(&options, &engine), 0);
	engine_use_rings(engine);
	/* Pushes before the loop has an owner, because an owner's timeouts do not go through a
	 * lane. */
	for (int i = 0; i < BURST; i++)
		(void)must_schedule(engine, TW_NEVER, &count_kind, NULL);
	check_int(tw_engine_poll(engine, 0), 0);
	check_true(busy(engine));
	return engine;
}

static bool fd_ready(int fd, int timeout_ms)
{
	struct pollfd waits = {.fd = fd, .events = POLLIN};

	return poll(&waits, 1, timeout_ms) == 1;
}

static void loop_close(struct tw_engine *engine)
{
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
}

Test(barrier, after_a_barrier_a_loop_sleeps)
{
	struct tw_engine *engine = loop_open(true);
	int fd = tw_engine_fd(engine);

	check_true(!fd_ready(fd, STILL_MS));
	check_int(tw_engine_poll(engine, 0), 0);
	check_true(!fd_ready(fd, STILL_MS));
	loop_close(engine);
}

/* After a failed barrier the loop's descriptor must become readable soon: soon after it is made,
 * and soon after each poll. */
Test(barrier, after_a_failed_barrier_a_loop_is_woken_soon)
{
	struct tw_engine *engine = loop_open(false);
	int fd = tw_engine_fd(engine);

	check_true(fd_ready(fd, 20000));
	for (int i = 0; i < LOOKS; i++) {
		check_int(tw_engine_poll(engine, 0), 0);
		check_true(fd_ready(fd, 20000));
	}
	atomic_store(&good, true);
	check_int(tw_engine_poll(engine, 0), 0);
	check_true(!fd_ready(fd, STILL_MS));
	loop_close(engine);
}
