/* SPDX-License-Identifier: MIT */
/*
 * Periodic timeouts: bad input, memory, and stale handles.
 *
 * Seen to fail with these defects: the canceller does not give back the chain's own block; a stale
 * handle finds a chain's block.
 */
#include "periodic_scene.h"

#include <errno.h>

static int rejection(struct fixture *fixture, const struct tw_period *period)
{
	struct tw_handle handle = {.generation = 77};
	int error = tw_schedule_periodic(fixture->engine, period, &count_kind, NULL, &handle);

	check_int(handle.generation, 77);
	return error;
}

Test(periodic_rejections, bad_input_is_rejected)
{
	static const struct tw_kind owners = TW_KIND_OWNER_ONLY(on_run, NULL);
	static const struct tw_kind none = TW_KIND(NULL, NULL);
	struct tw_period period = ten_ms;
	struct fixture fixture;
	struct {
		struct tw_period period;
		uint64_t more[2];
	} newer = {ten_ms, {0, 0}};

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_periodic(NULL, &ten_ms, &count_kind, NULL, NULL), -EINVAL);
	check_int(tw_schedule_periodic(fixture.engine, &ten_ms, NULL, NULL, NULL), -EINVAL);
	check_int(tw_schedule_periodic(fixture.engine, &ten_ms, &none, NULL, NULL), -EINVAL);
	check_int(tw_schedule_periodic(fixture.engine, &ten_ms, &owners, NULL, NULL), -EINVAL);
	check_int(rejection(&fixture, NULL), -EINVAL);
	period.size--;
	check_int(rejection(&fixture, &period), -EINVAL);
	period.size = 4097;
	check_int(rejection(&fixture, &period), -E2BIG);
	newer.period.size = sizeof(newer);
	check_int(tw_schedule_periodic(fixture.engine, &newer.period, &count_kind, NULL, NULL), 0);
	newer.more[1] = 1;
	check_int(rejection(&fixture, &newer.period), -E2BIG);
	for (int64_t wrong = -1; wrong <= 0; wrong++) {
		period = (struct tw_period)TW_PERIOD_RATE(wrong);
		check_int(rejection(&fixture, &period), -EINVAL);
	}
	period = (struct tw_period)TW_PERIOD_RATE(INT64_MIN);
	check_int(rejection(&fixture, &period), -ERANGE);
	period = ten_ms;
	period.first_ns = INT64_MIN;
	check_int(rejection(&fixture, &period), -ERANGE);
	period = ten_ms;
	period.mode = TW_PERIOD_FIXED_DELAY + 1;
	check_int(rejection(&fixture, &period), -EINVAL);
	period = ten_ms;
	period.missed = TW_MISSED_DELAY + 1;
	check_int(rejection(&fixture, &period), -EINVAL);
	period = ten_ms;
	period.jitter_ppm = 1000001;
	check_int(rejection(&fixture, &period), -EINVAL);
	period = ten_ms;
	period.reserved = 1;
	check_int(rejection(&fixture, &period), -EINVAL);
	/* If the first time is in the past, the chain must begin now. */
	period = ten_ms;
	period.first_ns = -5;
	must_chain(&fixture, &period, &count_kind, &fixture.back.count);
	check_int(tw_engine_pending(fixture.engine), 2);
	fixture_stop(&fixture);
	check_int(rejection(&fixture, &ten_ms), -ESHUTDOWN);
	fixture_close(&fixture);
}

struct nexts {
	struct tw_handle peer;
	int runs;
	int own, zeros, minimum, other;
};

static void on_nexts(struct tw_handle self, void *arg)
{
	struct nexts *nexts = arg;

	nexts->runs++;
	nexts->zeros = tw_period_next((struct tw_handle){0}, 1);
	nexts->minimum = tw_period_next(self, INT64_MIN);
	nexts->other = tw_period_next(nexts->peer, 1);
	nexts->own = tw_period_next(self, -7);
}

static const struct tw_kind nexts_kind = TW_KIND(on_nexts, NULL);

Test(periodic_rejections, period_next_is_for_its_own_run)
{
	struct fixture fixture;
	struct nexts chain = {0}, once = {0};
	struct tw_period period = ten_ms;
	struct tw_handle handle;

	period.runs = 3;
	fixture_open(&fixture, NULL);
	chain.peer = must_schedule(fixture.engine, TW_NEVER, &nexts_kind, NULL);
	handle = must_chain(&fixture, &period, &nexts_kind, &chain);
	once.peer = handle;
	must_schedule(fixture.engine, 1, &nexts_kind, &once);
	check_int(tw_period_next(handle, 1), -EPERM);
	fixture_advance_to(&fixture, 5 * NS_PER_MS);
	check_int(once.own, -EPERM);
	check_int(once.other, -EPERM);
	/* A negative interval counts as zero, so the three runs come at once. */
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(chain.runs, 3);
	check_int(chain.zeros, -EINVAL);
	check_int(chain.minimum, -ERANGE);
	check_int(chain.other, -EPERM);
	check_int(chain.own, 0);
	fixture_close(&fixture);
}

Test(periodic_rejections, memory_of_cancelled_chains_comes_back)
{
	struct fixture fixture;
	struct probe probe[2000];
	struct tw_handle handle[2000];
	uint64_t bytes = 0;

	fixture_open(&fixture, NULL);
	for (int round = 0; round < 60; round++) {
		for (int i = 0; i < 2000; i++)
			handle[i] = probe_repeat(&fixture, &probe[i]);
		if (round % 3 != 0)
			fixture_advance(&fixture, (round % 3 == 1 ? 1 : 11) * NS_PER_MS);
		for (int i = 0; i < 2000; i++)
			check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
		fixture_advance(&fixture, NS_PER_MS);
		if (round == 10)
			bytes = tw_memory_slab_bytes();
	}
	check_int(tw_memory_slab_bytes(), bytes);
	fixture_close(&fixture);
}

static void on_own_cancel(struct tw_handle self, void *arg)
{
	(void)arg;
	(void)tw_cancel(self);
}

/* Chains that end by themselves, by their own cancel, and by stop. The chains of each kind use a
 * few MiB, all of which must be given back. */
Test(periodic_rejections, memory_comes_back_from_runs_and_from_stop)
{
	static const struct tw_kind kinds[] = {TW_KIND(on_own_cancel, NULL), TW_KIND(on_run, NULL)};
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	static struct log log;
	uint64_t bytes = 0;

	for (int round = 0; round < 90; round++) {
		fixture_open(&fixture, NULL);
		log_init(&log, &fixture);
		period.runs = round % 3 == 1;
		for (int i = 0; i < 2000; i++)
			must_chain(&fixture, &period, &kinds[round % 3 != 0], &log);
		if (round % 3 != 2)
			fixture_advance(&fixture, 2 * NS_PER_MS);
		check_int(tw_engine_pending(fixture.engine), round % 3 == 2 ? 2000 : 0);
		fixture_close(&fixture);
		if (round == 10)
			bytes = tw_memory_slab_bytes();
	}
	check_int(tw_memory_slab_bytes(), bytes);
}

Test(periodic_rejections, without_memory_accepted_chains_go_on)
{
	struct fixture fixture;
	atomic_int count = 0;
	int accepted = 0;
	int error;

	tw_memory_cap_set(1);
	fixture_open(&fixture, NULL);
	while ((error = tw_schedule_periodic(fixture.engine, &ten_ms, &count_kind, &count, NULL)) ==
	       0)
		accepted++;
	check_int(error, -ENOMEM);
	check_int(tw_engine_pending(fixture.engine), accepted);
	check_int(stats_of(fixture.engine).rejected, 1);
	fixture_advance(&fixture, 11 * NS_PER_MS);
	check_int(count, accepted);
	fixture_stop(&fixture);
	check_int(fixture.back.count, accepted);
	tw_memory_cap_set(0);
	fixture_close(&fixture);
}

Test(periodic_rejections, stale_handles_do_not_find_a_chains_own)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	struct fixture fixture;
	struct tw_handle old[300];
	atomic_int count = 0;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < 300; i++)
		old[i] = must_schedule(fixture.engine, NS_PER_MS, &count_kind, &count);
	for (int i = 0; i < 300; i++)
		check_int(tw_cancel(old[i]), TW_CANCEL_DONE);
	/* Each chain takes the blocks of two cancelled timeouts. */
	for (int i = 0; i < 300; i++)
		must_chain(&fixture, &ten_ms, &count_kind, &count);
	for (int i = 0; i < 300; i++) {
		int error = tw_timeout_get(old[i], &seen);

		if (error == 0)
			check_true(seen.kind == &count_kind && seen.arg == &count &&
				   seen.engine == fixture.engine);
		else
			check_int(error, -ESTALE);
		check_int(tw_cancel(old[i]), error == 0 ? TW_CANCEL_CANCELLED : TW_CANCEL_STALE);
	}
	fixture_advance(&fixture, 11 * NS_PER_MS);
	check_int(count, 300);
	fixture_close(&fixture);
	check_int(fixture.back.count, 300);
}
