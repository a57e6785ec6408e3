/* SPDX-License-Identifier: MIT */
/*
 * tw_fork_reinit: the parent's timeouts in a child that takes over their engine. There is a test
 * for each state that a timeout may have at the fork, with and without TW_REINIT_KEEP.
 *
 * Seen to fail with these defects:
 * - timeouts in INIT are not kept;
 * - the state of a running timeout is not changed, so a wait for it never ends;
 * - blocks in the stocks of other threads are not found (child_reuses_the_memory_of_lost_threads);
 * - the engine pointer of a kept timeout stays marked, so calls return -ECHILD;
 * - in the child slow runs are no longer watched, or the parent's run is watched or measured
 *   (child_notices...).
 */
#include "heir.h"

#include <pthread.h>

enum {
	MANY = 1000,
};

static struct fixture fixture;
static struct probe probe, other;
static struct tw_handle handle, second;
static struct gate gate;

static void open_with_handlers(const struct tw_options *options)
{
	fixture_open(&fixture, options);
}

/* Closes the engine in the parent. It must have continued as if there had been no fork. */
static void close_untouched(int runs)
{
	check_int(probe.finalised, 0);
	fixture_advance(&fixture, 10 * NS_PER_S);
	check_int(probe.runs, runs);
	check_int(probe.finalised, runs);
	fixture_close(&fixture);
}

/* In the next tests, the child does not keep the timeouts. */

static void child_begins_anew(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	heir_take(&fixture, 0);
	child_need(tw_engine_state(fixture.engine), TW_ENGINE_NEW);
	child_need(heir_stats(&fixture).scheduled, 0);
	child_need(tw_timeout_state(handle), -ESTALE);
	child_need(tw_timeout_get(handle, &seen), -ESTALE);
	child_need(tw_cancel(handle), TW_CANCEL_STALE);
	child_need(tw_cancel_wait(handle, TW_NEVER), TW_CANCEL_STALE);
	child_need(tw_reschedule(handle, 0), -ESTALE);
	child_need(tw_schedule(fixture.engine, NS_PER_MS, &probe_kind, &other, NULL), 0);
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(other.runs, 1);
	child_need(probe.runs, 0);
	child_need(probe.finalised, 0);
	heir_close(&fixture);
	child_need(fixture.back.count, 0);
}

Test(reinit, child_may_begin_with_an_empty_engine)
{
	open_with_handlers(NULL);
	probe_init(&other, fixture.engine);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	in_child(child_begins_anew);
	close_untouched(1);
}

/* Takes over an engine that was never started. */
static void child_starts_it(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_state(fixture.engine), TW_ENGINE_NEW);
	child_need(tw_schedule(fixture.engine, 1, &probe_kind, &other, NULL), 0);
	heir_advance(&fixture, NS_PER_MS);
	child_need(other.runs, 1);
	heir_close(&fixture);
}

Test(reinit, child_may_take_over_an_unused_engine)
{
	open_with_handlers(NULL);
	probe_init(&other, fixture.engine);
	in_child(child_starts_it);
	fixture_close(&fixture);
}

static void child_finalises(void)
{
	heir_take(&fixture, TW_REINIT_FINALISE);
	child_need(probe.finalised, 1);
	child_need(probe.end, TW_END_UNEXPIRED);
	child_need(probe.runs, 0);
	/* This timeout's callback is running in the parent, so the child must not end the
	 * timeout. */
	child_need(other.finalised, 0);
	heir_close(&fixture);
	child_need(probe.finalised, 1);
	child_need(other.finalised, 0);
}

static void on_held(struct tw_handle self, void *arg)
{
	gate_kind.callback(self, &gate);
	probe_kind.callback(self, arg);
}

static void on_held_end(void *arg, enum tw_end end)
{
	probe_final_kind.finaliser(arg, end);
}

static const struct tw_kind held_kind = TW_KIND(on_held, on_held_end);

/* Holds the worker inside the callback of `other`. */
static void hold(const struct tw_kind *kind)
{
	gate_init(&gate);
	probe_init(&other, fixture.engine);
	second = must_schedule(fixture.engine, 1, kind, &other);
	fixture.now_ns += fixture.tick_ns;
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_await(&gate);
}

Test(reinit, child_runs_the_finalisers_of_pending_timeouts)
{
	open_with_handlers(NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	hold(&held_kind);
	in_child(child_finalises);
	gate_open(&gate);
	close_untouched(1);
	check_int(other.finalised, 1);
}

/*
 * In the next test, the finaliser makes calls that must fail here, because the engine still belongs
 * to the parent.
 */
static int codes[4];

static void on_drop(void *arg, enum tw_end end)
{
	if (end != TW_END_UNEXPIRED)
		return;
	codes[0] = tw_engine_destroy(arg);
	codes[1] = tw_fork_reinit(arg, TW_REINIT_KEEP);
	codes[2] = tw_engine_stop(arg, NULL, NULL, TW_NEVER);
	codes[3] = tw_schedule(arg, 1, &probe_kind, &other, NULL);
}

static void child_is_kept_from_it(void)
{
	heir_take(&fixture, TW_REINIT_FINALISE);
	child_need(codes[0], -EDEADLK);
	child_need(codes[1], -EDEADLK);
	child_need(codes[2], -ECHILD);
	child_need(codes[3], -ECHILD);
	child_need(probe.finalised, 1);
	child_need(heir_stats(&fixture).scheduled, 0);
	heir_close(&fixture);
}

Test(reinit, calls_in_a_finaliser_during_reinit_are_rejected)
{
	struct tw_kind drops = TW_KIND(probe_kind.callback, on_drop);

	open_with_handlers(NULL);
	probe_init(&other, fixture.engine);
	handle = must_schedule(fixture.engine, NS_PER_S, &drops, fixture.engine);
	second = probe_schedule(&fixture, &probe, NS_PER_S);
	in_child(child_is_kept_from_it);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_cancel(second), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

/* In the next tests, the child keeps the timeouts. */

static void child_goes_on(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), 1);
	child_need(tw_timeout_state(handle), TW_STATE_INIT);
	child_need(tw_timeout_get(handle, &seen), 0);
	child_need(seen.engine == fixture.engine, true);
	child_need(seen.arg == &probe, true);
	child_need(seen.kind == &probe_final_kind, true);
	heir_advance_to(&fixture, seen.deadline_ns);
	child_need(probe.runs, 0);
	heir_advance(&fixture, fixture.tick_ns);
	child_need(probe.runs, 1);
	child_need(probe.end, TW_END_EXPIRED);
	child_need(same_handle(probe.self, handle), true);
	child_need(tw_timeout_state(handle), TW_STATE_EXPIRED);
	heir_close(&fixture);
}

Test(reinit, keeps_what_is_in_the_wheel)
{
	open_with_handlers(NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	in_child(child_goes_on);
	close_untouched(1);
}

/*
 * Takes over an engine whose worker is held in the parent, so the timeouts are still in the rings.
 */
static void child_goes_on_beside_a_run(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), 1);
	/* The run belongs to the parent, so the child must not wait for it. */
	child_need(tw_timeout_state(second), TW_STATE_EXPIRED);
	child_need(tw_cancel_wait(second, TW_NEVER), TW_CANCEL_EXPIRED);
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	child_need(other.runs, 0);
	child_need(other.finalised, 0);
	heir_close(&fixture);
}

Test(reinit, keeps_what_is_in_a_ring_but_not_what_runs)
{
	open_with_handlers(NULL);
	hold(&held_kind);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	in_child(child_goes_on_beside_a_run);
	gate_open(&gate);
	close_untouched(1);
	check_int(other.runs, 1);
}

static void child_finds_one_of_two(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), 1);
	child_need(tw_timeout_state(second), TW_STATE_CANCELLED);
	child_need(tw_cancel(second), TW_CANCEL_CANCELLED);
	heir_advance(&fixture, 2 * NS_PER_S - fixture.now_ns);
	/* The new deadline must count in the child. It is earlier than the one under which the
	 * parent has filed the timeout. */
	child_need(probe.runs, 1);
	child_need(other.runs, 0);
	heir_close(&fixture);
}

Test(reinit, child_sees_changes_that_wait_in_a_ring)
{
	struct gate held;

	open_with_handlers(NULL);
	probe_init(&other, fixture.engine);
	handle = probe_schedule(&fixture, &probe, 9 * NS_PER_S);
	second = must_schedule(fixture.engine, NS_PER_S, &probe_final_kind, &other);
	fixture_advance(&fixture, NS_PER_MS);
	(void)gate_hold(&fixture, &held);
	/* The worker is held, so both changes wait in the ring. */
	check_int(tw_cancel(second), TW_CANCEL_DONE);
	check_int(tw_reschedule(handle, NS_PER_S), TW_RESCHEDULE_DONE);
	in_child(child_finds_one_of_two);
	gate_open(&held);
	close_untouched(1);
}

static void child_finds_it_overdue(void)
{
	child_need(tw_clock_set(fixture.clock, 5 * NS_PER_S), 0);
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_flush(fixture.engine, PATIENCE_NS), 0);
	child_need(probe.runs, 1);
	fixture.now_ns = 5 * NS_PER_S;
	heir_close(&fixture);
}

Test(reinit, what_was_due_meanwhile_runs_at_once)
{
	open_with_handlers(NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	in_child(child_finds_it_overdue);
	close_untouched(1);
}

/* Accepts all timeouts, and does not begin their runs. */
static size_t accept_all(void *context, const struct tw_due *due, size_t count)
{
	*(struct tw_due *)context = due[0];
	return count;
}

static struct tw_due accepted;

static void child_has_no_executor(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), 0);
	child_need(tw_timeout_state(handle), TW_STATE_EXPIRED);
	child_need(tw_due_run(&accepted), -ESTALE);
	child_need(probe.runs, 0);
	/* Nothing is in flight in the child, so the close must not wait. */
	heir_close(&fixture);
}

Test(reinit, what_is_with_an_executor_has_ended)
{
	struct tw_options options = fixture_options();

	options.dispatch = accept_all;
	options.dispatch_context = &accepted;
	open_with_handlers(&options);
	handle = probe_schedule(&fixture, &probe, NS_PER_MS);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	in_child(child_has_no_executor);
	check_int(tw_due_run(&accepted), 0);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

/*
 * In the next test, several threads of the parent schedule many timeouts. The child does not have
 * these threads.
 */

static struct probe probes[MANY];

static void *schedule_many(void *arg)
{
	size_t first = *(size_t *)arg;

	for (size_t number = first; number < MANY; number += 4) {
		probe_init(&probes[number], fixture.engine);
		if (tw_schedule(fixture.engine, (int64_t)(number + 1) * NS_PER_MS,
				&probe_final_kind, &probes[number], NULL) != 0)
			return NULL;
	}
	return arg;
}

static void child_counts_many(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), MANY);
	heir_advance(&fixture, MANY / 2 * NS_PER_MS);
	for (int number = 0; number < MANY; number++)
		child_need(probes[number].runs, number < MANY / 2 - 1);
	heir_close(&fixture);
	child_need(fixture.back.count, MANY / 2 + 1);
	for (int number = 0; number < MANY; number++)
		child_need(probes[number].finalised, 1);
}

Test(reinit, keeps_what_threads_left_that_are_gone)
{
	static size_t firsts[] = {0, 1, 2, 3};
	pthread_t threads[4];
	void *result;

	open_with_handlers(NULL);
	for (size_t i = 0; i < 4; i++)
		check_int(pthread_create(&threads[i], NULL, schedule_many, &firsts[i]), 0);
	for (size_t i = 0; i < 4; i++) {
		check_int(pthread_join(threads[i], &result), 0);
		check_true(result != NULL);
	}
	in_child(child_counts_many);
	fixture_advance(&fixture, 2 * MANY * NS_PER_MS);
	fixture_close(&fixture);
}

/* In the next test, a thread holds free blocks in its stock and waits. */
static sem_t standing, go_on;

static void *hold_blocks(void *arg)
{
	if (tw_thread_attach() != 0)
		return NULL;
	sem_post(&standing);
	while (sem_wait(&go_on) != 0)
		;
	return arg;
}

/* Returns the number of all blocks, without the one that each slab uses itself. */
static int blocks_there(void)
{
	return (int)(tw_memory_slab_bytes() / 64 - tw_memory_slab_bytes() / (2 << 20));
}

static void child_uses_all_memory(void)
{
	int blocks = blocks_there();
	int runs_of_blocks;
	int accepted_count = 0;

	heir_take(&fixture, TW_REINIT_KEEP);
	while (tw_schedule(fixture.engine, NS_PER_S, &probe_kind, &other, NULL) == 0)
		accepted_count++;
	/* The kept timeout uses one more block. */
	runs_of_blocks = accepted_count + 1;
	child_need(runs_of_blocks, blocks);
	heir_close(&fixture);
}

Test(reinit, child_reuses_the_memory_of_lost_threads)
{
	pthread_t threads[3];

	open_with_handlers(NULL);
	probe_init(&other, fixture.engine);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_memory_cap_set(tw_memory_slab_bytes()), 0);
	check_int(sem_init(&standing, 0, 0), 0);
	check_int(sem_init(&go_on, 0, 0), 0);
	for (int i = 0; i < 3; i++)
		check_int(pthread_create(&threads[i], NULL, hold_blocks, &probe), 0);
	for (int i = 0; i < 3; i++)
		check_int(sem_wait(&standing), 0);
	in_child(child_uses_all_memory);
	for (int i = 0; i < 3; i++)
		check_int(sem_post(&go_on), 0);
	for (int i = 0; i < 3; i++)
		check_int(pthread_join(threads[i], NULL), 0);
	check_int(tw_memory_cap_set(0), 0);
	close_untouched(1);
}

/* Checks that each kept timeout keeps its place under the limit. */
static void child_is_full(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_schedule(fixture.engine, NS_PER_S, &probe_kind, &other, NULL), 0);
	child_need(tw_schedule(fixture.engine, NS_PER_S, &probe_kind, &other, NULL), -EAGAIN);
	child_need(tw_cancel(handle), TW_CANCEL_DONE);
	child_need(probe.finalised, 1);
	child_need(tw_schedule(fixture.engine, NS_PER_S, &probe_kind, &other, NULL), 0);
	child_need(tw_schedule(fixture.engine, NS_PER_S, &probe_kind, &other, NULL), -EAGAIN);
	heir_close(&fixture);
	child_need(fixture.back.count, 2);
}

Test(reinit, kept_timeouts_count_towards_the_limit)
{
	struct tw_options options = fixture_options();

	options.pending_limit = 2;
	open_with_handlers(&options);
	probe_init(&other, fixture.engine);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	in_child(child_is_full);
	close_untouched(1);
}

/*
 * In the next test, the parent is in a slow run at the fork. The child must not count that run as
 * its own.
 */
static atomic_int told;

static void on_slow(void *context, const struct tw_slow *slow)
{
	(void)context;
	(void)slow;
	atomic_fetch_add(&told, 1);
}

static void pass(int64_t ns)
{
	fixture.now_ns += ns;
	(void)tw_clock_set(fixture.clock, fixture.now_ns);
}

static void on_long(struct tw_handle self, void *arg)
{
	(void)self;
	pass(10 * NS_PER_MS);
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind long_kind = TW_KIND(on_long, NULL);

static void child_has_measured(uint64_t count)
{
	static struct tw_histogram histogram = {.size = sizeof histogram};

	for (uint32_t i = TW_MEASUREMENT_LATENESS; i <= TW_MEASUREMENT_DURATION; i++) {
		child_need(tw_histogram_get(fixture.engine, i, &histogram), 0);
		child_need(histogram.count, count);
	}
}

static void child_watches_its_own(void)
{
	atomic_int runs = 0;

	heir_take(&fixture, TW_REINIT_KEEP);
	pass(10 * NS_PER_MS);
	child_need(tw_engine_watch(fixture.engine), 0);
	child_need(heir_stats(&fixture).slow, 0);
	child_has_measured(0);
	child_need(tw_schedule(fixture.engine, 1, &long_kind, &runs, NULL), 0);
	child_need(tw_engine_flush(fixture.engine, PATIENCE_NS), 0);
	heir_advance(&fixture, NS_PER_MS);
	child_need(runs, 1);
	/* One run is the parent's, the other the child's. */
	child_need(told, 2);
	child_need(heir_stats(&fixture).slow, 1);
	child_has_measured(1);
	heir_close(&fixture);
}

Test(reinit, child_notices_only_its_own_slow_runs)
{
	struct tw_options options = fixture_options();

	options.slow_ns = (uint64_t)(5 * NS_PER_MS);
	options.on_slow = on_slow;
	options.measure = TW_MEASURE_RUNS;
	open_with_handlers(&options);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	hold(&held_kind);
	pass(10 * NS_PER_MS);
	check_int(tw_engine_watch(fixture.engine), 1);
	check_int(told, 1);
	in_child(child_watches_its_own);
	gate_open(&gate);
	close_untouched(1);
}

/* In the next test, a child forks a child, and so on. Memory must not grow from one to the next. */
static int depth;

static void child_forks_on(void)
{
	uint64_t before = tw_memory_slab_bytes();

	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_fork_generation(), ++depth);
	child_need(tw_engine_pending(fixture.engine), 1);
	child_need(tw_schedule(fixture.engine, 1, &probe_kind, &other, NULL), 0);
	heir_advance(&fixture, NS_PER_MS);
	heir_advance(&fixture, NS_PER_MS);
	child_need(other.runs, depth);
	child_need(tw_timeout_state(handle), TW_STATE_INIT);
	child_need(tw_memory_slab_bytes(), before);
	if (depth < 10)
		in_child(child_forks_on);
	child_need(tw_cancel(handle), TW_CANCEL_DONE);
	heir_close(&fixture);
}

Test(reinit, ten_generations_keep_the_timeout)
{
	open_with_handlers(NULL);
	probe_init(&other, fixture.engine);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_fork_generation(), 0);
	in_child(child_forks_on);
	close_untouched(1);
}
