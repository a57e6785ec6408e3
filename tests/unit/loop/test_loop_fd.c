/* SPDX-License-Identifier: MIT */
/*
 * Loop mode: the descriptor must be readable while a poll is needed.
 *
 * Seen to fail with these defects:
 * - a waker does not set the timer, so the loop does not notice timeouts of another thread, a stop,
 *   a flush, or a move of the clock;
 * - an owner's nearer timeout does not set the timer;
 * - a poll does not set the timer again, so the descriptor stays readable for ever;
 * - destroy does not close the descriptor;
 * - the timer is not set in the time of the engine's clock.
 */
#include "asleep.h"
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#define TICK_NS INT64_C(1000000)

static struct tw_options loop_options(void)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	return options;
}

static void on_count(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind counted = TW_KIND(on_count, NULL);

static bool readable(struct tw_engine *engine, int wait_ms)
{
	struct pollfd fd = {.fd = tw_engine_fd(engine), .events = POLLIN};

	cr_assert(fd.fd >= 0);
	return poll(&fd, 1, wait_ms) == 1;
}

enum { AT_ONCE = 0, SOON_MS = 10000, NOT_NOW_MS = 20 };

Test(loop_fd, own_timeouts_in_real_time)
{
	struct tw_options options = loop_options();
	struct tw_engine *engine = real_engine_open(&options);
	struct tw_handle handle;
	atomic_int runs = 0;
	int64_t begin_ns;

	check_int(readable(engine, NOT_NOW_MS), false);
	check_int(tw_schedule(engine, 30 * NS_PER_S, &counted, &runs, NULL), 0);
	check_int(readable(engine, NOT_NOW_MS), false);
	begin_ns = monotonic_ns();
	check_int(tw_schedule(engine, 30 * TICK_NS, &counted, &runs, NULL), 0);
	check_int(readable(engine, SOON_MS), true);
	cr_assert(monotonic_ns() - begin_ns >= 30 * TICK_NS);
	check_int(tw_engine_poll(engine, 0), 1);
	check_int(readable(engine, NOT_NOW_MS), false);
	/* This deadline has passed. */
	check_int(tw_schedule_at(engine, 0, &counted, &runs, NULL), 0);
	check_int(readable(engine, AT_ONCE), true);
	check_int(tw_engine_poll(engine, 0), 1);
	check_int(readable(engine, AT_ONCE), false);
	/* For a cancelled timeout, the loop may poll once in vain, but not more. */
	check_int(tw_schedule(engine, 5 * TICK_NS, &counted, &runs, &handle), 0);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(readable(engine, SOON_MS), true);
	check_int(tw_engine_poll(engine, 0), 0);
	check_int(readable(engine, NOT_NOW_MS), false);
	check_int(runs, 2);
	real_engine_close(engine);
}

/* The nearest deadline must count, in whatever order timeouts are scheduled and rescheduled. */
Test(loop_fd, the_nearest_deadline_makes_it_readable)
{
	static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_count, NULL);
	struct tw_options options = loop_options();
	struct tw_engine *engine = real_engine_open(&options);
	struct tw_handle handle;
	atomic_int runs = 0;

	check_int(readable(engine, AT_ONCE), false);
	for (int i = 0; i < 2; i++) {
		check_int(tw_schedule(engine, 7000 * NS_PER_S, &owned, &runs, &handle), 0);
		check_int(tw_schedule(engine, 6000 * NS_PER_S, &counted, &runs, NULL), 0);
		if (i == 0)
			check_int(tw_schedule(engine, 20 * TICK_NS, &counted, &runs, NULL), 0);
		else
			check_int(tw_reschedule(handle, 20 * TICK_NS), TW_RESCHEDULE_DONE);
		/*
		 * These deadlines are later than the nearest one, but earlier than the time that
		 * the last poll published.
		 */
		check_int(tw_schedule(engine, 3600 * NS_PER_S, &counted, &runs, &handle), 0);
		check_int(tw_schedule(engine, 5000 * NS_PER_S, &owned, &runs, &handle), 0);
		check_int(tw_reschedule(handle, 3600 * NS_PER_S), TW_RESCHEDULE_DONE);
		check_int(readable(engine, SOON_MS), true);
		check_int(tw_engine_poll(engine, 0), 1);
		check_int(runs, i + 1);
		check_int(readable(engine, AT_ONCE), false);
	}
	real_engine_close(engine);
}

/* The descriptor must also be readable for timeouts that were due when it was made, or that a
 * budget left. */
Test(loop_fd, timeouts_that_are_already_due_make_it_readable)
{
	struct tw_options options = loop_options();
	struct tw_engine *engine = real_engine_open(&options);
	atomic_int runs = 0;

	sleep_ns(3 * TICK_NS);
	for (int i = 0; i < 5; i++)
		check_int(tw_schedule_at(engine, 0, &counted, &runs, NULL), 0);
	for (int i = 0; i < 5; i++) {
		check_int(readable(engine, AT_ONCE), true);
		check_int(tw_engine_poll(engine, 1), 1);
	}
	if (readable(engine, AT_ONCE))
		check_int(tw_engine_poll(engine, 1), 0);
	check_int(readable(engine, AT_ONCE), false);
	real_engine_close(engine);
}

/* A call that another thread makes while the owner waits. */
struct other {
	struct tw_engine *engine;
	asleep_thread owner;
	int64_t delay_ns;
	atomic_int *runs;
	int (*call)(struct other *other);
	int result;
};

static int other_schedule(struct other *other)
{
	return tw_schedule(other->engine, other->delay_ns, &counted, other->runs, NULL);
}

static int other_stop(struct other *other)
{
	return tw_engine_stop(other->engine, NULL, NULL, PATIENCE_NS);
}

static int other_flush(struct other *other)
{
	return tw_engine_flush(other->engine, PATIENCE_NS);
}

static void *other_body(void *arg)
{
	struct other *other = arg;

	check_true(asleep_await(&other->owner));
	other->result = other->call(other);
	return NULL;
}

/*
 * Makes `call` on another thread. The descriptor must become readable, and the poll must return
 * `polled`.
 */
static void woken_by(struct other *other, int (*call)(struct other *other), int64_t polled)
{
	pthread_t thread;

	other->call = call;
	check_int(readable(other->engine, AT_ONCE), false);
	asleep_announce(&other->owner);
	check_int(pthread_create(&thread, NULL, other_body, other), 0);
	check_int(readable(other->engine, SOON_MS), true);
	check_int(tw_engine_poll(other->engine, 0), polled);
	check_int(pthread_join(thread, NULL), 0);
	check_int(other->result, 0);
}

Test(loop_fd, other_threads_wake)
{
	struct tw_options options = loop_options();
	atomic_int runs = 0;
	struct other other = {.engine = real_engine_open(&options), .runs = &runs};

	check_int(tw_engine_start(other.engine), 0);
	check_int(tw_schedule(other.engine, 3600 * NS_PER_S, &counted, &runs, NULL), 0);
	other.delay_ns = 1800 * NS_PER_S;
	woken_by(&other, other_schedule, 0);
	if (readable(other.engine, NOT_NOW_MS))
		check_int(tw_engine_poll(other.engine, 0), 0);
	woken_by(&other, other_flush, 0);
	if (readable(other.engine, NOT_NOW_MS))
		check_int(tw_engine_poll(other.engine, 0), 0);
	/* A timeout that is later than all others must not wake the owner. */
	other.delay_ns = 5400 * NS_PER_S;
	check_int(other_schedule(&other), 0);
	check_int(readable(other.engine, NOT_NOW_MS), false);
	woken_by(&other, other_stop, -ESHUTDOWN);
	check_books(other.engine);
	check_int(tw_engine_destroy(other.engine), 0);
}

enum { POLL_BATCH = 2 };

static void *batches_body(void *arg)
{
	struct other *other = arg;

	for (int i = 0; i < 2 * POLL_BATCH + 1; i++)
		check_int(tw_schedule(other->engine, TW_NEVER, &counted, other->runs, NULL), 0);
	return NULL;
}

/*
 * A poll may take a second turn for pushes that came during the first turn, but not for pushes that
 * did not fit into the batch.
 */
Test(loop_fd, a_poll_is_one_turn)
{
	struct tw_options options = loop_options();
	atomic_int runs = 0;
	struct other other = {.runs = &runs};
	pthread_t thread;

	options.transfer_batch = POLL_BATCH;
	other.engine = real_engine_open(&options);
	check_int(readable(other.engine, AT_ONCE), false);
	check_int(pthread_create(&thread, NULL, batches_body, &other), 0);
	check_int(pthread_join(thread, NULL), 0);
	for (uint64_t turns = 1; turns <= 4; turns++) {
		check_int(tw_engine_poll(other.engine, 0), 0);
		check_int(stats_of(other.engine).turns, turns);
		check_int(readable(other.engine, AT_ONCE), turns < 3);
	}
	real_engine_close(other.engine);
}

static void *flood_body(void *arg)
{
	struct other *other = arg;

	for (int i = 0; i < 80000; i++)
		check_int(tw_schedule(other->engine, TW_NEVER, &counted, other->runs, NULL), 0);
	return NULL;
}

/* No timeout is due, but a producer must wake the owner because so many timeouts wait for
 * transfer. */
Test(loop_fd, too_many_timeouts_in_ingress_wake_the_owner)
{
	struct tw_options options = loop_options();
	atomic_int runs = 0;
	struct other other = {.runs = &runs};
	pthread_t thread;

	options.check = TW_CHECK_NONE;
	other.engine = real_engine_open(&options);
	check_int(readable(other.engine, AT_ONCE), false);
	check_int(pthread_create(&thread, NULL, flood_body, &other), 0);
	check_int(readable(other.engine, SOON_MS), true);
	check_int(pthread_join(thread, NULL), 0);
	real_engine_close(other.engine);
}

Test(loop_fd, virtual_time_wakes)
{
	struct tw_options options = loop_options();
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, &options);
	check_int(tw_schedule(fixture.engine, 5 * TICK_NS, &counted, &runs, NULL), 0);
	/* This call makes the thread the owner, whose own schedules go directly into the wheel. */
	check_int(readable(fixture.engine, NOT_NOW_MS), false);
	check_int(tw_clock_set(fixture.clock, 7 * TICK_NS), 0);
	check_int(readable(fixture.engine, AT_ONCE), true);
	check_int(tw_engine_poll(fixture.engine, 0), 1);
	check_int(readable(fixture.engine, NOT_NOW_MS), false);
	/* This timeout is scheduled between two polls, and is already due. */
	check_int(tw_schedule_at(fixture.engine, 0, &counted, &runs, NULL), 0);
	check_int(readable(fixture.engine, AT_ONCE), true);
	check_int(tw_engine_poll(fixture.engine, 0), 1);
	check_int(readable(fixture.engine, AT_ONCE), false);
	fixture_close(&fixture);
}

/* Polls only when the descriptor is readable. */
static void polls_until(struct other *other, int runs)
{
	while (*other->runs < runs) {
		check_int(readable(other->engine, SOON_MS), true);
		check_at_most(tw_engine_poll(other->engine, 0), 1);
	}
}

/*
 * Checks, with one clock of the system, that the descriptor is readable in time by that clock, for
 * timeouts of the owner and of another thread.
 */
static void clock_wakes(enum tw_clock_type type, uint32_t wheel)
{
	/* The tick must be coarser than the resolution of any of the clocks. */
	const int64_t tick_ns = 10 * NS_PER_MS;
	struct tw_options options = loop_options();
	atomic_int runs = 0;
	struct other other = {.runs = &runs, .delay_ns = 2 * tick_ns};
	struct tw_clock *clock;
	int64_t deadline_ns, late_ns;
	pthread_t thread;

	check_int(tw_clock_create(type, &clock), 0);
	options.clock = clock;
	options.wheel = wheel;
	options.tick_ns = (uint64_t)tick_ns;
	other.engine = real_engine_open(&options);
	check_int(readable(other.engine, NOT_NOW_MS), false);
	check_int(tw_schedule(other.engine, 3600 * NS_PER_S, &counted, &runs, NULL), 0);
	check_int(readable(other.engine, NOT_NOW_MS), false);
	deadline_ns = tw_engine_now(other.engine) + 2 * tick_ns;
	check_int(tw_schedule_at(other.engine, deadline_ns, &counted, &runs, NULL), 0);
	polls_until(&other, 1);
	late_ns = tw_engine_now(other.engine) - deadline_ns;
	check_at_least(late_ns, 0);
	check_at_most(late_ns, 10 * NS_PER_S);
	check_int(readable(other.engine, NOT_NOW_MS), false);
	other.call = other_schedule;
	asleep_announce(&other.owner);
	check_int(pthread_create(&thread, NULL, other_body, &other), 0);
	polls_until(&other, 2);
	check_int(pthread_join(thread, NULL), 0);
	check_int(other.result, 0);
	check_int(readable(other.engine, NOT_NOW_MS), false);
	real_engine_close(other.engine);
	check_int(tw_clock_destroy(clock), 0);
}

Test(loop_fd, each_clock_makes_it_readable)
{
	static const enum tw_clock_type types[] = {TW_CLOCK_MONOTONIC, TW_CLOCK_BOOTTIME,
						   TW_CLOCK_COARSE, TW_CLOCK_TSC};

	for (size_t i = 0; i < 2 * sizeof(types) / sizeof(types[0]); i++)
		clock_wakes(types[i / 2], i % 2 == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL);
}

static int descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	cr_assert(folder != NULL);
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

Test(loop_fd, none_is_left_behind)
{
	struct tw_options options = loop_options();
	int before = descriptors();

	options.check = TW_CHECK_NONE;
	options.slots = 16;
	for (int i = 0; i < 1000; i++) {
		struct tw_engine *engine = real_engine_open(&options);

		cr_assert(i % 3 == 0 || tw_engine_fd(engine) >= 0);
		check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
		check_int(tw_engine_destroy(engine), 0);
	}
	check_int(descriptors(), before);
}

Test(loop_fd, no_descriptor_to_be_had)
{
	struct tw_options options = loop_options();
	struct tw_engine *engine = real_engine_open(&options);
	struct rlimit limit = {0}, none;

	check_int(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	check_int(setrlimit(RLIMIT_NOFILE, &none), 0);
	check_int(tw_engine_fd(engine), -ENOMEM);
	check_int(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert(tw_engine_fd(engine) >= 0);
	check_int(tw_engine_fd(engine), tw_engine_fd(engine));
	real_engine_close(engine);
}
