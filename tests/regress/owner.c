/* SPDX-License-Identifier: MIT */
/*
 * The owner of a loop got wrong results. During a hand-back, its calls on owner-only timeouts
 * failed with -EPERM, as if it were not the owner, and tw_engine_start reported success. After
 * stop, a schedule of such a timeout returned -EPERM instead of -ESHUTDOWN. If memory for slot
 * entries was short, tw_engine_next_due returned a time that was a tick too late for a timeout that
 * was already due.
 */
#include "fault.h"
#include "fixture.h"

#include <errno.h>
#include <limits.h>

#define TICK_NS INT64_C(1000000)

static const enum tw_wheel wheels[] = {TW_WHEEL_HASHED, TW_WHEEL_HIERARCHICAL};

static void loop_open(struct fixture *fixture, enum tw_wheel wheel)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	options.wheel = wheel;
	options.pending_limit = 10;
	fixture_open(fixture, &options);
	check_int(tw_engine_start(fixture->engine), 0);
}

static void on_count(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void on_cancelled(void *arg, enum tw_end end)
{
	if (end == TW_END_CANCELLED)
		atomic_fetch_add((atomic_int *)arg, 100);
}

static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_count, on_cancelled);

/* Three timeouts of the owner. When stop hands back the first, the hook makes calls on the two
 * others and keeps the results. */
static struct tw_handle handles[3];
static int outcomes[6];
static int unexpired;
static int64_t moved_remaining_ns;

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	int at = 0, others[2], count = 0;

	(void)kind;
	if (unexpired++ > 0) {
		moved_remaining_ns = remaining_ns;
		return;
	}
	for (int i = 0; i < 3; i++) {
		if (!same_handle(handles[i], handle))
			others[count++] = i;
	}
	outcomes[at++] = tw_engine_start(context);
	outcomes[at++] = tw_cancel(handles[others[0]]);
	outcomes[at++] = tw_reschedule_at(handles[others[0]], 0);
	outcomes[at++] = tw_reschedule_at(handles[others[1]], 7 * TICK_NS);
	outcomes[at++] = tw_reschedule(handles[others[1]], 5 * TICK_NS);
	outcomes[at++] = tw_schedule(context, 1, &owned, arg, NULL);
}

Test(owner, calls_in_a_hand_back_return_the_owners_results)
{
	for (int variant = 0; variant < 4; variant++) {
		static const int expected[] = {
			-ESHUTDOWN,         TW_CANCEL_DONE,     TW_RESCHEDULE_CANCELLED,
			TW_RESCHEDULE_DONE, TW_RESCHEDULE_DONE, -ESHUTDOWN};
		struct fixture fixture;
		atomic_int runs = 0;

		unexpired = 0;
		loop_open(&fixture, wheels[variant % 2]);
		for (int i = 0; i < 3; i++)
			check_int(tw_schedule(fixture.engine, 90 * TICK_NS, &owned, &runs,
					      &handles[i]),
				  0);
		if (variant >= 2)
			check_int(tw_engine_poll(fixture.engine, 0), 0);
		check_int(tw_engine_stop(fixture.engine, on_unexpired, fixture.engine, 0), 0);
		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
			check_int(outcomes[i], expected[i]);
		check_int(unexpired, 2);
		check_int(moved_remaining_ns, 5 * TICK_NS);
		check_int(runs, 100);
		check_int(stats_of(fixture.engine).cancelled, 1);
		check_int(tw_schedule(fixture.engine, 1, &owned, &runs, NULL), -ESHUTDOWN);
		check_int(tw_engine_start(fixture.engine), -ESHUTDOWN);
		fixture_close(&fixture);
	}
}

Test(owner, next_due_skips_far_timeouts_without_an_entry)
{
	static struct fault fault;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	check_int(tw_memory_reserve(1000), 0);
	for (size_t i = 0; i < 2; i++) {
		struct fixture fixture;
		atomic_int runs = 0;

		loop_open(&fixture, wheels[i]);
		fixture_advance(&fixture, 9 * TICK_NS);
		fault_arm(&fault, 1, LLONG_MAX);
		/* This timeout waits for memory. But its deadline is far away, so next_due must
		 * not report it as due. */
		check_int(tw_schedule(fixture.engine, 90 * TICK_NS, &owned, &runs, NULL), 0);
		check_true(tw_engine_next_due(fixture.engine) > fixture.now_ns);
		check_int(tw_schedule_at(fixture.engine, 0, &owned, &runs, NULL), 0);
		check_int(tw_engine_next_due(fixture.engine), 0);
		check_int(tw_engine_poll(fixture.engine, 0), 1);
		check_true(tw_engine_next_due(fixture.engine) > fixture.now_ns);
		fault_disarm(&fault);
		fixture_close(&fixture);
	}
	check_int(tw_memory_allocator_set(NULL), 0);
}
