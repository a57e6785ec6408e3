/* SPDX-License-Identifier: MIT */
/*
 * The rings of lanes: full rings, lanes without a ring, and stale entries (entries whose block
 * serves a later timeout).
 *
 * Seen to fail with these defects:
 * - a full ring reports free entries, or a ring that was full once never has free entries again;
 * - the first push to a lane makes no ring;
 * - the canceller of a timeout in a link queue gives its node back, or the timeout is reported as
 *   INIT;
 * - the canceller of a timeout in a ring leaves the node to the worker, or does not keep it warm;
 * - node_transfer() transfers by a stale entry although the node belongs to another engine (both of
 *   its checks left out, because either is enough);
 * - it does so although the node was in INIT only for a schedule that was then rejected;
 * - entry_repeated() reads beyond the batch;
 * - twi_worker_finish() does not empty the rings.
 */
#include "engine/engine.h"
#include "probe.h"
#include "ringless.h"
#include "rings.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum {
	OVERFLOW = 1000,
	MANY = 300,
	FAR_MS = 100,
};

static struct twi_worker *worker_of(const struct fixture *fixture)
{
	return &fixture->engine->worker;
}

/* Returns the lane of the calling thread. */
static struct twi_lane *lane_of(const struct fixture *fixture)
{
	return &worker_of(fixture)->near.lane[twi_thread()->lane];
}

static uint64_t ring_length(const struct twi_lane *lane)
{
	return twi_ring_pushed(&lane->ring) - twi_ring_taken(&lane->ring_out);
}

static bool linked(const struct twi_mpsc_in *in, const struct twi_mpsc_out *out)
{
	return twi_mpsc_last_sc(in) != &out->stub;
}

static void thread_run(void *(*body)(void *), void *argument)
{
	pthread_t thread;

	check_int(pthread_create(&thread, NULL, body, argument), 0);
	check_int(pthread_join(thread, NULL), 0);
}

static struct tw_handle *handles_make(size_t count)
{
	struct tw_handle *handles = calloc(count, sizeof *handles);

	check_true(handles != NULL);
	return handles;
}

/* Schedules `count` timeouts, with seven different deadlines in turn. */
static void schedule_many(const struct fixture *fixture, size_t count, atomic_int *fired,
			  struct tw_handle *handles)
{
	for (size_t i = 0; i < count; i++)
		handles[i] = must_schedule(fixture->engine,
					   FAR_MS * NS_PER_MS + (int64_t)(i % 7) * NS_PER_MS,
					   &count_kind, fired);
}

/* Cancels every `step`th timeout. Returns how many it cancelled. */
static int cancel_some(const struct tw_handle *handles, size_t count, size_t step)
{
	int cancelled = 0;

	for (size_t i = 0; i < count; i += step) {
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
		cancelled++;
	}
	return cancelled;
}

Test(ring, what_finds_no_room_goes_by_the_link_queue)
{
	/*
	 * The number is a multiple of three, so that the last two timeouts stay if every third is
	 * cancelled.
	 */
	size_t count = (TWI_RING_ENTRIES + OVERFLOW) / 3 * 3;
	struct tw_handle *handles = handles_make(count);
	atomic_int fired = 0;
	struct fixture fixture;
	struct gate gate;
	int cancelled;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	schedule_many(&fixture, count, &fired, handles);
	check_int(ring_length(lane_of(&fixture)), TWI_RING_ENTRIES);
	check_true(linked(&lane_of(&fixture)->ingress, &lane_of(&fixture)->ingress_out));
	/* Cancels timeouts in the ring and in the link queue, including the last timeout of the
	 * queue. */
	cancelled = cancel_some(handles, count, 3);
	check_int(tw_cancel(handles[count - 1]), TW_CANCEL_DONE);
	check_int(tw_timeout_state(handles[count - 2]), TW_STATE_INIT);
	/* A node that was cancelled in the queue must leave the queue before it can serve again. */
	schedule_many(&fixture, OVERFLOW, &fired, handles);
	gate_open(&gate);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), (int)count + OVERFLOW - cancelled - 1);
	check_int(ring_length(lane_of(&fixture)), 0);
	fixture_close(&fixture);
	free(handles);
}

Test(ring, what_is_cancelled_in_the_wheel_finds_no_room)
{
	struct tw_handle *filling = handles_make(TWI_RING_ENTRIES);
	struct tw_handle handles[MANY];
	atomic_int fired = 0;
	struct fixture fixture;
	struct tw_stats stats;
	struct gate gate;

	fixture_open(&fixture, NULL);
	schedule_many(&fixture, MANY, &fired, handles);
	fixture_flush(&fixture);
	gate_hold(&fixture, &gate);
	schedule_many(&fixture, TWI_RING_ENTRIES, &fired, filling);
	check_int(cancel_some(handles, MANY, 2), MANY / 2);
	/*
	 * A timeout in the wheel that is rescheduled to earlier also goes through the cancel queue.
	 */
	check_int(tw_reschedule(handles[1], 3 * NS_PER_MS), TW_RESCHEDULE_DONE);
	check_true(linked(&lane_of(&fixture)->cancelled, &lane_of(&fixture)->cancelled_out));
	gate_open(&gate);
	fixture_advance(&fixture, 8 * NS_PER_MS);
	check_int(atomic_load(&fired), 1);
	stats = stats_of(fixture.engine);
	check_int(stats.cancelled, MANY / 2);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), TWI_RING_ENTRIES + MANY / 2);
	fixture_close(&fixture);
	free(filling);
}

/* More timeouts pass through the ring than it has entries, so each entry is used again. */
Test(ring, places_serve_again)
{
	struct tw_handle *handles = handles_make(TWI_RING_ENTRIES);
	atomic_int fired = 0;
	struct fixture fixture;
	struct tw_options options = fixture_options();

	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	for (int round = 0; round < 5; round++) {
		schedule_many(&fixture, TWI_RING_ENTRIES / 3 + 1, &fired, handles);
		fixture_flush(&fixture);
	}
	check_at_least(twi_ring_pushed(&lane_of(&fixture)->ring), TWI_RING_ENTRIES + 1);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), 5 * (TWI_RING_ENTRIES / 3 + 1));
	fixture_close(&fixture);
	free(handles);
}

Test(ring, without_memory_for_it_all_goes_by_the_link_queues)
{
	struct tw_handle handles[MANY];
	atomic_int fired = 0;
	struct fixture fixture;
	struct gate gate;

	ringless_set(true);
	fixture_open(&fixture, NULL);
	ringless_set(false);
	schedule_many(&fixture, MANY, &fired, handles);
	check_int(cancel_some(handles, MANY / 2, 5), MANY / 10);
	fixture_flush(&fixture);
	check_true(lane_of(&fixture)->ring.entry == NULL);
	gate_hold(&fixture, &gate);
	/* These timeouts are in the wheel. */
	check_int(cancel_some(&handles[MANY / 2], MANY / 2, 5), MANY / 10);
	check_int(tw_reschedule(handles[1], 3 * NS_PER_MS), TW_RESCHEDULE_DONE);
	gate_open(&gate);
	fixture_advance(&fixture, 8 * NS_PER_MS);
	check_int(atomic_load(&fired), 1);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), MANY - 2 * (MANY / 10));
	fixture_close(&fixture);
}

/* One block serves several timeouts, each with an entry in the ring. Only the last timeout may
 * be transferred, and only once. */
Test(ring, a_cancelled_one_is_free_at_once)
{
	struct tw_handle first, next, last;
	atomic_int fired = 0;
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	first = must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_int(tw_cancel(first), TW_CANCEL_DONE);
	check_int(tw_cancel(first), TW_CANCEL_CANCELLED);
	for (int i = 0; i < MANY; i++) {
		next = must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired);
		check_true(next.node == first.node);
		check_int(tw_cancel(next), TW_CANCEL_DONE);
	}
	last = must_schedule(fixture.engine, 20 * NS_PER_MS, &count_kind, &fired);
	check_true(last.node == first.node);
	check_int(tw_cancel(first), TW_CANCEL_STALE);
	check_int(tw_cancel(next), TW_CANCEL_STALE);
	check_int(tw_timeout_state(last), TW_STATE_INIT);
	check_int(ring_length(lane_of(&fixture)), MANY + 2);
	gate_open(&gate);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_int(atomic_load(&fired), 0);
	fixture_advance(&fixture, 20 * NS_PER_MS);
	check_int(atomic_load(&fired), 1);
	/* Two, because the gate was transferred too. */
	check_int(stats_of(fixture.engine).transferred, 2);
	fixture_close(&fixture);
}

/* The ring has two entries of one block, for an earlier and a later timeout, and another entry
 * between them. The first entry already transfers the later timeout. */
Test(ring, an_old_entry_brings_the_next_timeout)
{
	struct tw_handle first, between, last;
	atomic_int fired = 0;
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	first = must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired);
	between = must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_int(tw_cancel(first), TW_CANCEL_DONE);
	last = must_schedule(fixture.engine, 20 * NS_PER_MS, &count_kind, &fired);
	check_true(last.node == first.node && between.node != first.node);
	gate_open(&gate);
	fixture_flush(&fixture);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_int(atomic_load(&fired), 1);
	fixture_advance(&fixture, 20 * NS_PER_MS);
	check_int(atomic_load(&fired), 2);
	check_int(stats_of(fixture.engine).transferred, 3);
	fixture_close(&fixture);
}

/* The ring's last entry is followed by an old entry of the round before, which names the same
 * block. The worker must ignore the old entry. */
Test(ring, entry_of_an_earlier_round_is_ignored)
{
	atomic_int fired = 0;
	struct tw_handle handle, last;
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	/* Makes all entries of the ring name one block. */
	for (int i = 0; i < TWI_RING_ENTRIES; i++) {
		handle = must_schedule(fixture.engine, FAR_MS * NS_PER_MS, &count_kind, &fired);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
	}
	check_int(ring_length(lane_of(&fixture)), TWI_RING_ENTRIES);
	gate_open(&gate);
	fixture_flush(&fixture);
	last = must_schedule(fixture.engine, FAR_MS * NS_PER_MS, &count_kind, &fired);
	check_true(last.node == handle.node);
	fixture_flush(&fixture);
	check_int(stats_of(fixture.engine).transferred, 2);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), 1);
	fixture_close(&fixture);
}

struct other {
	struct tw_engine *engine;
	const struct tw_handle *handles;
	size_t count;
	atomic_int *fired;
	int done;
	bool same; /* whether its schedule got the block of a cancelled timeout at once */
	uint32_t lane;
};

static void *other_cancel(void *argument)
{
	struct other *other = argument;
	struct tw_handle again = {0};

	for (size_t i = 0; i < other->count; i++)
		other->done += tw_cancel(other->handles[i]) == TW_CANCEL_DONE;
	if (tw_schedule(other->engine, FAR_MS * NS_PER_MS, &count_kind, other->fired, &again) == 0)
		other->same = again.node == other->handles[TWI_BLOCK_WARM - 1].node;
	return NULL;
}

Test(ring, another_thread_cancels_before_the_transfer)
{
	struct tw_handle handles[MANY];
	atomic_int fired = 0;
	struct other other = {.handles = handles, .count = MANY / 2, .fired = &fired};
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	schedule_many(&fixture, MANY, &fired, handles);
	other.engine = fixture.engine;
	thread_run(other_cancel, &other);
	check_int(other.done, MANY / 2);
	check_true(other.same);
	gate_open(&gate);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), MANY / 2 + 1);
	check_int(stats_of(fixture.engine).cancelled, MANY / 2);
	fixture_close(&fixture);
}

/* The other engine's worker is held, so its timeout is still in INIT when our worker finds the
 * old entry. */
Test(ring, an_old_entry_takes_nothing_of_another_engine)
{
	struct tw_handle first, next;
	atomic_int fired = 0;
	struct fixture ours, others;
	struct gate gate, other_gate;

	fixture_open(&ours, NULL);
	fixture_open(&others, NULL);
	gate_hold(&ours, &gate);
	gate_hold(&others, &other_gate);
	first = must_schedule(ours.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_int(tw_cancel(first), TW_CANCEL_DONE);
	next = must_schedule(others.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_true(next.node == first.node);
	gate_open(&gate);
	fixture_advance(&ours, 20 * NS_PER_MS);
	check_int(atomic_load(&fired), 0);
	check_int(stats_of(ours.engine).transferred, 1);
	check_int(tw_timeout_state(next), TW_STATE_INIT);
	gate_open(&other_gate);
	fixture_advance(&others, 20 * NS_PER_MS);
	check_int(atomic_load(&fired), 1);
	fixture_close(&ours);
	fixture_close(&others);
}

Test(ring, the_other_engine_outlives_the_one_with_the_old_entry)
{
	struct tw_handle first, next;
	atomic_int fired = 0;
	struct fixture ours, others;
	struct gate other_gate;
	struct tw_options options = fixture_options();

	/* No thread polls this loop, so only twi_worker_finish() reads the ring. */
	options.flags = TW_ENGINE_LOOP;
	fixture_open(&ours, &options);
	engine_use_rings(ours.engine);
	fixture_open(&others, NULL);
	gate_hold(&others, &other_gate);
	first = must_schedule(ours.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_int(tw_cancel(first), TW_CANCEL_DONE);
	next = must_schedule(others.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_true(next.node == first.node);
	fixture_stop(&ours);
	check_int(atomic_load(&ours.back.count), 0);
	fixture_close(&ours);
	gate_open(&other_gate);
	fixture_advance(&others, 20 * NS_PER_MS);
	check_int(atomic_load(&fired), 1);
	fixture_close(&others);
}

static void *other_schedule(void *argument)
{
	struct other *other = argument;

	for (size_t i = 0; i < other->count; i++)
		other->done += tw_schedule(other->engine, FAR_MS * NS_PER_MS, &count_kind,
					   other->fired, NULL) == 0;
	other->lane = twi_thread()->lane;
	return NULL;
}

Test(ring, a_lane_changes_hands_with_entries_in_its_ring)
{
	atomic_int fired = 0;
	struct other former = {.count = MANY, .fired = &fired};
	struct other latter = {.count = MANY, .fired = &fired};
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	former.engine = latter.engine = fixture.engine;
	thread_run(other_schedule, &former);
	thread_run(other_schedule, &latter);
	check_int(former.done + latter.done, 2 * MANY);
	check_int(latter.lane, former.lane);
	check_int(ring_length(&worker_of(&fixture)->near.lane[latter.lane]), 2 * MANY);
	gate_open(&gate);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), 2 * MANY);
	fixture_close(&fixture);
}

/* Consecutive entries name the same block, and a batch ends after each of them. */
Test(ring, batches_of_one_lose_no_timeout)
{
	struct tw_options options = fixture_options();
	struct tw_handle handles[MANY];
	atomic_int fired = 0;
	struct fixture fixture;
	struct gate gate;

	options.transfer_batch = 1;
	fixture_open(&fixture, &options);
	gate_hold(&fixture, &gate);
	for (int i = 0; i < MANY; i++) {
		handles[i] = must_schedule(fixture.engine, FAR_MS * NS_PER_MS, &count_kind, &fired);
		if (i % 3 != 0)
			check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
	}
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(stats_of(fixture.engine).largest_transfer, 1);
	check_int(cancel_some(handles, MANY, 6), MANY / 6);
	fixture_advance(&fixture, 2 * FAR_MS * NS_PER_MS);
	check_int(atomic_load(&fired), MANY / 3 - MANY / 6);
	fixture_close(&fixture);
}

/* No thread polls this loop, so all entries are in the ring when stop hands them back. */
Test(ring, stop_hands_back_what_is_in_a_ring)
{
	struct tw_options options = fixture_options();
	size_t count = TWI_RING_ENTRIES + OVERFLOW;
	struct tw_handle *handles = handles_make(count);
	atomic_int fired = 0;
	struct fixture fixture;
	int cancelled;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	check_int(tw_loop_exit(fixture.engine), 0);
	engine_use_rings(fixture.engine);
	schedule_many(&fixture, count, &fired, handles);
	cancelled = cancel_some(handles, count, 7);
	check_int(ring_length(lane_of(&fixture)), TWI_RING_ENTRIES);
	fixture_stop(&fixture);
	check_int(atomic_load(&fixture.back.count), (int)count - cancelled);
	check_int(atomic_load(&fired), 0);
	fixture_close(&fixture);
	free(handles);
}

/* An old entry names the block of a schedule that was rejected. The engine must not transfer
 * that block. */
Test(ring, an_old_entry_takes_nothing_that_was_rejected)
{
	struct tw_options options = fixture_options();
	struct tw_handle first, second, next;
	atomic_int fired = 0;
	struct other other = {.count = 1, .fired = &fired};
	struct fixture fixture;

	options.flags = TW_ENGINE_LOOP;
	options.pending_limit = 2;
	fixture_open(&fixture, &options);
	check_int(tw_loop_exit(fixture.engine), 0);
	engine_use_rings(fixture.engine);
	first = must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired);
	second = must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_int(tw_cancel(first), TW_CANCEL_DONE);
	check_int(tw_cancel(second), TW_CANCEL_DONE);
	other.engine = fixture.engine;
	thread_run(other_schedule, &other);
	check_int(other.done, 1);
	/*
	 * The stock gives out the block that was given back last. So `next` gets the block of
	 * `second`, and the rejected schedule gets that of `first`.
	 */
	next = must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired);
	check_true(next.node == second.node);
	check_int(tw_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &fired, NULL), -EAGAIN);
	check_int(tw_timeout_state(first), -ESTALE);
	fixture_stop(&fixture);
	check_int(atomic_load(&fixture.back.count), 2);
	fixture_close(&fixture);
}
