/* SPDX-License-Identifier: MIT */
/* Tests for one-shot timeouts from the suites of folly, libuv, tokio and brpc. */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>

enum { PEERS = 40 };

/* The first peer that runs cancels the victim. */
struct peers {
	struct tw_engine *engine;
	struct tw_handle handles[PEERS];
	atomic_int runs[PEERS];
	int victim;
	int outcome;
	bool done;
};

struct peer {
	struct peers *all;
	int index;
};

static void on_peer(struct tw_handle self, void *arg)
{
	struct peer *peer = arg;
	struct peers *all = peer->all;

	(void)self;
	atomic_fetch_add(&all->runs[peer->index], 1);
	if (all->done)
		return;
	all->done = true;
	if (all->victim == peer->index)
		all->victim = (all->victim + 1) % PEERS;
	all->outcome = tw_cancel(all->handles[all->victim]);
}

static const struct tw_kind peer_kind = TW_KIND(on_peer, NULL);

/*
 * Cancels one of several peers. `step_ns` is the time between their deadlines. If it is 0, all are
 * in one slot.
 */
static void check_cancel_of_a_peer(int victim, int64_t step_ns)
{
	struct peer members[PEERS];
	struct peers all = {.victim = victim, .outcome = -1};
	struct fixture fixture;
	int i;

	fixture_open(&fixture, NULL);
	all.engine = fixture.engine;
	for (i = 0; i < PEERS; i++) {
		members[i] = (struct peer){&all, i};
		all.handles[i] =
			must_schedule(fixture.engine, i * step_ns + 1, &peer_kind, &members[i]);
	}
	fixture_advance(&fixture, PEERS * step_ns + NS_PER_MS);
	check_int(all.outcome, TW_CANCEL_DONE);
	for (i = 0; i < PEERS; i++)
		check_int(all.runs[i], i != all.victim);
	check_int(stats_of(fixture.engine).cancelled, 1);
	fixture_close(&fixture);
}

Test(peers, cancel_first_of_the_slot_from_a_callback)
{
	check_cancel_of_a_peer(0, 0);
}

Test(peers, cancel_middle_of_the_slot_from_a_callback)
{
	check_cancel_of_a_peer(PEERS / 2, 0);
}

Test(peers, cancel_last_of_the_slot_from_a_callback)
{
	check_cancel_of_a_peer(PEERS - 1, 0);
}

Test(peers, cancel_any_of_the_slot_from_a_callback)
{
	int victim;

	for (victim = 0; victim < PEERS; victim++)
		check_cancel_of_a_peer(victim, 0);
}

Test(peers, cancel_in_another_slot_from_a_callback)
{
	check_cancel_of_a_peer(1, NS_PER_MS);
	check_cancel_of_a_peer(PEERS - 1, NS_PER_MS);
}

/* The first timeout that runs cancels all others of its slot, and those of the next slot. */
struct killer {
	struct tw_handle handles[PEERS];
	atomic_int runs;
	int cancelled;
};

static void on_killer(struct tw_handle self, void *arg)
{
	struct killer *killer = arg;
	int i;

	(void)self;
	atomic_fetch_add(&killer->runs, 1);
	for (i = 0; i < PEERS; i++)
		killer->cancelled += tw_cancel(killer->handles[i]) == TW_CANCEL_DONE;
}

static const struct tw_kind killer_kind = TW_KIND(on_killer, NULL);

Test(peers, cancel_all_from_a_callback)
{
	struct killer killer = {.runs = 0};
	struct fixture fixture;
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < PEERS; i++)
		killer.handles[i] =
			must_schedule(fixture.engine, i % 2 * NS_PER_MS + 1, &killer_kind, &killer);
	fixture_flush(&fixture);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_int(killer.runs, 1);
	check_int(killer.cancelled, PEERS - 1);
	fixture_close(&fixture);
}

/*
 * In the next test, a timeout has a delay of zero, and its callback schedules it again. It must run
 * once in each turn, and each turn must end.
 */
struct loop {
	struct tw_engine *engine;
	atomic_int runs;
	int64_t delay_ns;
};

static const struct tw_kind loop_kind;

static void on_loop(struct tw_handle self, void *arg)
{
	struct loop *loop = arg;

	(void)self;
	atomic_fetch_add(&loop->runs, 1);
	tw_schedule(loop->engine, loop->delay_ns, &loop_kind, loop, NULL);
}

static const struct tw_kind loop_kind = TW_KIND(on_loop, NULL);

static void check_rearm_loop(int64_t delay_ns)
{
	struct tw_options options = fixture_options();
	struct loop loop = {.delay_ns = delay_ns};
	struct fixture fixture;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	loop.engine = fixture.engine;
	must_schedule(fixture.engine, delay_ns, &loop_kind, &loop);
	for (int i = 1; i <= 100; i++) {
		check_int(tw_engine_poll(fixture.engine, 0), 1);
		check_int(loop.runs, i);
	}
	fixture_close(&fixture);
}

Test(peers, zero_delay_rearmed_in_its_callback_runs_once_per_turn)
{
	check_rearm_loop(0);
	check_rearm_loop(-5 * NS_PER_S);
}

/* After a long stall the timeout must run once, not once per missed tick. */
Test(peers, rearmed_loop_runs_once_after_a_stall)
{
	struct loop loop = {.delay_ns = 1};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	loop.engine = fixture.engine;
	must_schedule(fixture.engine, 1, &loop_kind, &loop);
	fixture_advance(&fixture, 1000 * NS_PER_S);
	check_int(loop.runs, 1);
	fixture_close(&fixture);
}

Test(peers, huge_delays_are_never_first)
{
	const int64_t huge[] = {INT64_C(1) << 48, INT64_C(1) << 62, INT64_MAX - 1, INT64_MAX};
	struct fixture fixture;
	atomic_int huge_runs = 0;
	atomic_int runs = 0;
	size_t i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < sizeof(huge) / sizeof(huge[0]); i++)
		must_schedule(fixture.engine, huge[i], &count_kind, &huge_runs);
	for (i = 0; i < 100; i++)
		must_schedule(fixture.engine, (int64_t)i * 100 * NS_PER_MS + 1, &count_kind, &runs);
	fixture_advance(&fixture, 10 * NS_PER_S);
	check_int(runs, 100);
	check_int(huge_runs, 0);
	fixture_advance_to(&fixture, (INT64_C(1) << 48) + NS_PER_MS);
	check_int(huge_runs, 1);
	fixture_close(&fixture);
}

/*
 * In the next test there are two kinds: one whose callback frees its argument, and one whose
 * finaliser does.
 */
static atomic_int freed;

static void on_free(struct tw_handle self, void *arg)
{
	(void)self;
	free(arg);
	atomic_fetch_add(&freed, 1);
}

static void on_look(struct tw_handle self, void *arg)
{
	(void)self;
	*(int *)arg += 1;
}

static void on_free_end(void *arg, enum tw_end end)
{
	(void)end;
	free(arg);
	atomic_fetch_add(&freed, 1);
}

static const struct tw_kind free_kind = TW_KIND(on_free, NULL);
static const struct tw_kind free_end_kind = TW_KIND(on_look, on_free_end);

Test(peers, destroy_the_argument_from_its_callback)
{
	struct fixture fixture;
	struct tw_handle handle;
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < 300; i++) {
		must_schedule(fixture.engine, i % 7 * NS_PER_MS + 1, &free_kind, malloc(64));
		handle = must_schedule(fixture.engine, i % 7 * NS_PER_MS + 1, &free_end_kind,
				       calloc(1, 64));
		if (i % 3 == 0)
			check_int(tw_cancel(handle), TW_CANCEL_DONE);
	}
	must_schedule(fixture.engine, NS_PER_S, &free_end_kind, calloc(1, 64));
	fixture_advance(&fixture, 10 * NS_PER_MS);
	fixture_close(&fixture);
	check_int(freed, 601);
}

/* In the next test, the callback of one timeout schedules many others. Each of those must run. */
struct fan {
	struct tw_engine *engine;
	atomic_int runs;
};

static void on_fan(struct tw_handle self, void *arg)
{
	struct fan *fan = arg;
	int i;

	(void)self;
	for (i = 0; i < 1000; i++)
		tw_schedule(fan->engine, i % 3 * NS_PER_MS + 1, &count_kind, &fan->runs, NULL);
}

static const struct tw_kind fan_kind = TW_KIND(on_fan, NULL);

Test(peers, timeouts_of_a_callback_that_schedules_many_all_run)
{
	struct fan fan = {.runs = 0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	fan.engine = fixture.engine;
	must_schedule(fixture.engine, 1, &fan_kind, &fan);
	fixture_advance(&fixture, NS_PER_MS);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	check_int(fan.runs, 1000);
	fixture_close(&fixture);
}
