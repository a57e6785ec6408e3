/* SPDX-License-Identifier: MIT */
/*
 * A child that takes over several engines, engines with each clock, or no engine. Then it uses
 * other parts of the library: retry queues, keyed tables, new engines.
 *
 * Seen to fail with these defects: timeouts of an engine that was not taken over are not marked, so
 * calls accept their handles; in the child, a retry queue of the parent makes calls on its engine,
 * or a timer of the parent's table runs an entry.
 */
#include "heir.h"

#include <string.h>

static struct fixture first, second, third;
static struct probe probes[3];
static struct tw_handle handles[3];

static void open_three(void)
{
	struct fixture *fixtures[] = {&first, &second, &third};

	for (int i = 0; i < 3; i++) {
		fixture_open(fixtures[i], NULL);
		handles[i] = probe_schedule(fixtures[i], &probes[i], (i + 1) * NS_PER_S);
		fixture_advance(fixtures[i], NS_PER_MS);
	}
}

static void close_three(void)
{
	struct fixture *fixtures[] = {&first, &second, &third};

	for (int i = 0; i < 3; i++) {
		fixture_advance(fixtures[i], 4 * NS_PER_S);
		check_int(probes[i].runs, 1);
		fixture_close(fixtures[i]);
	}
}

static void use_memory(struct fixture *fixture)
{
	atomic_int count = 0;

	for (int i = 0; i < 5000; i++)
		child_need(tw_schedule(fixture->engine, 1, &count_kind, &count, NULL), 0);
	heir_advance(fixture, 2 * NS_PER_MS);
	child_need(count, 5000);
}

/* Takes over the first engine, destroys the third, and takes over the second while the first
 * already works in the child. */
static void child_takes_one_after_the_other(void)
{
	heir_take(&first, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handles[0]), TW_STATE_INIT);
	child_need(tw_timeout_state(handles[1]), -ECHILD);
	child_need(tw_cancel(handles[2]), -ECHILD);
	child_need(tw_engine_state(second.engine), -ECHILD);
	use_memory(&first);
	child_need(tw_engine_destroy(third.engine), 0);
	child_need(tw_clock_destroy(third.clock), 0);
	child_need(tw_timeout_state(handles[2]), -ESTALE);
	heir_take(&second, TW_REINIT_KEEP);
	use_memory(&second);
	child_need(tw_timeout_state(handles[1]), TW_STATE_INIT);
	heir_advance(&first, 2 * NS_PER_S);
	heir_advance(&second, 3 * NS_PER_S);
	child_need(probes[0].runs, 1);
	child_need(probes[1].runs, 1);
	child_need(probes[2].runs, 0);
	child_need(probes[2].finalised, 0);
	heir_close(&first);
	heir_close(&second);
}

Test(reinit_more, child_takes_several_engines_one_by_one)
{
	open_three();
	in_child(child_takes_one_after_the_other);
	close_three();
}

/*
 * Takes over the first two engines in a grandchild. The child has taken over only the first, so the
 * grandchild finds no timeouts in the second.
 */
static void grandchild_takes_all(void)
{
	heir_take(&second, TW_REINIT_KEEP);
	child_need(tw_engine_pending(second.engine), 0);
	child_need(tw_timeout_state(handles[1]), TW_STATE_CANCELLED);
	heir_take(&first, TW_REINIT_KEEP);
	heir_advance(&first, 2 * NS_PER_S);
	child_need(probes[0].runs, 1);
	heir_close(&first);
	heir_close(&second);
}

static void child_takes_one_and_forks(void)
{
	heir_take(&first, TW_REINIT_KEEP);
	in_child(grandchild_takes_all);
	heir_close(&first);
}

Test(reinit_more, an_engine_left_behind_twice)
{
	open_three();
	in_child(child_takes_one_and_forks);
	close_three();
}

static void grandchild_has_them(void)
{
	heir_take(&second, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handles[1]), TW_STATE_INIT);
	heir_close(&second);
}

/* Takes over nothing, and forks. The grandchild must find everything as it was. */
static void child_only_forks(void)
{
	in_child(grandchild_has_them);
}

Test(reinit_more, grandchild_may_take_over_past_an_idle_child)
{
	open_three();
	in_child(child_only_forks);
	close_three();
}

/* Takes over the library, but no engine. */
static void child_makes_its_own(void)
{
	struct fixture own = {.tick_ns = NS_PER_MS};
	struct tw_options options = fixture_options();
	struct probe probe;

	heir_threads_begin();
	child_need(tw_fork_reinit(NULL, 0), 0);
	child_need(tw_clock_create_virtual(0, &own.clock), 0);
	options.clock = own.clock;
	child_need(tw_engine_create(&options, &own.engine), 0);
	probe_init(&probe, own.engine);
	child_need(tw_schedule(own.engine, NS_PER_MS, &probe_final_kind, &probe, NULL), 0);
	heir_advance(&own, 3 * NS_PER_MS);
	child_need(probe.runs, 1);
	use_memory(&own);
	child_need(tw_timeout_state(handles[0]), -ECHILD);
	heir_close(&own);
	heir_take(&first, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handles[0]), TW_STATE_INIT);
	heir_close(&first);
}

Test(reinit_more, child_makes_an_engine_of_its_own)
{
	open_three();
	in_child(child_makes_its_own);
	close_three();
}

/* The next tests take over engines with each of the system's clocks. */
static struct tw_engine *real;

static void child_waits(void)
{
	int64_t begin_ns = monotonic_ns();

	heir_threads_begin();
	child_need(tw_fork_reinit(real, TW_REINIT_KEEP), 0);
	child_need(tw_timeout_state(handles[0]), TW_STATE_INIT);
	child_need(tw_reschedule(handles[0], 20 * NS_PER_MS), TW_RESCHEDULE_DONE);
	child_need(wait_until_at_least(&probes[0].runs, 1), true);
	child_need(monotonic_ns() - begin_ns >= 15 * NS_PER_MS, true);
	child_need(tw_schedule(real, NS_PER_MS, &probe_final_kind, &probes[1], NULL), 0);
	child_need(wait_until_at_least(&probes[1].runs, 1), true);
	child_need(tw_engine_stop(real, NULL, NULL, TW_NEVER), 0);
	child_need(tw_engine_destroy(real), 0);
}

static void with_clock(struct tw_clock *clock)
{
	struct tw_options options;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.clock = clock;
	options.tick_ns = 10 * NS_PER_MS;
	real = real_engine_open(&options);
	probe_init(&probes[0], real);
	probe_init(&probes[1], real);
	handles[0] = must_schedule(real, 3600 * NS_PER_S, &probe_final_kind, &probes[0]);
	check_int(tw_engine_flush(real, TW_NEVER), 0);
	in_child(child_waits);
	check_int(probes[0].runs, 0);
	check_int(tw_cancel(handles[0]), TW_CANCEL_DONE);
	/* The parent's worker must still wake up from its sleep. */
	must_schedule(real, NS_PER_MS, &probe_final_kind, &probes[1]);
	check_true(wait_until_at_least(&probes[1].runs, 1));
	real_engine_close(real);
}

Test(reinit_more, engines_of_each_clock_can_be_taken_over)
{
	static const enum tw_clock_type types[] = {TW_CLOCK_MONOTONIC, TW_CLOCK_BOOTTIME,
						   TW_CLOCK_COARSE, TW_CLOCK_TSC};
	struct tw_clock *clock;

	with_clock(NULL);
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		check_int(tw_clock_create(types[i], &clock), 0);
		with_clock(clock);
		check_int(tw_clock_destroy(clock), 0);
	}
}

/* In the next test, the parent's retries stay with the parent. */
static struct tw_retry *queue;
static struct tw_retry_handle waiting, pending;
static atomic_int attempts, ended;

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	(void)arg;
	(void)attempt;
	pending = self;
	atomic_fetch_add(&attempts, 1);
	return TW_RETRY_PENDING;
}

static void on_ended(void *arg, enum tw_retry_end end, uint64_t count)
{
	(void)arg;
	(void)end;
	(void)count;
	atomic_fetch_add(&ended, 1);
}

static const struct tw_retry_schedule failback = TW_RETRY_READY(TW_RETRY_FORM_FAILBACK);
static const struct tw_retry_kind task_kind = TW_RETRY_KIND(on_attempt, on_ended, &failback, 0);

static void child_has_no_tasks(void)
{
	struct tw_retry *own = NULL;

	heir_take(&first, TW_REINIT_KEEP);
	child_need(tw_retry_submit(queue, 0, &task_kind, NULL, NULL), -ECHILD);
	child_need(tw_retry_cancel(waiting), -ECHILD);
	child_need(tw_retry_complete(pending, TW_RETRY_DONE), -ECHILD);
	child_need(tw_retry_pending(queue), -ECHILD);
	child_need(tw_retry_destroy(queue), -EBUSY);
	/* When the timers of the parent's retries are due, they must do nothing. */
	heir_advance(&first, 60 * NS_PER_S);
	child_need(attempts, 1);
	/* A queue that the child creates must work. */
	child_need(tw_retry_create(first.engine, NULL, &own), 0);
	child_need(tw_retry_submit(own, 0, &task_kind, NULL, NULL), 0);
	heir_advance(&first, NS_PER_MS);
	child_need(attempts, 2);
	child_need(tw_retry_complete(pending, TW_RETRY_DONE), 0);
	child_need(ended, 1);
	heir_close(&first);
	child_need(ended, 1);
	child_need(tw_retry_destroy(own), 0);
}

Test(reinit_more, parents_queue_of_retries_makes_no_attempt_in_the_child)
{
	fixture_open(&first, NULL);
	check_int(tw_retry_create(first.engine, NULL, &queue), 0);
	check_int(tw_retry_submit(queue, 0, &task_kind, NULL, NULL), 0);
	fixture_advance(&first, NS_PER_MS);
	check_int(attempts, 1);
	check_int(tw_retry_submit(queue, NS_PER_S, &task_kind, NULL, &waiting), 0);
	fixture_advance(&first, NS_PER_MS);
	in_child(child_has_no_tasks);
	check_int(tw_retry_complete(pending, TW_RETRY_DONE), 0);
	check_int(tw_retry_cancel(waiting), TW_RETRY_CANCEL_DONE);
	check_int(ended, 2);
	fixture_close(&first);
	check_int(tw_retry_destroy(queue), 0);
}

/*
 * In the next tests, keyed timeouts stay with the parent, too. test_reinit_layers.c has the case in
 * which the engine's timeouts are kept.
 */
static struct tw_keyed *table;
static atomic_int key_runs, keys_ended;

static int64_t on_key(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&key_runs, 1);
	return TW_KEYED_END;
}

static void on_key_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	(void)self;
	(void)arg;
	(void)end;
	atomic_fetch_add(&keys_ended, 1);
}

static const struct tw_keyed_kind key_kind = TW_KEYED_KIND(on_key, on_key_ended);

/*
 * Creates a table in the child, which must work. Entries of the parent's table must never end in
 * the child.
 */
static void child_uses_keys(void)
{
	struct tw_keyed *own = NULL;

	child_need(tw_keyed_create(first.engine, NULL, &own), 0);
	child_need(tw_keyed_schedule(own, "a", 1, 0, &key_kind, NULL, NULL), TW_KEYED_DONE);
	heir_advance(&first, NS_PER_MS);
	child_need(key_runs, 1);
	child_need(keys_ended, 1);
	heir_close(&first);
	child_need(keys_ended, 1);
	child_need(tw_keyed_destroy(own), 0);
	child_need(tw_keyed_destroy(table), -EBUSY);
}

/* Ends the engine's timeouts in the child. No hook of the parent's keyed timeouts may be called. */
static void child_finalises_no_keys(void)
{
	heir_take(&first, TW_REINIT_FINALISE);
	child_need(keys_ended, 0);
	child_uses_keys();
}

Test(reinit_more, finalise_ends_no_keys_of_the_parent)
{
	fixture_open(&first, NULL);
	check_int(tw_keyed_create(first.engine, NULL, &table), 0);
	check_int(tw_keyed_schedule(table, "a", 1, NS_PER_S, &key_kind, NULL, NULL), TW_KEYED_DONE);
	fixture_advance(&first, NS_PER_MS);
	check_int(tw_keyed_schedule(table, "n", 1, TW_NEVER, &key_kind, NULL, NULL), TW_KEYED_DONE);
	in_child(child_finalises_no_keys);
	fixture_advance(&first, 2 * NS_PER_S);
	check_int(key_runs, 1);
	fixture_stop(&first);
	check_int(keys_ended, 2);
	check_int(tw_keyed_destroy(table), 0);
	fixture_close(&first);
}
