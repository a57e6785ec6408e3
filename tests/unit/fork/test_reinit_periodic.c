/* SPDX-License-Identifier: MIT */
/*
 * Periodic timeouts that a child keeps: their grid, delay and count of runs. At the fork they are
 * pending, or the parent is in one of their runs.
 *
 * Seen to fail with these defects: a run of the parent counts for the child
 * (count_of_runs_goes_on); the grid begins at the take-over (a_run_of_the_parents_is_left_out); the
 * chain's block is given to the pool (child_keeps_many_chains); the chain's block is not given back
 * at its end (the_blocks_of_dropped_chains...).
 */
#include "heir.h"

enum {
	MANY = 500,
	/*
	 * Enough chains that their own blocks need more than a slab, even if those that are free in
	 * the last slab are used.
	 */
	DROPPED = 40000,
};

#define PERIOD_NS (10 * NS_PER_MS)

static struct fixture fixture;
static struct probe probe;
static struct tw_handle handle;
static struct gate gate;
static int parents_pid;

/* In the parent, the third run waits until the test opens the gate. */
static void on_run(struct tw_handle self, void *arg)
{
	struct probe *own = arg;

	probe_kind.callback(self, arg);
	if (atomic_load(&own->runs) == 3 && getpid() == parents_pid)
		gate_kind.callback(self, &gate);
}

static void on_end(void *arg, enum tw_end end)
{
	probe_final_kind.finaliser(arg, end);
}

static const struct tw_kind standing_kind = TW_KIND(on_run, on_end);

static void open_chain(const struct tw_period *period, const struct tw_kind *kind)
{
	parents_pid = getpid();
	fixture_open(&fixture, NULL);
	gate_init(&gate);
	probe_init(&probe, fixture.engine);
	check_int(tw_schedule_periodic(fixture.engine, period, kind, &probe, &handle), 0);
	fixture_flush(&fixture);
}

/* Moves the clock tick by tick, because runs are late if a virtual clock jumps. */
static void walk(int64_t until_ns)
{
	while (fixture.now_ns < until_ns)
		fixture_advance(&fixture, fixture.tick_ns);
}

static void heir_walk(int64_t until_ns)
{
	while (fixture.now_ns < until_ns)
		heir_advance(&fixture, fixture.tick_ns);
}

/* Does the same as walk, but the third run begins in the last tick, and waits at the gate. */
static void walk_into_the_third(void)
{
	walk(3 * PERIOD_NS);
	fixture.now_ns += fixture.tick_ns;
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_await(&gate);
}

static void close_all(void)
{
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

static void child_keeps_the_grid(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handle), TW_STATE_INIT);
	heir_walk(3 * PERIOD_NS);
	child_need(probe.runs, 2);
	heir_walk(3 * PERIOD_NS + fixture.tick_ns);
	child_need(probe.runs, 3);
	heir_walk(10 * PERIOD_NS + fixture.tick_ns);
	child_need(probe.runs, 10);
	child_need(tw_cancel(handle), TW_CANCEL_DONE);
	child_need(probe.finalised, 1);
	heir_close(&fixture);
}

Test(reinit_periodic, waiting_chain_keeps_its_grid)
{
	static const struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	open_chain(&period, &probe_final_kind);
	walk(2 * PERIOD_NS + PERIOD_NS / 2);
	check_int(probe.runs, 2);
	in_child(child_keeps_the_grid);
	check_int(probe.runs, 2);
	close_all();
}

/*
 * Takes over while the parent is in the third run. The times of the fourth and the fifth pass
 * before the take-over.
 */
static void child_leaves_out(void)
{
	fixture.now_ns = 5 * PERIOD_NS + PERIOD_NS / 2;
	child_need(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handle), TW_STATE_INIT);
	heir_walk(6 * PERIOD_NS);
	child_need(probe.runs, 3);
	heir_walk(6 * PERIOD_NS + fixture.tick_ns);
	child_need(probe.runs, 4);
	heir_walk(8 * PERIOD_NS + fixture.tick_ns);
	child_need(probe.runs, 6);
	child_need(tw_cancel(handle), TW_CANCEL_DONE);
	child_need(probe.finalised, 1);
	heir_close(&fixture);
}

Test(reinit_periodic, a_run_of_the_parents_is_left_out)
{
	static const struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	open_chain(&period, &standing_kind);
	walk_into_the_third();
	in_child(child_leaves_out);
	gate_open(&gate);
	fixture_flush(&fixture);
	close_all();
}

static void child_counts_a_delay(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	heir_walk(fixture.now_ns + PERIOD_NS);
	child_need(probe.runs, 3);
	heir_walk(fixture.now_ns + fixture.tick_ns);
	child_need(probe.runs, 4);
	child_need(tw_cancel(handle), TW_CANCEL_DONE);
	heir_close(&fixture);
}

Test(reinit_periodic, a_delay_begins_with_the_take_over)
{
	static const struct tw_period period = TW_PERIOD_DELAY(PERIOD_NS);

	open_chain(&period, &standing_kind);
	/* Each run is a tick later than the previous one. */
	walk(3 * PERIOD_NS + fixture.tick_ns * 2);
	fixture.now_ns += fixture.tick_ns;
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_await(&gate);
	in_child(child_counts_a_delay);
	gate_open(&gate);
	fixture_flush(&fixture);
	close_all();
}

/* Makes the remaining runs. Two of five have ended, so the child must make three. */
static void child_makes_the_rest(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	heir_walk(20 * PERIOD_NS);
	child_need(probe.runs, 3 + 3);
	child_need(probe.finalised, 1);
	child_need(probe.end, TW_END_EXPIRED);
	child_need(tw_timeout_state(handle), TW_STATE_EXPIRED);
	heir_close(&fixture);
}

Test(reinit_periodic, count_of_runs_goes_on)
{
	struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	period.runs = 5;
	open_chain(&period, &standing_kind);
	walk_into_the_third();
	in_child(child_makes_the_rest);
	gate_open(&gate);
	walk(20 * PERIOD_NS);
	check_int(probe.runs, 5);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

static void child_finds_it_ended(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), 0);
	child_need(tw_timeout_state(handle), TW_STATE_CANCELLED);
	child_need(tw_cancel_wait(handle, TW_NEVER), TW_CANCEL_CANCELLED);
	child_need(probe.finalised, 0);
	heir_close(&fixture);
}

Test(reinit_periodic, cancelled_in_its_run)
{
	static const struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	open_chain(&period, &standing_kind);
	walk_into_the_third();
	check_int(tw_cancel(handle), TW_CANCEL_STOPPED);
	in_child(child_finds_it_ended);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

/* Checks that the grid continues from the new time after a reschedule. */
static void child_goes_on_from_there(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	heir_walk(2 * PERIOD_NS + 3 * NS_PER_MS);
	child_need(probe.runs, 1);
	heir_walk(2 * PERIOD_NS + 4 * NS_PER_MS);
	child_need(probe.runs, 2);
	heir_walk(3 * PERIOD_NS + 3 * NS_PER_MS);
	child_need(probe.runs, 2);
	heir_walk(3 * PERIOD_NS + 4 * NS_PER_MS);
	child_need(probe.runs, 3);
	child_need(tw_cancel(handle), TW_CANCEL_DONE);
	heir_close(&fixture);
}

Test(reinit_periodic, rescheduled_chain_goes_on_from_the_new_time)
{
	static const struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	open_chain(&period, &probe_final_kind);
	walk(PERIOD_NS + PERIOD_NS / 2);
	check_int(tw_reschedule_at(handle, 2 * PERIOD_NS + 3 * NS_PER_MS), TW_RESCHEDULE_DONE);
	in_child(child_goes_on_from_there);
	close_all();
}

/* Drops the timeouts in the child, which runs their finalisers. */
static void child_drops(void)
{
	uint64_t before = tw_memory_slab_bytes();

	heir_take(&fixture, TW_REINIT_FINALISE);
	child_need(tw_timeout_state(handle), -ESTALE);
	child_need(probe.finalised, 1);
	child_need(probe.end, TW_END_UNEXPIRED);
	heir_walk(9 * PERIOD_NS);
	child_need(probe.runs, 2);
	child_need(tw_memory_slab_bytes(), before);
	heir_close(&fixture);
}

Test(reinit_periodic, dropped_chain_is_finalised_and_runs_no_more)
{
	static const struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	open_chain(&period, &probe_final_kind);
	walk(2 * PERIOD_NS + PERIOD_NS / 2);
	in_child(child_drops);
	close_all();
}

/*
 * In the next test, each chain has a block in addition to its node. No other timeout may get that
 * block.
 */
static struct probe probes[MANY];
static struct tw_handle handles[MANY];

static void child_has_all_of_them(void)
{
	atomic_int others = 0;

	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_pending(fixture.engine), MANY + 1);
	/*
	 * Schedules so many timeouts that each free block is used once. None of them may be a kept
	 * chain's block.
	 */
	for (int i = 0; i < 40000; i++)
		child_need(tw_schedule(fixture.engine, 1, &count_kind, &others, NULL), 0);
	heir_walk(3 * PERIOD_NS);
	child_need(others, 40000);
	for (int i = 0; i < MANY; i++) {
		struct tw_timeout seen = {.size = sizeof seen};

		child_need(probes[i].runs, 2);
		child_need(tw_timeout_get(handles[i], &seen), 0);
		child_need(seen.arg == &probes[i], true);
		child_need(tw_cancel(handles[i]), TW_CANCEL_DONE);
		child_need(probes[i].finalised, 1);
	}
	heir_close(&fixture);
}

Test(reinit_periodic, child_keeps_many_chains)
{
	static const struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	open_chain(&period, &probe_final_kind);
	for (int i = 0; i < MANY; i++) {
		probe_init(&probes[i], fixture.engine);
		check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind,
					       &probes[i], &handles[i]),
			  0);
	}
	in_child(child_has_all_of_them);
	fixture_close(&fixture);
	check_int(probe.finalised, 1);
}

/*
 * Drops the chains in the child. Each chain has two blocks, and the child must be able to use all
 * of these again.
 */
static void child_uses_their_blocks(void)
{
	uint64_t before = tw_memory_slab_bytes();

	heir_take(&fixture, 0);
	child_need(tw_engine_pending(fixture.engine), 0);
	for (int i = 0; i < 2 * DROPPED; i++)
		child_need(tw_schedule(fixture.engine, TW_NEVER, &count_kind, NULL, NULL), 0);
	child_need(tw_memory_slab_bytes(), before);
	heir_close(&fixture);
	child_need(fixture.back.count, 2 * DROPPED);
}

Test(reinit_periodic, the_blocks_of_dropped_chains_serve_again)
{
	static const struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);
	static atomic_int runs;

	open_chain(&period, &probe_final_kind);
	for (int i = 0; i < DROPPED; i++)
		check_int(tw_schedule_periodic(fixture.engine, &period, &count_kind, &runs, NULL),
			  0);
	in_child(child_uses_their_blocks);
	close_all();
}
