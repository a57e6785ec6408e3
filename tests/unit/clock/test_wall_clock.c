/* SPDX-License-Identifier: MIT */
/*
 * Defect B20 of docs/internals/testing.md: a step of the wall clock must not affect the engine.
 * This program replaces the C library's clock_gettime. Its CLOCK_REALTIME jumps an hour back or
 * forth at every read.
 *
 * Seen to fail with these defects: CLOCK_REALTIME is the engine's clock; it is the clock of the
 * engine's waits only.
 */
#include "probe.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int reads;

static int64_t jump_s(void)
{
	return atomic_fetch_add(&reads, 1) % 2 ? 3600 : -3600;
}

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	int result = (int)syscall(SYS_clock_gettime, id, ret_time);

	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		ret_time->tv_sec += (time_t)jump_s();
	return result;
}

/* Timeouts must run in time and in order, even if the wall clock jumps. */
Test(wall_clock, b20_steps_do_not_matter)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probes[5];
	struct timespec wall;
	int64_t begin_ns = monotonic_ns();
	int i;

	clock_gettime(CLOCK_REALTIME, &wall);
	check_at_least(reads, 1);
	for (i = 0; i < 5; i++) {
		probe_init(&probes[i], engine);
		must_schedule(engine, (i + 1) * 20 * NS_PER_MS, &probe_final_kind, &probes[i]);
	}
	for (i = 0; i < 5; i++) {
		check_true(wait_until_at_least(&probes[i].runs, 1));
		check_at_least(probes[i].ran_at_ns - begin_ns, (i + 1) * 20 * NS_PER_MS);
		check_at_most(probes[i].ran_at_ns - begin_ns, (i + 1) * 20 * NS_PER_MS + NS_PER_S);
	}
	real_engine_close(engine);
}

/* Waits with a deadline must not use the wall clock either. */
Test(wall_clock, b20_waits_do_not_matter)
{
	struct fixture fixture;
	struct gate gate;
	int64_t begin_ns;

	fixture_open(&fixture, NULL);
	gate_init(&gate);
	must_schedule(fixture.engine, 1, &gate_kind, &gate);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	sem_wait(&gate.entered);
	begin_ns = monotonic_ns();
	check_true(tw_engine_flush(fixture.engine, 50 * NS_PER_MS) < 0);
	check_true(tw_engine_stop(fixture.engine, NULL, NULL, 50 * NS_PER_MS) < 0);
	check_at_least(monotonic_ns() - begin_ns, 100 * NS_PER_MS);
	check_at_most(monotonic_ns() - begin_ns, 5 * NS_PER_S);
	gate_open(&gate);
	fixture_close(&fixture);
}
