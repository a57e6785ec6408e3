/* SPDX-License-Identifier: MIT */
/*
 * A callback ends the worker's thread while other threads stop the engine. The worker's end used to
 * change the engine's state in several steps. Between two of them a stop could take the engine
 * over, and then two threads finished it. Each timeout must be handed back exactly once.
 *
 * Seen to fail with this defect: the change from RUNNING to FAILED and the change from STOPPING to
 * ORPHAN are made one after the other, with a pause in between.
 */
#include "probe.h"

#include "slowdown.h"

#include <pthread.h>

enum { ROUNDS = 2000, FAR = 20, STOPPERS = 2 };

static void on_end_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	pthread_exit(NULL);
}

static const struct tw_kind end_thread_kind = TW_KIND(on_end_thread, NULL);

static void *stopper_main(void *arg)
{
	struct fixture *fixture = arg;

	return (void *)(intptr_t)tw_engine_stop(fixture->engine, back_log_hook, &fixture->back,
						PATIENCE_NS);
}

static void round_run(int round)
{
	pthread_t stoppers[STOPPERS];
	struct fixture fixture;
	atomic_int runs = 0;
	void *result;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < FAR; i++)
		must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	must_schedule(fixture.engine, 1, &end_thread_kind, NULL);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	sleep_ns(round % 8 * 10 * NS_PER_US);
	for (int i = 0; i < STOPPERS; i++)
		check_int(pthread_create(&stoppers[i], NULL, stopper_main, &fixture), 0);
	for (int i = 0; i < STOPPERS; i++) {
		check_int(pthread_join(stoppers[i], &result), 0);
		check_true(result == NULL);
	}
	check_int(runs, 0);
	check_int(fixture.back.count + (int)stats_of(fixture.engine).expired, FAR + 1);
	fixture_close(&fixture);
}

Test(recovery, one_of_two_stoppers_finishes_a_dead_worker, .timeout = 100)
{
	for (int round = 0; round < (int)slowed(ROUNDS); round++)
		round_run(round);
}
