/* SPDX-License-Identifier: MIT */
/*
 * Lanes that push without a fence: the sleeper makes a barrier in all threads, and where that fails it
 * sleeps for a moment only. The program stands before the system's barrier. A push whose look at the
 * sleeper came too early, which no test can make at will, is played by one that does not look.
 *
 * Seen to fail: no barrier before a sleep; lanes that are never busy, or busy where there is no barrier; a
 * failed barrier forgotten by a worker's sleep, by a poll, or by the first setting of the descriptor; or
 * never forgiven.
 */
#include "thread/barrier.h"

#include "engine/engine.h"
#include "ingress/push.h"
#include "probe.h"
#include "thread/rcu.h"

#include <poll.h>

enum {
	/* More than a lane brings before it is busy. */
	BURST = 3000,
	/* How long nothing is seen to come, and how often a short sleep ends meanwhile, at least. */
	STILL_MS = 50,
	LOOKS = 5,
};

static atomic_bool able, good;
static atomic_int barriers;

bool twi_barrier_able(void)
{
	return atomic_load(&able);
}

bool twi_barrier_all(void)
{
	atomic_fetch_add(&barriers, 1);
	return atomic_load(&good);
}

static struct twi_worker *worker_of(const struct tw_engine *engine)
{
	return (struct twi_worker *)(uintptr_t)&engine->worker;
}

/* Whether the calling thread's lane is marked. */
static bool busy(const struct tw_engine *engine)
{
	return twi_lane_unfenced(worker_of(engine), twi_thread());
}

static void burst(struct tw_engine *engine)
{
	static atomic_int unused;

	for (int i = 0; i < BURST; i++)
		(void)must_schedule(engine, TW_NEVER, &count_kind, &unused);
	check_int(tw_engine_settle(engine, PATIENCE_NS), 0);
}

static struct tw_engine *busy_engine_open(bool is_able, bool is_good)
{
	struct tw_engine *engine;

	atomic_store(&able, is_able);
	atomic_store(&good, is_good);
	engine = real_engine_open(NULL);
	/* It sleeps until the first schedule that it needs to know of. */
	check_int(tw_engine_start(engine), 0);
	check_int(tw_engine_settle(engine, PATIENCE_NS), 0);
	burst(engine);
	return engine;
}

/* A timeout that is due at once, by a push that does not look whether anybody sleeps. */
static void push_unseen(struct tw_engine *engine, atomic_int *fired)
{
	struct twi_thread *thread = twi_thread();
	struct twi_worker *worker = worker_of(engine);
	struct twi_node *node = twi_pool_take_warm(&thread->stock);
	uint64_t birth;

	check_true(node != NULL);
	birth = twi_node_birth(node, engine, &count_kind, fired, 0).birth;
	twi_rcu_enter();
	(void)twi_lane_count(thread, &worker->lane[thread->lane].scheduled_count);
	twi_lane_push(worker, thread, node, birth);
	twi_rcu_leave();
}

Test(barrier, who_sleeps_makes_it_for_busy_lanes)
{
	struct tw_engine *engine;

	atomic_store(&able, true);
	atomic_store(&good, true);
	engine = real_engine_open(NULL);
	(void)must_schedule(engine, TW_NEVER, &count_kind, NULL);
	check_int(tw_engine_settle(engine, PATIENCE_NS), 0);
	check_true(!busy(engine));
	check_int(atomic_load(&barriers), 0);
	burst(engine);
	check_true(busy(engine));
	/* By the sleep after this turn, at the latest. */
	check_int(tw_engine_settle(engine, PATIENCE_NS), 0);
	check_true(wait_until_at_least(&barriers, 1));
	real_engine_close(engine);
}

Test(barrier, where_there_is_none_no_lane_is_busy)
{
	struct tw_engine *engine = busy_engine_open(false, false);

	check_true(!busy(engine));
	check_int(atomic_load(&barriers), 0);
	real_engine_close(engine);
}

Test(barrier, made_it_lets_the_worker_sleep)
{
	struct tw_engine *engine = busy_engine_open(true, true);
	atomic_int fired = 0;

	check_true(busy(engine));
	/* The worker is asleep for good, and a push that nobody tells it of stays where it is. */
	sleep_ns(STILL_MS * NS_PER_MS);
	push_unseen(engine, &fired);
	sleep_ns(STILL_MS * NS_PER_MS);
	check_int(atomic_load(&fired), 0);
	check_int(tw_engine_settle(engine, PATIENCE_NS), 0);
	check_true(wait_until_at_least(&fired, 1));
	real_engine_close(engine);
}

Test(barrier, failed_it_leaves_short_sleeps)
{
	struct tw_engine *engine = busy_engine_open(true, false);
	atomic_int fired = 0;
	uint64_t before;

	check_true(busy(engine));
	before = stats_of(engine).parks;
	sleep_ns(STILL_MS * NS_PER_MS);
	check_at_least(stats_of(engine).parks - before, LOOKS);
	push_unseen(engine, &fired);
	check_true(wait_until_at_least(&fired, 1));
	/* Once it succeeds again, so does sleep. */
	atomic_store(&good, true);
	sleep_ns(STILL_MS * NS_PER_MS);
	before = stats_of(engine).parks;
	sleep_ns(STILL_MS * NS_PER_MS);
	check_at_most(stats_of(engine).parks - before, 1);
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
	/* Before anybody is the owner: what the owner schedules needs no lane. */
	for (int i = 0; i < BURST; i++)
		(void)must_schedule(engine, TW_NEVER, &count_kind, NULL);
	check_int(tw_poll(engine, 0), 0);
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

Test(barrier, made_it_lets_a_loop_sleep)
{
	struct tw_engine *engine = loop_open(true);
	int fd = tw_engine_fd(engine);

	check_true(!fd_ready(fd, STILL_MS));
	check_int(tw_poll(engine, 0), 0);
	check_true(!fd_ready(fd, STILL_MS));
	loop_close(engine);
}

/* When the descriptor is made, and after each poll. */
Test(barrier, failed_it_wakes_a_loop_soon)
{
	struct tw_engine *engine = loop_open(false);
	int fd = tw_engine_fd(engine);

	check_true(fd_ready(fd, 20000));
	for (int i = 0; i < LOOKS; i++) {
		check_int(tw_poll(engine, 0), 0);
		check_true(fd_ready(fd, 20000));
	}
	atomic_store(&good, true);
	check_int(tw_poll(engine, 0), 0);
	check_true(!fd_ready(fd, STILL_MS));
	loop_close(engine);
}
