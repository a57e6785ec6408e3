/* SPDX-License-Identifier: MIT */
/*
 * The system's clocks must never be early, and must never go back from one thread to another. A
 * worker that sleeps by such a clock must wake up at its deadline, and other threads must be able
 * to wake it. Bad calls must be rejected.
 *
 * Seen to fail with these defects (in parentheses: the tests):
 * - the coarse clock has a lag of 0 (read_..., count_from_the_end_of_a_run);
 * - the clock of the time stamp counter has a tenth of its lag (read_..., are_never_early);
 * - the end of a chain's run is read without the lag (count_from_the_end_of_a_run);
 * - offset_raise() stores the offset although the present one is greater (never_step_back_...);
 * - a waker does not raise the eventfd after it has changed the park word (stop, and a nearer
 *   deadline);
 * - the worker does not read the eventfd (the_worker_sleeps_...).
 */
#include "asleep.h"
#include "fault.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define FOR_EACH_TYPE(type) for (int type = TW_CLOCK_MONOTONIC; type <= TW_CLOCK_TSC; type++)

static struct tw_clock *clock_open(int type)
{
	struct tw_clock *clock = NULL;

	check_int(tw_clock_create((enum tw_clock_type)type, &clock), 0);
	return clock;
}

/* Opens an engine with a tick that each of the clocks can serve. */
static struct tw_engine *engine_open(struct tw_clock *clock)
{
	struct tw_options options;
	struct tw_engine *engine = NULL;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.clock = clock;
	options.tick_ns = 10 * NS_PER_MS;
	check_int(tw_engine_create(&options, &engine), 0);
	return engine;
}

static void engine_close(struct tw_engine *engine)
{
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_books(engine);
	check_int(tw_engine_destroy(engine), 0);
}

static int64_t truth_ns(int type)
{
	struct timespec now;

	(void)clock_gettime(type == TW_CLOCK_BOOTTIME ? CLOCK_BOOTTIME : CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

Test(clocks, bad_arguments_are_rejected)
{
	struct tw_clock *clock = NULL;

	check_int(tw_clock_create(TW_CLOCK_MONOTONIC, NULL), -EINVAL);
	check_int(tw_clock_create(TW_CLOCK_VIRTUAL, &clock), -EINVAL);
	check_int(tw_clock_create((enum tw_clock_type)(TW_CLOCK_VIRTUAL + 1), &clock), -EINVAL);
	check_int(tw_clock_create((enum tw_clock_type) - 1, &clock), -EINVAL);
	check_true(clock == NULL);
	check_int(tw_clock_now(NULL), -EINVAL);
	check_int(tw_clock_type(NULL), -EINVAL);
	check_int(tw_clock_lag(NULL), -EINVAL);
}

Test(clocks, cannot_be_moved)
{
	FOR_EACH_TYPE(type)
	{
		struct tw_clock *clock = clock_open(type);

		check_int(tw_clock_set(clock, INT64_MAX - 1), -EINVAL);
		check_int(tw_clock_destroy(clock), 0);
	}
}

Test(clocks, say_what_they_count)
{
	FOR_EACH_TYPE(type)
	{
		struct tw_clock *clock = clock_open(type);

		check_true(tw_clock_type(clock) == type ||
			   (type == TW_CLOCK_TSC && tw_clock_type(clock) == TW_CLOCK_MONOTONIC));
		check_true((tw_clock_lag(clock) > 0) == (tw_clock_type(clock) == TW_CLOCK_COARSE ||
							 tw_clock_type(clock) == TW_CLOCK_TSC));
		check_int(tw_clock_destroy(clock), 0);
	}
}

/*
 * Returns how many of 100 readings or expiries may be further behind than the clock's lag allows.
 * If a hypervisor delays the kernel's tick, the coarse clock falls further behind than its lag
 * (tickwheel/clock.h).
 */
static int misses_allowed(int type)
{
	return type == TW_CLOCK_COARSE ? 10 : 0;
}

/*
 * If the thread loses its processor between two readings, their difference includes that time. So
 * the test compares each reading with a true time before it and one after it.
 */
Test(clocks, read_no_more_than_the_lag_behind_and_never_ahead)
{
	enum { READINGS = 200000 };

	FOR_EACH_TYPE(type)
	{
		struct tw_clock *clock = clock_open(type);
		int64_t lag_ns = tw_clock_lag(clock);
		int behind = 0;

		for (int i = 0; i < READINGS; i++) {
			int64_t before_ns = truth_ns(type);
			int64_t now_ns = tw_clock_now(clock);

			behind += now_ns < before_ns - lag_ns;
			check_at_most(now_ns, truth_ns(type));
		}
		check_at_most(behind, misses_allowed(type) * (READINGS / 100));
		check_int(tw_clock_destroy(clock), 0);
	}
}

/*
 * The last reading of two threads. Each thread reads the clock, compares the reading with this one,
 * and stores it here.
 */
struct baton {
	struct tw_clock *clock;
	_Atomic int64_t last_ns;
	atomic_int backs;
};

static void *baton_pass(void *argument)
{
	struct baton *baton = argument;

	for (int i = 0; i < 300000; i++) {
		int64_t last_ns = atomic_load(&baton->last_ns);
		int64_t now_ns = tw_clock_now(baton->clock);

		if (now_ns < last_ns)
			atomic_fetch_add(&baton->backs, 1);
		while (last_ns < now_ns &&
		       !atomic_compare_exchange_weak(&baton->last_ns, &last_ns, now_ns))
			;
	}
	return NULL;
}

Test(clocks, never_step_back_between_threads)
{
	FOR_EACH_TYPE(type)
	{
		struct baton baton = {.clock = clock_open(type)};
		pthread_t thread[2];

		for (int i = 0; i < 2; i++)
			check_int(pthread_create(&thread[i], NULL, baton_pass, &baton), 0);
		for (int i = 0; i < 2; i++)
			check_int(pthread_join(thread[i], NULL), 0);
		check_int(baton.backs, 0);
		check_int(tw_clock_destroy(baton.clock), 0);
	}
}

/*
 * A timeout with its deadline. Its check uses the clock's true time, not the engine's reading of
 * it.
 */
struct due {
	int type;
	int64_t deadline_ns;
	atomic_int runs;
	atomic_int early;
};

static void due_run(struct tw_handle self, void *argument)
{
	struct due *due = argument;

	(void)self;
	if (truth_ns(due->type) < due->deadline_ns)
		atomic_fetch_add(&due->early, 1);
	atomic_fetch_add(&due->runs, 1);
}

static const struct tw_kind due_kind = TW_KIND(due_run, NULL);

Test(clocks, are_never_early)
{
	enum { DUES = 200 };
	static struct due due[DUES];

	FOR_EACH_TYPE(type)
	{
		struct tw_clock *clock = clock_open(type);
		struct tw_engine *engine = engine_open(clock);
		int early = 0;

		for (int i = 0; i < DUES; i++) {
			int64_t delay_ns = i * 500 * NS_PER_US;

			due[i] = (struct due){.type = type};
			due[i].deadline_ns = truth_ns(type) + delay_ns;
			must_schedule(engine, delay_ns, &due_kind, &due[i]);
		}
		for (int i = 0; i < DUES; i++) {
			check_true(wait_until_at_least(&due[i].runs, 1));
			early += due[i].early;
		}
		check_at_most(early, misses_allowed(type) * (DUES / 100));
		engine_close(engine);
		check_int(tw_clock_destroy(clock), 0);
	}
}

/* A chain whose next deadline counts from the end of its run. Each run takes `takes_ns`. */
struct chain {
	int type;
	int64_t takes_ns;
	int64_t ended_ns;
	atomic_int runs;
	atomic_int early;
};

#define CHAIN_PERIOD_NS (NS_PER_MS / 2)

/*
 * Checks the deadline of a run. It does not check when the run began, because a run begins at a
 * tick boundary.
 */
static void chain_run(struct tw_handle self, void *argument)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	struct chain *chain = argument;

	if (tw_timeout_get(self, &seen) != 0 ||
	    (chain->ended_ns != 0 && seen.deadline_ns < chain->ended_ns + CHAIN_PERIOD_NS))
		atomic_fetch_add(&chain->early, 1);
	sleep_ns(chain->takes_ns);
	chain->ended_ns = truth_ns(chain->type);
	atomic_fetch_add(&chain->runs, 1);
}

static const struct tw_kind chain_kind = TW_KIND(chain_run, NULL);

static void chain_check(struct tw_engine *engine, const struct tw_period *period,
			struct chain chain)
{
	struct tw_handle handle;

	check_int(tw_schedule_periodic(engine, period, &chain_kind, &chain, &handle), 0);
	check_true(wait_until_at_least(&chain.runs, 3));
	check_at_least(tw_cancel_wait(handle, PATIENCE_NS), 0);
	check_at_most(chain.early, chain.type == TW_CLOCK_COARSE ? 1 : 0);
}

Test(clocks, count_from_the_end_of_a_run)
{
	FOR_EACH_TYPE(type)
	{
		struct tw_period period = TW_PERIOD_DELAY(CHAIN_PERIOD_NS);
		struct tw_clock *clock = clock_open(type);
		struct tw_engine *engine = engine_open(clock);

		chain_check(engine, &period, (struct chain){.type = type, .takes_ns = NS_PER_MS});
		/* Each run is so long that the chain's next point has passed when it ends. */
		period.mode = TW_PERIOD_FIXED_RATE;
		period.missed = TW_MISSED_DELAY;
		chain_check(engine, &period,
			    (struct chain){.type = type, .takes_ns = 15 * NS_PER_MS});
		engine_close(engine);
		check_int(tw_clock_destroy(clock), 0);
	}
}

/* The worker must sleep until the deadline with only a few turns before it, and wake up without a
 * call from another thread. */
Test(clocks, the_worker_sleeps_and_wakes_up)
{
	FOR_EACH_TYPE(type)
	{
		struct tw_clock *clock = clock_open(type);
		struct tw_engine *engine = engine_open(clock);
		struct due due = {.type = type, .deadline_ns = truth_ns(type) + 200 * NS_PER_MS};
		struct tw_stats before;

		must_schedule(engine, 200 * NS_PER_MS, &due_kind, &due);
		check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
		before = stats_of(engine);
		check_true(wait_until_at_least(&due.runs, 1));
		check_int(due.early, 0);
		check_at_most(truth_ns(type), due.deadline_ns + 2 * NS_PER_S);
		check_at_most(stats_of(engine).turns - before.turns, 20);
		engine_close(engine);
		check_int(tw_clock_destroy(clock), 0);
	}
}

/*
 * Wakes the worker again and again, so that a wake-up left over from an earlier round would show as
 * an additional turn.
 */
Test(clocks, the_worker_is_woken)
{
	FOR_EACH_TYPE(type)
	{
		struct tw_clock *clock = clock_open(type);
		struct tw_engine *engine = engine_open(clock);
		atomic_int far_runs = 0;
		struct tw_stats before;
		atomic_int runs = 0;

		must_schedule(engine, 1000 * NS_PER_S, &count_kind, &far_runs);
		for (int i = 1; i <= 10; i++) {
			check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
			must_schedule(engine, NS_PER_MS, &count_kind, &runs);
			check_true(wait_until_at_least(&runs, i));
		}
		check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
		check_true(asleep_park_await(engine));
		before = stats_of(engine);
		sleep_ns(100 * NS_PER_MS);
		check_int(stats_of(engine).turns, before.turns);
		check_int(far_runs, 0);
		engine_close(engine);
		check_int(tw_clock_destroy(clock), 0);
	}
}

Test(clocks, serve_several_engines)
{
	FOR_EACH_TYPE(type)
	{
		struct tw_clock *clock = clock_open(type);
		struct tw_engine *first = engine_open(clock);
		struct tw_engine *second = engine_open(clock);
		atomic_int runs = 0;

		must_schedule(first, NS_PER_MS, &count_kind, &runs);
		must_schedule(second, NS_PER_MS, &count_kind, &runs);
		check_true(wait_until_at_least(&runs, 2));
		engine_close(first);
		check_int(tw_clock_destroy(clock), -EBUSY);
		engine_close(second);
		check_int(tw_clock_destroy(clock), 0);
	}
}

Test(clocks, coarse_rejects_a_tick_below_its_steps)
{
	struct tw_clock *clock = clock_open(TW_CLOCK_COARSE);
	struct tw_engine *engine = NULL;
	struct tw_options options;
	struct timespec step;

	check_int(clock_getres(CLOCK_MONOTONIC_COARSE, &step), 0);
	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.clock = clock;
	options.tick_ns = (uint64_t)step.tv_nsec - 1;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.tick_ns++;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
	check_int(tw_clock_destroy(clock), 0);
}

static int lowest_free_descriptor(void)
{
	int file = dup(STDIN_FILENO);

	check_at_least(file, 0);
	check_int(close(file), 0);
	return file;
}

Test(clocks, boottime_gives_its_descriptors_back)
{
	struct tw_clock *clock = clock_open(TW_CLOCK_BOOTTIME);
	int before = lowest_free_descriptor();

	for (int i = 0; i < 100; i++) {
		struct tw_engine *engine = engine_open(clock);

		check_int(lowest_free_descriptor(), before + 2);
		check_int(tw_engine_destroy(engine), 0);
	}
	check_int(lowest_free_descriptor(), before);
	check_int(tw_clock_destroy(clock), 0);
}

/*
 * The engine needs two descriptors. In the first round the first one cannot be made, in the second
 * round the second one.
 */
Test(clocks, boottime_without_descriptors_makes_no_engine)
{
	struct tw_clock *clock = clock_open(TW_CLOCK_BOOTTIME);
	int free_descriptor = lowest_free_descriptor();
	struct rlimit limit, less;

	check_int(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int left = 0; left < 2; left++) {
		struct tw_options options;
		struct tw_engine *engine = NULL;
		int error;

		check_int(tw_options_init(&options, sizeof(options)), 0);
		options.clock = clock;
		less = limit;
		less.rlim_cur = (rlim_t)(free_descriptor + left);
		check_int(setrlimit(RLIMIT_NOFILE, &less), 0);
		error = tw_engine_create(&options, &engine);
		check_int(setrlimit(RLIMIT_NOFILE, &limit), 0);
		check_int(error, -ENOMEM);
		check_true(engine == NULL);
		check_int(lowest_free_descriptor(), free_descriptor);
	}
	check_int(tw_clock_destroy(clock), 0);
}

/*
 * If set, timerfd_create fails. The function below replaces the C library's, so tickwheel calls it
 * too.
 */
static atomic_bool no_timer;

__attribute__((visibility("default"))) int timerfd_create(clockid_t clock, int flags)
{
	errno = EINVAL;
	return atomic_load(&no_timer) ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}

Test(clocks, boottime_without_its_timer_is_not_supported)
{
	struct tw_clock *clock = clock_open(TW_CLOCK_BOOTTIME);
	struct tw_options options;
	struct tw_engine *engine = NULL;
	int before = lowest_free_descriptor();

	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.clock = clock;
	atomic_store(&no_timer, true);
	check_int(tw_engine_create(&options, &engine), -EOPNOTSUPP);
	atomic_store(&no_timer, false);
	check_int(lowest_free_descriptor(), before);
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
	check_int(tw_clock_destroy(clock), 0);
}

/* A rejected create must not allocate. A create that succeeds allocates once. */
Test(clocks, rejected_create_takes_no_memory)
{
	static struct fault memory;
	struct tw_clock *clock = NULL;

	fault_init(&memory);
	check_int(tw_memory_allocator_set(&memory.allocator), 0);
	check_int(tw_clock_create(TW_CLOCK_VIRTUAL, &clock), -EINVAL);
	check_int(atomic_load(&memory.calls), 0);
	check_int(tw_clock_create(TW_CLOCK_TSC, &clock), 0);
	check_int(atomic_load(&memory.calls), 1);
	check_int(tw_clock_destroy(clock), 0);
}
