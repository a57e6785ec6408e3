/* SPDX-License-Identifier: MIT */
/*
 * After an executor has rejected a timeout, the timeout is pending again. The test checks this in
 * each combination of these conditions: another thread's reschedule has queued the timeout in the
 * same turn, has not, or cannot because the kind is owner-only; and a thread waits for the timeout,
 * or none does. The test reads the state word, because a wrong bit there affects only some calls.
 *
 * Seen to fail with these defects: word_again() leaves the bit WAITER set, so that the owner's call
 * returns CANCELLED for a pending timeout; twi_due_again() does not wake the waiter.
 */
#include "dispatch_scene.h"

#include "base/atomic.h"
#include "worker/worker.h"

#include <sched.h>

enum {
	OWNER_ONLY = 1,
	IS_QUEUED = 2,
	HAS_WAITER = 4,
	CASES = 8, /* not every combination: no other thread may reschedule an owner-only timeout */
};

/* What the owner does after the timeout is pending again. */
enum then { CANCELS, MOVES, LEAVES, THENS };

static struct {
	struct fixture fixture;
	int variant;
	struct tw_kind kind;
	struct probe probe;
	struct tw_handle handle;
	pthread_t waiter;
	bool waits;
	int reschedule_outcome;
	uint64_t word_in_hook;
} scene;

static uint64_t word_of(struct tw_handle handle)
{
	return twi_load_acquire(&twi_node_of_handle(handle)->word);
}

static void *wait_main(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)tw_cancel_wait(scene.handle, PATIENCE_NS);
}

static void *reschedule_main(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)tw_reschedule_at(scene.handle, 0);
}

static void *cancel_main(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)tw_cancel(scene.handle);
}

static int by_another_thread(void *(*body)(void *))
{
	pthread_t thread;
	void *outcome;

	check_int(pthread_create(&thread, NULL, body, NULL), 0);
	check_int(pthread_join(thread, &outcome), 0);
	return (int)(intptr_t)outcome;
}

static bool batch_has(const struct tw_due *due, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (same_handle(due[i].handle, scene.handle))
			return true;
	return false;
}

/*
 * Starts the waiter, and returns when it has set the bit, which it does before it sleeps. Only the
 * test runner limits the time of this loop.
 */
static void waiter_begin(void)
{
	scene.waits = pthread_create(&scene.waiter, NULL, wait_main, NULL) == 0;
	while (scene.waits && (word_of(scene.handle) & TWI_WORD_WAITER) == 0)
		(void)sched_yield();
}

/*
 * Called for each batch. The first batch has only other timeouts. Meanwhile another thread
 * reschedules the tested timeout to the past, which queues that timeout in the same turn.
 */
static void on_batch(const struct tw_due *due, size_t count)
{
	if (!batch_has(due, count)) {
		if ((scene.variant & IS_QUEUED) != 0 && scene.reschedule_outcome < 0)
			scene.reschedule_outcome = by_another_thread(reschedule_main);
		return;
	}
	if ((scene.variant & HAS_WAITER) != 0)
		waiter_begin();
	scene.word_in_hook = word_of(scene.handle);
	executor.inside = NULL;
}

static void scene_open(int variant)
{
	struct tw_options options = executor_options(TW_REJECTION_REQUEUE, 0);
	static atomic_int others;

	memset(&scene, 0, sizeof scene);
	scene.variant = variant;
	scene.reschedule_outcome = -1;
	scene.kind = probe_final_kind;
	if ((variant & OWNER_ONLY) != 0)
		scene.kind.flags = TW_KIND_FLAG_OWNER_ONLY;
	options.flags = TW_ENGINE_LOOP;
	fixture_open(&scene.fixture, &options);
	check_int(tw_engine_start(scene.fixture.engine), 0);
	/*
	 * Schedules a full batch of earlier timeouts, so that the tested one comes in a later batch
	 * of the same turn.
	 */
	for (int i = 0; i < TWI_DUE_BATCH; i++)
		must_schedule_at(scene.fixture.engine, 0, &count_kind, &others);
	probe_init(&scene.probe, scene.fixture.engine);
	scene.handle =
		must_schedule_at(scene.fixture.engine, 2 * NS_PER_MS, &scene.kind, &scene.probe);
	check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
	executor.inside = on_batch;
}

/* Polls once. The executor rejects the timeout in that turn. */
static void scene_reject(void)
{
	uint64_t expected = twi_word_to(scene.handle.generation, TWI_WORD_DUE);

	if ((scene.variant & IS_QUEUED) != 0)
		expected |= TWI_WORD_QUEUED | TWI_WORD_RESCHEDULED;
	if ((scene.variant & HAS_WAITER) != 0)
		expected |= TWI_WORD_WAITER;
	check_int(tw_clock_set(scene.fixture.clock, 4 * NS_PER_MS), 0);
	check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
	check_int(scene.word_in_hook, expected);
	check_int(scene.reschedule_outcome,
		  (scene.variant & IS_QUEUED) != 0 ? TW_RESCHEDULE_DONE : -1);
}

static bool is_owned(void)
{
	return (scene.variant & OWNER_ONLY) != 0;
}

/* Returns true if the waiter has cancelled the timeout. */
static bool waiter_ends_it(void)
{
	void *outcome;

	if (!scene.waits)
		return false;
	check_int(pthread_join(scene.waiter, &outcome), 0);
	check_int((intptr_t)outcome, is_owned() ? -EPERM : TW_CANCEL_DONE);
	return !is_owned();
}

static void check_pending_word(void)
{
	uint64_t expected = twi_word_to(scene.handle.generation,
					is_owned() ? TWI_WORD_OWNED : TWI_WORD_WHEELED);

	if ((scene.variant & IS_QUEUED) != 0)
		expected |= TWI_WORD_QUEUED | TWI_WORD_RESCHEDULED;
	check_int(word_of(scene.handle), expected);
	check_int(tw_timeout_state(scene.handle), TW_STATE_INIT);
}

/*
 * Polls at `now_ns`, and in each of the three ticks before it, because each tick offers the
 * executor only a part of the rejected timeouts.
 */
static void polls_until(int64_t now_ns)
{
	executor.accept = QUEUE;
	for (int64_t tick = 3; tick >= 0; tick--) {
		check_int(tw_clock_set(scene.fixture.clock, now_ns - tick * NS_PER_MS), 0);
		check_at_least(tw_engine_poll(scene.fixture.engine, 0), 0);
		run_all();
	}
}

static void owner_moves(void)
{
	int64_t far_ns = 50 * NS_PER_MS;

	check_int(tw_reschedule_at(scene.handle, far_ns), TW_RESCHEDULE_DONE);
	polls_until(far_ns - 1);
	check_int(tw_timeout_state(scene.handle), TW_STATE_INIT);
	check_int(scene.probe.runs, 0);
}

static void runs_once(void)
{
	polls_until(54 * NS_PER_MS);
	check_int(scene.probe.runs, 1);
	check_int(scene.probe.end, TW_END_EXPIRED);
}

static void case_run(int variant, enum then then)
{
	scene_open(variant);
	scene_reject();
	if (waiter_ends_it()) {
		check_int(scene.probe.end, TW_END_CANCELLED);
	} else {
		check_pending_word();
		if (is_owned())
			check_int(by_another_thread(cancel_main), -EPERM);
		if (then == CANCELS) {
			check_int(tw_cancel(scene.handle), TW_CANCEL_DONE);
			check_int(scene.probe.end, TW_END_CANCELLED);
		} else {
			if (then == MOVES)
				owner_moves();
			runs_once();
		}
	}
	check_int(scene.probe.finalised, 1);
	executor.accept = QUEUE;
	executor.count = 0;
	fixture_close(&scene.fixture);
	check_int(scene.probe.finalised, 1);
}

Test(requeue_table, calls_on_a_requeued_timeout_return_their_codes)
{
	for (int variant = 0; variant < CASES; variant++)
		for (int then = CANCELS; then < THENS; then++)
			if ((variant & OWNER_ONLY) == 0 || (variant & IS_QUEUED) == 0)
				case_run(variant, (enum then)then);
}
