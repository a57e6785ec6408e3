/* SPDX-License-Identifier: MIT */
/*
 * Timeouts at a date of CLOCK_REALTIME, in real time. The program replaces the C library's
 * clock_gettime and timerfd_settime. Its wall clock is the machine's plus a difference that the
 * test changes. Such a change is a step. Like the kernel, the program then makes the descriptors
 * readable that wait for a step.
 *
 * Seen to fail with these defects: a step does not wake the worker, so the test hangs; a descriptor
 * is not closed; the worker handles each small change of the clocks' difference as a step.
 */
#include "asleep.h"
#include "probe.h"
#include "sanitized.h"
#include "thread_fault.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define HOUR_NS (INT64_C(3600) * NS_PER_S)

enum { FDS = 256, MANY_STEPS = 200, ROUNDS = 300 };

#ifdef TESTS_SANITIZED
#define SANITIZED true
#else
#define SANITIZED false
#endif

static _Atomic int64_t ahead_ns;
/* By how much the wall clock gains each time that it is read. */
static _Atomic int64_t gain_ns;
/* Whether a descriptor waits for a step, indexed by the descriptor. */
static atomic_bool waits[FDS];

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	int result = (int)syscall(SYS_clock_gettime, id, ret_time);
	int64_t wall_ns;

	if (id != CLOCK_REALTIME)
		return result;
	wall_ns = ret_time->tv_sec * NS_PER_S + ret_time->tv_nsec +
		  atomic_fetch_add(&ahead_ns, atomic_load(&gain_ns));
	ret_time->tv_sec = wall_ns / NS_PER_S;
	ret_time->tv_nsec = wall_ns % NS_PER_S;
	return result;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *timer,
		    struct itimerspec *ret_before)
{
	atomic_store(&waits[fd % FDS], (flags & TFD_TIMER_CANCEL_ON_SET) != 0);
	return (int)syscall(SYS_timerfd_settime, fd, flags, timer, ret_before);
}

static int64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Steps the wall clock. Each waiting descriptor becomes readable at once, because its timer is
 * set to the past. */
static void wall_step(int64_t step_ns)
{
	const struct itimerspec now = {.it_value = {.tv_nsec = 1}};

	atomic_fetch_add(&ahead_ns, step_ns);
	for (int fd = 0; fd < FDS; fd++)
		if (atomic_load(&waits[fd]))
			(void)syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &now, NULL);
}

static int fds_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

static int threads_alive(void)
{
	DIR *folder = opendir("/proc/self/task");
	int count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

/*
 * Waits until the number of threads has fallen to `count`. For a moment after a join, the system
 * may still list the thread.
 */
static bool threads_come_down_to(int count)
{
	for (int64_t begin_ns = monotonic_ns(); threads_alive() > count; sleep_ns(NS_PER_MS))
		if (monotonic_ns() - begin_ns > PATIENCE_NS)
			return false;
	return true;
}

Test(wall_kernel, runs_at_its_date)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probe;
	int64_t date_ns = wall_ns() + 20 * NS_PER_MS;

	probe_init(&probe, engine);
	check_int(tw_schedule_wall(engine, date_ns, &probe_kind, &probe, NULL), 0);
	check_true(wait_until_at_least(&probe.runs, 1));
	check_at_least(wall_ns(), date_ns);
	real_engine_close(engine);
}

/* The worker sleeps until a date in an hour. No other thread calls the engine, so only the step
 * can wake the worker. */
Test(wall_kernel, a_step_wakes_the_worker)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probe;

	probe_init(&probe, engine);
	check_int(tw_schedule_wall(engine, wall_ns() + HOUR_NS, &probe_kind, &probe, NULL), 0);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_true(asleep_park_await(engine));
	wall_step(2 * HOUR_NS);
	check_true(wait_until_at_least(&probe.runs, 1));
	real_engine_close(engine);
}

/* The loop sleeps on a descriptor that was made before the first date was scheduled. */
Test(wall_kernel, a_step_wakes_the_loop)
{
	struct tw_options options;
	struct tw_engine *engine;
	struct pollfd polled = {.events = POLLIN};
	struct probe probe;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_loop_enter(engine), 0);
	polled.fd = tw_engine_fd(engine);
	check_at_least(polled.fd, 0);
	probe_init(&probe, engine);
	check_int(tw_schedule_wall(engine, wall_ns() + HOUR_NS, &probe_kind, &probe, NULL), 0);
	check_at_least(tw_engine_poll(engine, 0), 0);
	/* After a poll the descriptor may still be readable once. */
	while (poll(&polled, 1, 0) > 0)
		check_int(tw_engine_poll(engine, 0), 0);
	wall_step(2 * HOUR_NS);
	while (atomic_load(&probe.runs) == 0) {
		check_int(poll(&polled, 1, (int)(PATIENCE_NS / NS_PER_MS)), 1);
		check_at_least(tw_engine_poll(engine, 0), 0);
	}
	check_int(tw_loop_exit(engine), 0);
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_engine_destroy(engine), 0);
}

/* Each step must be noticed, so the watch must wait again after each. */
Test(wall_kernel, each_step_is_noticed)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probe;

	for (int i = 0; i < MANY_STEPS; i++) {
		probe_init(&probe, engine);
		check_int(tw_schedule_wall(engine, wall_ns() + HOUR_NS, &probe_kind, &probe, NULL),
			  0);
		check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
		wall_step(-HOUR_NS);
		wall_step(3 * HOUR_NS);
		check_true(wait_until_at_least(&probe.runs, 1));
	}
	real_engine_close(engine);
}

/* After a step back, the timeout must not run before its date. */
Test(wall_kernel, a_step_back_delays)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probe;
	int64_t date_ns = wall_ns() + 20 * NS_PER_MS;

	probe_init(&probe, engine);
	check_int(tw_schedule_wall(engine, date_ns, &probe_kind, &probe, NULL), 0);
	wall_step(-50 * NS_PER_MS);
	check_true(wait_until_at_least(&probe.runs, 1));
	check_at_least(wall_ns(), date_ns);
	real_engine_close(engine);
}

/* The wall clock gains on the engine's clock, and there is no step. The worker must still finish its
 * turns, and sleep. */
Test(wall_kernel, a_clock_that_gains_lets_the_worker_sleep)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probe;

	probe_init(&probe, engine);
	atomic_store(&gain_ns, NS_PER_MS);
	check_int(tw_schedule_wall(engine, wall_ns() + HOUR_NS, &probe_kind, &probe, NULL), 0);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_true(asleep_park_await(engine));
	atomic_store(&gain_ns, 0);
	real_engine_close(engine);
}

/* Before the first date there must be no descriptor and no thread for dates, from then on one of
 * each, and none after the engine is destroyed. */
Test(wall_kernel, watch_exists_from_the_first_date_until_destroy)
{
	struct tw_engine *engine;
	struct probe probe;
	int fds, threads, before = threads_alive();

	engine = real_engine_open(NULL);
	probe_init(&probe, engine);
	(void)must_schedule(engine, HOUR_NS, &probe_kind, &probe);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	fds = fds_open();
	threads = threads_alive();
	/* ThreadSanitizer makes a thread of its own together with the program's first one. */
	check_true(threads == before + 1 || (SANITIZED && threads == before + 2));
	for (int i = 0; i < 3; i++) {
		check_int(tw_schedule_wall(engine, wall_ns() + HOUR_NS, &probe_kind, &probe, NULL),
			  0);
		check_int(fds_open(), fds + 1);
		check_int(threads_alive(), threads + 1);
	}
	real_engine_close(engine);
	check_int(fds_open(), fds);
	check_true(threads_come_down_to(threads - 1));
}

/* The engine is destroyed while the library handles a step. */
Test(wall_kernel, destroy_works_while_a_step_is_handled)
{
	struct tw_engine *engine;
	struct probe probe;

	for (int i = 0; i < ROUNDS; i++) {
		engine = real_engine_open(NULL);
		probe_init(&probe, engine);
		check_int(tw_schedule_wall(engine, wall_ns() + HOUR_NS, &probe_kind, &probe, NULL),
			  0);
		if (i % 3 != 0)
			wall_step(i % 3 == 1 ? NS_PER_S : -NS_PER_S);
		real_engine_close(engine);
	}
}

/* Without a free descriptor the call must fail and have no effect. The next call must succeed. */
Test(wall_kernel, no_descriptor_left)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct tw_handle handle = {0};
	struct rlimit limit, none;
	struct probe probe;
	int fds = fds_open();

	probe_init(&probe, engine);
	check_int(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	check_int(setrlimit(RLIMIT_NOFILE, &none), 0);
	check_int(tw_schedule_wall(engine, wall_ns(), &probe_kind, &probe, &handle), -ENOMEM);
	check_int(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_int(tw_handle_is_set(handle), 0);
	check_int(fds_open(), fds);
	check_int(stats_of(engine).scheduled, 0);
	check_int(stats_of(engine).rejected, 1);
	check_int(tw_schedule_wall(engine, wall_ns(), &probe_kind, &probe, &handle), 0);
	check_true(wait_until_at_least(&probe.runs, 1));
	real_engine_close(engine);
}

Test(wall_kernel, no_thread_can_be_made)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct tw_handle handle = {0};
	struct probe probe;
	int fds = fds_open();

	probe_init(&probe, engine);
	check_int(tw_engine_start(engine), 0);
	atomic_store(&create_error, EAGAIN);
	check_int(tw_schedule_wall(engine, wall_ns(), &probe_kind, &probe, &handle), -ENOMEM);
	atomic_store(&create_error, 0);
	check_int(tw_handle_is_set(handle), 0);
	check_int(fds_open(), fds);
	check_int(tw_schedule_wall(engine, wall_ns(), &probe_kind, &probe, &handle), 0);
	check_true(wait_until_at_least(&probe.runs, 1));
	real_engine_close(engine);
}
