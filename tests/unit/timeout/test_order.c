/* SPDX-License-Identifier: MIT */
/*
 * Timeouts of different ticks must run in tick order, also in a backlog of less than one
 * revolution. A timeout that arrives after its tick runs at the next advance, in the order of
 * arrival.
 *
 * Seen to fail with these defects: slots are processed before the overdue timeouts
 * (overdue_timeouts...); a turn transfers three batches (in_a_backlog_of_several_batches).
 */
#include "probe.h"

#include "random.h"

enum { COUNT = 2000 };

struct entry {
	struct journal *journal;
	int64_t deadline_ns;
};

struct journal {
	struct entry entries[COUNT];
	int64_t fired_deadline_ns[COUNT];
	atomic_int count;
};

static void on_entry(struct tw_handle self, void *arg)
{
	struct entry *entry = arg;
	int index = atomic_fetch_add(&entry->journal->count, 1);

	(void)self;
	entry->journal->fired_deadline_ns[index] = entry->deadline_ns;
}

static const struct tw_kind entry_kind = TW_KIND(on_entry, NULL);

static struct journal journal;

/* Schedules the entries `from` to `to` - 1 of the journal, with random deadlines. */
static void fill_part(struct fixture *fixture, int from, int to, int64_t span_ns, uint64_t seed)
{
	struct random random = {seed};
	struct entry *entry;
	int i;

	for (i = from; i < to; i++) {
		entry = &journal.entries[i];
		entry->journal = &journal;
		entry->deadline_ns = (int64_t)random_below(&random, (uint64_t)span_ns);
		must_schedule_at(fixture->engine, entry->deadline_ns, &entry_kind, entry);
	}
}

static void fill(struct fixture *fixture, int64_t span_ns, uint64_t seed)
{
	fill_part(fixture, 0, COUNT, span_ns, seed);
}

static void check_tick_order_until(int count, int64_t tick_ns)
{
	int i;

	for (i = 1; i < count; i++)
		check_at_most(journal.fired_deadline_ns[i - 1] / tick_ns,
			      journal.fired_deadline_ns[i] / tick_ns);
}

static void check_tick_order(int64_t tick_ns)
{
	check_int(journal.count, COUNT);
	check_tick_order_until(COUNT, tick_ns);
}

/* Checks that the entries from number `from` on have run in the order in which they were
 * scheduled. */
static void check_order_of_coming(int from)
{
	int i;

	check_int(journal.count, COUNT);
	for (i = from; i < COUNT; i++)
		check_int(journal.fired_deadline_ns[i], journal.entries[i].deadline_ns);
}

Test(order, step_by_step_ticks_keep_their_order)
{
	struct fixture fixture;
	int i;

	fixture_open(&fixture, NULL);
	fill(&fixture, 100 * NS_PER_MS, 1);
	for (i = 0; i < 110; i++)
		fixture_advance(&fixture, NS_PER_MS);
	check_tick_order(NS_PER_MS);
	fixture_close(&fixture);
}

Test(order, backlog_within_one_revolution_runs_in_order)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	fill(&fixture, 4000 * NS_PER_MS, 2);
	fixture_flush(&fixture);
	fixture_advance(&fixture, 4001 * NS_PER_MS);
	check_tick_order(NS_PER_MS);
	fixture_close(&fixture);
}

/*
 * All entries are still in ingress when they are due. One transfer must take all of them before any
 * expires.
 */
Test(order, backlog_of_ingress_runs_in_tick_order)
{
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	fixture.now_ns = 4001 * NS_PER_MS;
	fill(&fixture, 4000 * NS_PER_MS, 3);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_tick_order(NS_PER_MS);
	fixture_close(&fixture);
}

enum { RESIDENT = 1000, BATCH = 100 };

/*
 * Half of the entries are in the wheel. The other half is in ingress, and is more than one transfer
 * takes. The first turn must run the wheel's half and the first batch in tick order. By then every
 * tick has passed, so the rest must run in the order of arrival.
 */
Test(order, in_a_backlog_of_several_batches)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct gate gate;

	options.transfer_batch = BATCH;
	fixture_open(&fixture, &options);
	fill_part(&fixture, 0, RESIDENT, 4000 * NS_PER_MS, 4);
	/*
	 * The gate holds the worker at tick 1. The entries that have run by then must be in order,
	 * too.
	 */
	gate_hold(&fixture, &gate);
	fixture.now_ns = 4001 * NS_PER_MS;
	fill_part(&fixture, RESIDENT, COUNT, 4000 * NS_PER_MS, 5);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_tick_order_until(RESIDENT + BATCH, NS_PER_MS);
	check_order_of_coming(RESIDENT + BATCH);
	fixture_close(&fixture);
}

/* Overdue timeouts must run in the order in which they arrived, and before those that wait in
 * slots. */
Test(order, overdue_timeouts_run_first_and_in_order)
{
	struct fixture fixture;
	struct gate gate;
	int i;

	fixture_open_at(&fixture, NULL, 0);
	fixture_advance(&fixture, 5000 * NS_PER_MS);
	gate_hold(&fixture, &gate);
	/* The first half is due in the next ticks, so it waits in slots. */
	for (i = 0; i < RESIDENT; i++)
		journal.entries[i] = (struct entry){&journal, fixture.now_ns + i * NS_PER_MS};
	for (i = RESIDENT; i-- > 0;)
		must_schedule_at(fixture.engine, journal.entries[i].deadline_ns, &entry_kind,
				 &journal.entries[i]);
	fill_part(&fixture, RESIDENT, COUNT, 4000 * NS_PER_MS, 6);
	fixture.now_ns += (RESIDENT + 1) * NS_PER_MS;
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(journal.count, COUNT);
	for (i = 0; i < COUNT; i++)
		check_int(journal.fired_deadline_ns[i],
			  journal.entries[(i + RESIDENT) % COUNT].deadline_ns);
	fixture_close(&fixture);
}
