/* SPDX-License-Identifier: MIT */
/*
 * tw_cancel_many must cancel each handle as a single call would, in any state of its timeout. The
 * tests include duplicates, several engines, and finalisers that call the library.
 *
 * Seen to fail with these defects:
 * - timeouts of a second engine are counted in the first engine's statistics, and pushed to the
 *   first engine;
 * - finalisers run only at the end of the section;
 * - the batch has no section;
 * - timeouts that are cancelled in the wheel are not pushed, or are pushed although stop sweeps
 *   them;
 * - a node is not given back.
 */
#include "engine/engine.h"
#include "probe.h"
#include "ringless.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	FEW = 8,
	MANY = 5000,
};

#define UNTOUCHED 12345

static atomic_int runs;

static struct tw_handle far_schedule(struct tw_engine *engine)
{
	return must_schedule(engine, NS_PER_S, &count_kind, &runs);
}

static void outcomes_check(const int *outcomes, size_t count, int expected)
{
	for (size_t i = 0; i < count; i++)
		check_int(outcomes[i], expected);
}

static void *array_make(size_t count, size_t bytes)
{
	void *array = calloc(count, bytes);

	check_true(array != NULL);
	return array;
}

/*
 * Cancels many timeouts by a batch. The first `flushed` of them are in the wheel, the others in
 * ingress.
 */
static void many_check(bool ringless, size_t flushed)
{
	struct fixture fixture;
	struct tw_handle *handles = array_make(MANY, sizeof *handles);
	int *outcomes = array_make(MANY, sizeof *outcomes);
	struct tw_stats stats;

	ringless_set(ringless);
	fixture_open(&fixture, NULL);
	ringless_set(false);
	for (size_t i = 0; i < MANY; i++) {
		handles[i] = far_schedule(fixture.engine);
		if (i + 1 == flushed)
			fixture_flush(&fixture);
	}
	check_int(tw_cancel_many(handles, MANY, outcomes), MANY);
	outcomes_check(outcomes, MANY, TW_CANCEL_DONE);
	stats = stats_of(fixture.engine);
	check_int(stats.cancelled, MANY);
	check_int(stats.pending, 0);
	check_int(tw_cancel_many(handles, MANY, outcomes), 0);
	for (size_t i = 0; i < MANY; i++)
		check_true(outcomes[i] == TW_CANCEL_CANCELLED || outcomes[i] == TW_CANCEL_STALE);
	fixture_advance(&fixture, 2 * NS_PER_S);
	fixture_close(&fixture);
	free(handles);
	free(outcomes);
}

Test(batch_cancel, many_are_cancelled_in_the_wheel_and_on_their_way)
{
	runs = 0;
	many_check(false, 0);
	many_check(false, MANY / 2);
	many_check(false, MANY);
	many_check(true, 0);
	many_check(true, MANY / 2);
	check_int(runs, 0);
}

/*
 * When the worker has reclaimed the cancelled timeouts, their memory must be used again. All rounds
 * together use more blocks than a slab has, so the test needs a second slab if the memory is not
 * used again.
 */
Test(batch_cancel, memory_cancelled_out_of_the_wheel_serves_again)
{
	struct fixture fixture;
	struct tw_handle *handles = array_make(MANY, sizeof *handles);
	struct tw_item *items = array_make(MANY, sizeof *items);
	uint64_t bytes = 0;

	fixture_open(&fixture, NULL);
	for (size_t i = 0; i < MANY; i++)
		items[i] = (struct tw_item){NS_PER_S, &count_kind, &runs};
	for (int round = 0; round < 10; round++) {
		check_int(tw_schedule_many(fixture.engine, items, MANY, handles, NULL), MANY);
		fixture_flush(&fixture);
		check_int(tw_cancel_many(handles, MANY, NULL), MANY);
		fixture_flush(&fixture);
		if (round == 0)
			bytes = tw_memory_slab_bytes();
	}
	check_int(tw_memory_slab_bytes(), bytes);
	fixture_close(&fixture);
	free(handles);
	free(items);
}

/* One handle for each state that a timeout can be in when the batch cancels it. */
enum { RING, WHEELED, EXPIRED, RUNNING, CANCELLED, ZEROS, OTHER, CHAIN, MOVED, KINDS };

static const int kind_outcomes[KINDS] = {
	[RING] = TW_CANCEL_DONE,           [WHEELED] = TW_CANCEL_DONE,
	[EXPIRED] = TW_CANCEL_EXPIRED,     [RUNNING] = TW_CANCEL_RUNNING,
	[CANCELLED] = TW_CANCEL_CANCELLED, [ZEROS] = -EINVAL,
	[OTHER] = TW_CANCEL_DONE,          [CHAIN] = TW_CANCEL_DONE,
	[MOVED] = TW_CANCEL_DONE,
};

static void kinds_make(struct fixture *fixture, struct fixture *other, struct gate *gate,
		       struct tw_handle *handles)
{
	static const struct tw_period second = TW_PERIOD_RATE(NS_PER_S);

	handles[EXPIRED] = must_schedule(fixture->engine, 1, &count_kind, &runs);
	fixture_advance(fixture, NS_PER_MS);
	handles[WHEELED] = far_schedule(fixture->engine);
	handles[MOVED] = far_schedule(fixture->engine);
	check_int(
		tw_schedule_periodic(fixture->engine, &second, &count_kind, &runs, &handles[CHAIN]),
		0);
	fixture_flush(fixture);
	handles[RUNNING] = gate_hold(fixture, gate);
	handles[RING] = far_schedule(fixture->engine);
	handles[OTHER] = far_schedule(other->engine);
	handles[CANCELLED] = far_schedule(fixture->engine);
	check_int(tw_cancel(handles[CANCELLED]), TW_CANCEL_DONE);
	/* The worker is held in a callback, so the new deadline stays in a queue. */
	check_int(tw_reschedule(handles[MOVED], NS_PER_S / 2), TW_RESCHEDULE_DONE);
	handles[ZEROS] = (struct tw_handle){0};
}

Test(batch_cancel, each_kind_of_handle_has_its_outcome)
{
	struct fixture fixture, other;
	struct gate gate;
	struct tw_handle handles[2 * KINDS];
	int outcomes[2 * KINDS];

	runs = 0;
	fixture_open(&fixture, NULL);
	fixture_open(&other, NULL);
	kinds_make(&fixture, &other, &gate, handles);
	/* Each handle is in the batch twice. */
	memcpy(handles + KINDS, handles, KINDS * sizeof *handles);
	check_int(tw_cancel_many(handles, (size_t)2 * KINDS, outcomes), 5);
	for (int i = 0; i < KINDS; i++) {
		bool done = kind_outcomes[i] == TW_CANCEL_DONE;

		check_int(outcomes[i], kind_outcomes[i]);
		check_int(outcomes[KINDS + i], done ? TW_CANCEL_CANCELLED : kind_outcomes[i]);
	}
	gate_open(&gate);
	fixture_advance(&fixture, 10 * NS_PER_S);
	fixture_advance(&other, 10 * NS_PER_S);
	check_int(runs, 1);
	fixture_close(&fixture);
	fixture_close(&other);
}

Test(batch_cancel, each_engine_counts_its_own_cancels)
{
	struct fixture fixture[3];
	struct tw_handle handles[300];

	runs = 0;
	for (int i = 0; i < 3; i++)
		fixture_open(&fixture[i], NULL);
	for (int i = 0; i < 300; i++)
		handles[i] = far_schedule(fixture[i % 3].engine);
	for (int i = 0; i < 3; i += 2)
		fixture_flush(&fixture[i]);
	check_int(tw_cancel_many(handles, 300, NULL), 300);
	for (int i = 0; i < 3; i++) {
		check_int(stats_of(fixture[i].engine).cancelled, 100);
		fixture_advance(&fixture[i], 2 * NS_PER_S);
		fixture_close(&fixture[i]);
	}
	check_int(runs, 0);
}

Test(batch_cancel, wrong_arguments_reject_the_whole_batch)
{
	struct fixture fixture;
	struct tw_handle handle;
	int outcome = UNTOUCHED;

	fixture_open(&fixture, NULL);
	handle = far_schedule(fixture.engine);
	check_int(tw_cancel_many(NULL, 1, &outcome), -EINVAL);
	check_int(tw_cancel_many(NULL, SIZE_MAX, &outcome), -EINVAL);
	check_int(tw_cancel_many(&handle, 0, &outcome), -EINVAL);
	check_int(tw_cancel_many(&handle, (size_t)TW_BATCH_MAX + 1, &outcome), -ERANGE);
	check_int(tw_cancel_many(&handle, SIZE_MAX, &outcome), -ERANGE);
	check_int(outcome, UNTOUCHED);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	check_int(tw_cancel_many(&handle, 1, NULL), 1);
	fixture_close(&fixture);
}

Test(batch_cancel, after_stop_and_destroy)
{
	struct fixture fixture;
	struct tw_handle handles[FEW];
	int outcomes[FEW];

	fixture_open(&fixture, NULL);
	for (int i = 0; i < FEW; i++)
		handles[i] = far_schedule(fixture.engine);
	fixture_stop(&fixture);
	check_int(tw_cancel_many(handles, FEW, outcomes), 0);
	outcomes_check(outcomes, FEW, TW_CANCEL_CANCELLED);
	fixture_close(&fixture);
	check_int(tw_cancel_many(handles, FEW, outcomes), 0);
	outcomes_check(outcomes, FEW, TW_CANCEL_CANCELLED);
}

/*
 * In the next test, another thread cancels while stop hands timeouts back. Only stop's sweep may
 * give the nodes of the cancelled timeouts back.
 */
static struct {
	struct tw_handle handle[FEW];
	int outcome[FEW];
	int cancelled;
	int backs;
} swept;

static void *sweep_cancel(void *argument)
{
	swept.cancelled = tw_cancel_many(swept.handle, FEW, swept.outcome);
	return argument;
}

static void on_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		    int64_t remaining_ns)
{
	pthread_t thread;

	(void)context;
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	if (swept.backs++ == 0 && pthread_create(&thread, NULL, sweep_cancel, NULL) == 0)
		(void)pthread_join(thread, NULL);
}

Test(batch_cancel, cancels_during_the_hand_back_free_once)
{
	struct fixture fixture;

	memset(&swept, 0, sizeof swept);
	fixture_open(&fixture, NULL);
	for (int i = 0; i < FEW; i++)
		swept.handle[i] = far_schedule(fixture.engine);
	fixture_flush(&fixture);
	check_int(tw_engine_stop(fixture.engine, on_back, NULL, PATIENCE_NS), 0);
	check_int(swept.backs, 1);
	check_int(swept.cancelled, FEW - 1);
	/* The cancelled nodes must not be in a queue as well, because they would be given back
	 * twice. */
	check_int(twi_load_relaxed(&fixture.engine->worker.reclaimed_count), FEW - 1);
	fixture_destroy(&fixture);
}

enum act { JUST_LOOK, SCHEDULE_AGAIN, CANCEL_THE_NEXT, DETACH };

/* The job of a batch's finalisers, and what they record. */
static struct {
	struct tw_engine *engine;
	struct tw_handle *handles;
	int order[FEW];
	int count;
	int inner; /* how many calls of the finalisers succeeded */
	enum act act;
	bool held; /* whether the worker is held, so that nothing gets into the wheel */
	struct gate gate;
} seen;

static void on_final_run(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&runs, 1);
}

static void on_final(void *arg, enum tw_end end)
{
	int number = (int)(intptr_t)arg;

	if (end != TW_END_CANCELLED)
		return;
	seen.order[seen.count++] = number;
	if (seen.act == SCHEDULE_AGAIN)
		seen.inner += tw_schedule(seen.engine, NS_PER_S, &count_kind, &runs, NULL) == 0;
	else if (seen.act == CANCEL_THE_NEXT && number + 1 < FEW)
		seen.inner += tw_cancel(seen.handles[number + 1]) == TW_CANCEL_DONE;
	else if (seen.act == DETACH)
		seen.inner += tw_thread_detach() == 0;
}

static const struct tw_kind final_kind = TW_KIND(on_final_run, on_final);

static void finalisers_begin(struct fixture *fixture, struct tw_handle *handles, enum act act,
			     bool flushed)
{
	memset(&seen, 0, sizeof seen);
	runs = 0;
	fixture_open(fixture, NULL);
	seen.held = !flushed;
	if (seen.held)
		gate_hold(fixture, &seen.gate);
	for (int i = 0; i < FEW; i++)
		handles[i] =
			must_schedule(fixture->engine, NS_PER_S, &final_kind, (void *)(intptr_t)i);
	if (flushed)
		fixture_flush(fixture);
	seen.engine = fixture->engine;
	seen.handles = handles;
	seen.act = act;
}

static void worker_let_go(void)
{
	if (seen.held)
		gate_open(&seen.gate);
}

static void finalisers_check(bool flushed)
{
	struct fixture fixture;
	struct tw_handle handles[FEW];
	int outcomes[FEW];

	finalisers_begin(&fixture, handles, JUST_LOOK, flushed);
	check_int(tw_cancel_many(handles, FEW, outcomes), FEW);
	outcomes_check(outcomes, FEW, TW_CANCEL_DONE);
	check_int(seen.count, FEW);
	for (int i = 0; i < FEW; i++)
		check_int(seen.order[i], i);
	worker_let_go();
	fixture_close(&fixture);
	check_int(seen.count, FEW);
	check_int(runs, 0);
}

Test(batch_cancel, finalisers_run_in_the_order_of_the_array)
{
	finalisers_check(false);
	finalisers_check(true);
}

/*
 * The finaliser's new timeout uses the block of the cancelled timeout at once. So the second handle
 * of each pair is stale, and must not cancel the new timeout.
 */
Test(batch_cancel, second_handle_is_stale_if_a_finaliser_schedules)
{
	struct fixture fixture;
	struct tw_handle handles[FEW], pairs[2 * FEW];
	int outcomes[2 * FEW];

	finalisers_begin(&fixture, handles, SCHEDULE_AGAIN, false);
	for (int i = 0; i < 2 * FEW; i++)
		pairs[i] = handles[i / 2];
	check_int(tw_cancel_many(pairs, (size_t)2 * FEW, outcomes), FEW);
	for (int i = 0; i < FEW; i++) {
		check_int(outcomes[2 * i], TW_CANCEL_DONE);
		check_int(outcomes[2 * i + 1], TW_CANCEL_STALE);
	}
	check_int(seen.inner, FEW);
	check_int(tw_engine_pending(fixture.engine), FEW);
	worker_let_go();
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, FEW);
	fixture_close(&fixture);
}

Test(batch_cancel, finaliser_may_cancel_the_next_handle)
{
	struct fixture fixture;
	struct tw_handle handles[FEW];
	int outcomes[FEW];

	finalisers_begin(&fixture, handles, CANCEL_THE_NEXT, true);
	check_int(tw_cancel_many(handles, FEW, outcomes), 1);
	check_int(outcomes[0], TW_CANCEL_DONE);
	outcomes_check(outcomes + 1, FEW - 1, TW_CANCEL_CANCELLED);
	check_int(seen.inner, FEW - 1);
	check_int(seen.count, FEW);
	fixture_close(&fixture);
}

/* After a finaliser detaches the thread, the batch must not use values that it read from the
 * thread before. */
Test(batch_cancel, batch_continues_after_a_finaliser_detaches)
{
	struct fixture fixture;
	struct tw_handle handles[FEW];

	finalisers_begin(&fixture, handles, DETACH, true);
	check_int(tw_cancel_many(handles, FEW, NULL), FEW);
	check_int(seen.inner, FEW);
	check_int(stats_of(fixture.engine).cancelled, FEW);
	fixture_close(&fixture);
}

/*
 * Ends the thread. This is the finaliser of the second timeout, so the first timeout is already
 * cancelled. The third must stay pending.
 */
static void on_end_thread(void *arg, enum tw_end end)
{
	(void)arg;
	(void)end;
	pthread_exit(NULL);
}

static void *cancel_and_end(void *argument)
{
	(void)tw_cancel_many(argument, 3, NULL);
	return argument;
}

Test(batch_cancel, finaliser_that_ends_its_thread_leaves_later_handles)
{
	static const struct tw_kind ending = TW_KIND(on_final_run, on_end_thread);
	struct fixture fixture;
	struct tw_handle handles[3];
	pthread_t thread;
	void *result;

	runs = 0;
	fixture_open(&fixture, NULL);
	handles[0] = far_schedule(fixture.engine);
	handles[1] = must_schedule(fixture.engine, NS_PER_S, &ending, NULL);
	handles[2] = far_schedule(fixture.engine);
	check_int(pthread_create(&thread, NULL, cancel_and_end, handles), 0);
	check_int(pthread_join(thread, &result), 0);
	check_true(result == NULL);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, 1);
	fixture_close(&fixture);
}
