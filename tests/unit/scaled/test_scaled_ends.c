/* SPDX-License-Identifier: MIT */
/*
 * Scaled kinds: rejected input, an engine that is full, stopped or destroyed, a lack of memory, and
 * a worker whose thread ends.
 *
 * Seen to fail with these defects: a factor that is not a number is accepted; a stop of the engine
 * does not end the kind's timeouts; a kind that is not stopped, or an engine that has kinds, can be
 * destroyed; a create that fails for lack of memory leaves a timer or a seat.
 */
#include "asleep.h"
#include "fault.h"
#include "scaled_scene.h"

#include <math.h>
#include <pthread.h>

Test(scaled_ends, wrong_arguments_are_rejected)
{
	struct tw_kind owned = TW_KIND_OWNER_ONLY(probe_kind.callback, NULL);
	static const struct tw_kind none = TW_KIND(NULL, NULL);
	struct tw_scaled *scaled = NULL;
	struct fixture fixture;
	int64_t deadline_ns = 5;
	struct tw_handle other;

	fixture_open(&fixture, NULL);
	check_int(tw_scaled_create(NULL, 0, 1, &scaled), -EINVAL);
	check_int(tw_scaled_create(fixture.engine, 0, 1, NULL), -EINVAL);
	check_int(tw_scaled_create(fixture.engine, 2, 1, &scaled), -EINVAL);
	check_int(tw_scaled_create(fixture.engine, -1, 1, &scaled), -ERANGE);
	check_int(tw_scaled_create(fixture.engine, 0, TW_NEVER, &scaled), -ERANGE);
	check_int(tw_scaled_create(fixture.engine, INT64_MIN, 1, &scaled), -ERANGE);
	check_true(scaled == NULL);
	check_int(tw_scaled_schedule(NULL, &count_kind, NULL, NULL), -EINVAL);
	check_int(tw_scaled_touch(NULL, TW_HANDLE_NONE), -EINVAL);
	check_int(tw_scaled_deadline(NULL, TW_HANDLE_NONE, &deadline_ns), -EINVAL);
	check_int(tw_scaled_pending(NULL), -EINVAL);
	check_int(tw_scaled_stop(NULL, NULL, NULL, 0), -EINVAL);
	check_int(tw_scaled_destroy(NULL), 0);
	check_int(tw_scaled_owns(NULL), 0);
	check_int(tw_scaled_owns(&count_kind), 0);
	scaled = scaled_open(fixture.engine, 0, INT64_MAX - 1);
	check_int(tw_scaled_schedule(scaled, NULL, NULL, NULL), -EINVAL);
	check_int(tw_scaled_schedule(scaled, &none, NULL, NULL), -EINVAL);
	check_int(tw_scaled_schedule(scaled, &owned, NULL, NULL), -EINVAL);
	check_int(tw_scaled_touch(scaled, TW_HANDLE_NONE), -EINVAL);
	other = must_schedule(fixture.engine, NS_PER_S, &count_kind, NULL);
	check_int(tw_scaled_touch(scaled, other), -ESTALE);
	check_int(tw_scaled_deadline(scaled, other, &deadline_ns), -ESTALE);
	check_int(tw_scaled_deadline(scaled, other, NULL), -EINVAL);
	check_int(deadline_ns, 5);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	scaled_close(scaled);
	fixture_close(&fixture);
}

Test(scaled_ends, wrong_factors_are_rejected)
{
	static const double wrong[] = {-1, -1e-300, 1.0000001, 2, INFINITY, -INFINITY};
	struct fixture fixture;
	double factor = 5;

	fixture_open(&fixture, NULL);
	check_int(tw_scaled_factor_get(fixture.engine, &factor), 0);
	check_true(factor >= 1 && factor <= 1);
	check_int(tw_scaled_factor_set(fixture.engine, 0.3), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		check_int(tw_scaled_factor_set(fixture.engine, wrong[i]), -ERANGE);
	check_int(tw_scaled_factor_set(fixture.engine, NAN), -EINVAL);
	check_int(tw_scaled_factor_set(NULL, 1), -EINVAL);
	check_int(tw_scaled_factor_get(NULL, &factor), -EINVAL);
	check_int(tw_scaled_factor_get(fixture.engine, NULL), -EINVAL);
	check_int(tw_scaled_factor_get(fixture.engine, &factor), 0);
	check_true(factor >= 0.3 && factor <= 0.3);
	check_int(tw_scaled_factor_set(fixture.engine, -0.0), 0);
	check_int(tw_scaled_factor_get(fixture.engine, &factor), 0);
	check_true(signbit(factor) == 0 && factor <= 0);
	fixture_close(&fixture);
}

/* With the longest possible delays, no factor may cause an overflow. */
Test(scaled_ends, longest_delays_cause_no_overflow)
{
	struct tw_scaled *scaled;
	struct tw_handle handle;
	struct fixture fixture;
	struct probe probe;
	int64_t deadline_ns;

	fixture_open(&fixture, NULL);
	fixture_advance(&fixture, NS_PER_S);
	scaled = scaled_open(fixture.engine, 5 * NS_PER_S, INT64_MAX - 1);
	handle = scaled_probe(&fixture, scaled, &probe);
	for (int i = 0; i < 10; i++) {
		factor_set(&fixture, i % 2 == 0 ? 0.999999 : 1);
		fixture_advance(&fixture, NS_PER_S);
		check_int(tw_scaled_deadline(scaled, handle, &deadline_ns), 0);
		check_at_least(deadline_ns, 6 * NS_PER_S);
	}
	check_int(probe.runs, 0);
	scaled_close(scaled);
	check_int(probe.end, TW_END_UNEXPIRED);
	fixture_close(&fixture);
}

/*
 * With factor 0, a timeout with an endless delay must be due after its least delay. In an earlier
 * version such a timeout had no deadline, and the worker took one turn after another.
 */
Test(scaled_ends, factor_0_leaves_the_least_of_delays_without_end)
{
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	fixture_advance(&fixture, NS_PER_S);
	scaled = scaled_open(fixture.engine, 5 * NS_PER_S, INT64_MAX - 1);
	(void)scaled_probe(&fixture, scaled, &probe);
	factor_set(&fixture, 0);
	fixture_advance(&fixture, 4 * NS_PER_S);
	check_int(probe.runs, 0);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(probe.runs, 1);
	scaled_close(scaled);
	fixture_close(&fixture);
}

/*
 * If the sum of time and delay overflows, the worker must not take one turn after another either.
 */
Test(scaled_ends, delays_beyond_the_end_of_time_need_no_turns)
{
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	fixture_advance(&fixture, INT64_MAX / 4 * 3);
	scaled = scaled_open(fixture.engine, 5 * NS_PER_S, INT64_MAX - 1);
	(void)scaled_probe(&fixture, scaled, &probe);
	factor_set(&fixture, 0);
	fixture_advance(&fixture, NS_PER_S);
	check_int(probe.runs, 0);
	scaled_close(scaled);
	check_int(probe.end, TW_END_UNEXPIRED);
	fixture_close(&fixture);
}

Test(scaled_ends, stop_of_a_kind_hands_back)
{
	struct back_log back = {.count = 0};
	struct tw_scaled *scaled;
	struct tw_handle handle;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, NS_PER_S, 3 * NS_PER_S);
	handle = scaled_probe(&fixture, scaled, &probe);
	fixture_advance(&fixture, NS_PER_S);
	check_int(tw_scaled_destroy(scaled), -EBUSY);
	check_int(tw_scaled_stop(scaled, back_log_hook, &back, PATIENCE_NS), 0);
	check_int(back.count, 1);
	check_true(back.arg == &probe && back.kind == &probe_final_kind);
	check_int(back.remaining_ns, 2 * NS_PER_S);
	check_int(probe.end, TW_END_UNEXPIRED);
	check_int(tw_timeout_state(handle), TW_STATE_CANCELLED);
	check_int(tw_scaled_schedule(scaled, &probe_kind, &probe, NULL), -ESHUTDOWN);
	check_int(tw_scaled_touch(scaled, handle), TW_RESCHEDULE_CANCELLED);
	check_int(tw_scaled_stop(scaled, NULL, NULL, 0), 0);
	/* The engine must still work. */
	factor_set(&fixture, 0.5);
	(void)probe_schedule(&fixture, &probe, NS_PER_MS);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(tw_scaled_destroy(scaled), 0);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_close(&fixture);
}

/*
 * Counts hand-backs. The hook of the engine's stop must get the kind's timeouts, and the library's
 * own two.
 */
static void ours_count(void *context, struct tw_handle handle, const struct tw_kind *kind,
		       void *arg, int64_t remaining_ns)
{
	int *count = context;

	(void)handle;
	(void)arg;
	(void)remaining_ns;
	count[tw_scaled_owns(kind)]++;
}

Test(scaled_ends, stop_of_the_engine_stops_its_kinds)
{
	for (int loop = 0; loop < 2; loop++) {
		struct tw_options options = fixture_options();
		struct tw_scaled *scaled;
		struct fixture fixture;
		struct probe probe[3];
		int count[2] = {0, 0};

		options.flags = loop ? TW_ENGINE_LOOP : 0;
		fixture_open(&fixture, &options);
		scaled = scaled_open(fixture.engine, NS_PER_S, 3 * NS_PER_S);
		for (int i = 0; i < 3; i++)
			(void)scaled_probe(&fixture, scaled, &probe[i]);
		check_int(tw_engine_stop(fixture.engine, ours_count, count, PATIENCE_NS), 0);
		check_int(count[0], 3);
		check_int(count[1], 2);
		for (int i = 0; i < 3; i++)
			check_int(probe[i].end, TW_END_UNEXPIRED);
		check_int(tw_scaled_schedule(scaled, &probe_kind, probe, NULL), -ESHUTDOWN);
		check_int(tw_scaled_factor_set(fixture.engine, 0), 0);
		check_int(tw_scaled_pending(scaled), 0);
		check_int(tw_engine_destroy(fixture.engine), -EBUSY);
		check_int(tw_scaled_destroy(scaled), 0);
		scaled = NULL;
		check_int(tw_scaled_create(fixture.engine, 0, 1, &scaled), -ESHUTDOWN);
		check_true(scaled == NULL);
		fixture_destroy(&fixture);
	}
}

Test(scaled_ends, full_engine_rejects_kinds_and_timeouts)
{
	struct tw_options options = fixture_options();
	struct tw_scaled *scaled = NULL, *other = NULL;
	struct tw_handle handle;
	struct fixture fixture;
	atomic_int runs = 0;

	options.pending_limit = 3;
	fixture_open(&fixture, &options);
	scaled = scaled_open(fixture.engine, 0, NS_PER_S);
	/* One place is left, but a kind needs two. */
	check_int(tw_scaled_create(fixture.engine, 0, 1, &other), -EAGAIN);
	check_int(tw_engine_pending(fixture.engine), 2);
	for (int i = 0; i < 3; i++)
		handle = scaled_schedule(scaled, &count_kind, &runs);
	check_int(tw_scaled_schedule(scaled, &count_kind, &runs, NULL), -EAGAIN);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	(void)scaled_schedule(scaled, &count_kind, &runs);
	factor_set(&fixture, 0);
	fixture_flush(&fixture);
	check_int(runs, 3);
	scaled_close(scaled);
	fixture_close(&fixture);
}

/* Returns the live bytes without slabs. The time at which a slab is allocated depends on how soon
 * the worker gives blocks back. */
static long long live_bytes(const struct fault *fault)
{
	return fault->live_bytes - (long long)tw_memory_slab_bytes();
}

Test(scaled_ends, no_memory_to_create)
{
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;
	struct fault fault;
	long long live;
	int error = -1;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	fixture_open(&fixture, NULL);
	scaled_close(scaled_open(fixture.engine, 0, 1));
	live = live_bytes(&fault);
	for (long long k = 1; error != 0; k++) {
		scaled = NULL;
		fault_arm(&fault, k, 1);
		error = tw_scaled_create(fixture.engine, 0, NS_PER_S, &scaled);
		fault_disarm(&fault);
		check_true(error == 0 || (error == -ENOMEM && scaled == NULL));
		if (error != 0) {
			fixture_flush(&fixture);
			check_int(live_bytes(&fault), live);
			check_int(tw_engine_pending(fixture.engine), 0);
		}
		check_at_most(k, 20);
	}
	/* From here on, only a schedule needs memory. */
	(void)scaled_probe(&fixture, scaled, &probe);
	fixture_advance(&fixture, NS_PER_MS);
	fault_arm(&fault, 1, 1000000);
	factor_set(&fixture, 0);
	fixture_advance(&fixture, NS_PER_MS);
	fault_disarm(&fault);
	check_int(probe.runs, 1);
	scaled_close(scaled);
	check_int(fault.bad_releases, 0);
	fixture_close(&fixture);
}

/* Creates more kinds than there are seats, again and again. The memory of seats must be used
 * again. */
Test(scaled_ends, closed_kinds_give_back_the_memory_of_their_seats)
{
	enum { KINDS = 5 };
	struct tw_scaled *scaled[KINDS];
	struct fixture fixture;
	struct fault fault;
	long long live = 0;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	fixture_open(&fixture, NULL);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < KINDS; i++)
			scaled[i] = scaled_open(fixture.engine, 0, NS_PER_S);
		for (int i = 0; i < KINDS; i++)
			scaled_close(scaled[(i * 2) % KINDS]);
		fixture_flush(&fixture);
		if (round <= 9)
			live = live_bytes(&fault);
		check_int(live_bytes(&fault), live);
	}
	fixture_close(&fixture);
}

static void on_exit_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	pthread_exit(NULL);
}

Test(scaled_ends, dead_worker_hands_back_scaled_timeouts)
{
	static const struct tw_kind last = TW_KIND(on_exit_thread, NULL);
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, NS_PER_MS, NS_PER_S);
	(void)scaled_schedule(scaled, &last, NULL);
	fixture_advance(&fixture, NS_PER_MS / 2);
	(void)scaled_probe(&fixture, scaled, &probe);
	check_int(tw_clock_set(fixture.clock, NS_PER_S + NS_PER_MS), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_FAILED));
	check_int(tw_scaled_schedule(scaled, &probe_kind, &probe, NULL), -ESHUTDOWN);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(probe.runs, 0);
	check_int(probe.end, TW_END_UNEXPIRED);
	check_int(tw_scaled_destroy(scaled), 0);
	fixture_destroy(&fixture);
}
