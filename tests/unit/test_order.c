/* SPDX-License-Identifier: MIT */
/* Order: across ticks it is tick order, also in a backlog of less than one revolution. */
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

static void fill(struct fixture *fixture, int64_t span_ns, uint64_t seed)
{
	struct random random = {seed};
	struct entry *entry;
	int i;

	for (i = 0; i < COUNT; i++) {
		entry = &journal.entries[i];
		entry->journal = &journal;
		entry->deadline_ns = (int64_t)random_below(&random, (uint64_t)span_ns);
		must_schedule_at(fixture->engine, entry->deadline_ns, &entry_kind, entry);
	}
}

static void check_tick_order(int64_t tick_ns)
{
	int i;

	check_int(journal.count, COUNT);
	for (i = 1; i < COUNT; i++)
		check_at_most(journal.fired_deadline_ns[i - 1] / tick_ns,
			      journal.fired_deadline_ns[i] / tick_ns);
}

Test(order, step_by_step)
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

Test(order, in_a_backlog_within_one_revolution)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	fill(&fixture, 4000 * NS_PER_MS, 2);
	fixture_settle(&fixture);
	fixture_advance(&fixture, 4001 * NS_PER_MS);
	check_tick_order(NS_PER_MS);
	fixture_close(&fixture);
}

/* Everything is still in ingress when it is overdue. */
Test(order, in_a_backlog_of_ingress)
{
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	fixture.now_ns = 4001 * NS_PER_MS;
	fill(&fixture, 4000 * NS_PER_MS, 3);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_open(&gate);
	fixture_settle(&fixture);
	check_int(journal.count, COUNT);
	fixture_close(&fixture);
}
