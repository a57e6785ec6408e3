/* SPDX-License-Identifier: MIT */
/*
 * Groups: which engine a thread gets, calls on all engines, and failures, which must leave no
 * engine, thread or memory.
 *
 * Seen to fail with these defects:
 * - stop, or destroy, does not check whether it is inside a callback;
 * - the stop of one engine begins only when that of the previous one has ended;
 * - the engines of a failed create are not freed;
 * - a thread gets an engine that it remembers from another group, or from the time before it owned
 *   a loop;
 * - inside a callback, the thread gets an engine by its number instead of the callback's engine;
 * - a destroy succeeds while one engine is running.
 */
#include "child.h"
#include "fault.h"
#include "heir_threads.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOUR = 4, THREADS = 8, EACH = 50 };

static atomic_int runs;

static struct tw_group_options options_of(uint32_t engines)
{
	struct tw_group_options options;

	check_int(tw_group_options_init(&options, sizeof options), 0);
	options.engines = engines;
	return options;
}

static struct tw_group *group_open(const struct tw_group_options *options)
{
	struct tw_group *group = NULL;

	check_int(tw_group_create(options, &group), 0);
	check_true(group != NULL);
	return group;
}

static void group_close(struct tw_group *group)
{
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	for (int i = 0; i < tw_group_engines(group); i++)
		check_books(tw_group_engine(group, (uint32_t)i));
	check_int(tw_group_destroy(group), 0);
}

static int number_of(const struct tw_group *group, const struct tw_engine *engine)
{
	for (int i = 0; i < tw_group_engines(group); i++)
		if (tw_group_engine(group, (uint32_t)i) == engine)
			return i;
	return -1;
}

Test(group, group_has_the_engines_asked_for)
{
	static const uint32_t counts[] = {1, FOUR, TW_GROUP_AUTO};

	for (int i = 0; i < 3; i++) {
		struct tw_group_options options = options_of(counts[i]);
		struct tw_group *group = group_open(&options);
		int engines = tw_group_engines(group);

		check_at_least(engines, 1);
		if (counts[i] != TW_GROUP_AUTO)
			check_int(engines, counts[i]);
		for (int number = 0; number < engines; number++) {
			struct tw_engine *engine = tw_group_engine(group, (uint32_t)number);
			int state = tw_engine_state(engine);

			check_true(state == TW_ENGINE_STARTING || state == TW_ENGINE_RUNNING);
		}
		check_true(tw_group_engine(group, (uint32_t)engines) == NULL);
		check_true(number_of(group, tw_group_here(group)) >= 0);
		group_close(group);
	}
}

Test(group, default_group_has_an_engine_for_each_cpu)
{
	struct tw_group *group = group_open(NULL);
	cpu_set_t allowed;

	check_int(sched_getaffinity(0, sizeof allowed, &allowed), 0);
	check_int(tw_group_engines(group), CPU_COUNT(&allowed));
	group_close(group);
}

static void rejected(const struct tw_group_options *options, int code)
{
	struct tw_group *group = NULL;

	check_int(tw_group_create(options, &group), code);
	check_true(group == NULL);
}

Test(group, bad_options_are_rejected)
{
	struct {
		struct tw_group_options known;
		uint64_t unknown;
	} newer = {options_of(2), 0};
	struct tw_group_options options = options_of(0);
	struct tw_options engine;
	struct tw_group *group;

	rejected(&options, -EINVAL);
	options = options_of(TW_GROUP_MAX + 1);
	rejected(&options, -EINVAL);
	options = options_of(2);
	options.rule = TW_GROUP_BY_NODE + 1;
	rejected(&options, -EINVAL);
	options = options_of(2);
	options.flags = 4;
	rejected(&options, -EINVAL);
	options = options_of(2);
	options.reserved = 1;
	rejected(&options, -EINVAL);
	options = options_of(2);
	options.size = sizeof options - 1;
	rejected(&options, -EINVAL);
	check_int(tw_options_init(&engine, sizeof engine), 0);
	engine.tick_ns = 0;
	options = options_of(2);
	options.engine = &engine;
	rejected(&options, -EINVAL);
	check_int(tw_group_create(&options, NULL), -EINVAL);
	check_int(tw_group_options_init(NULL, sizeof options), -EINVAL);
	check_int(tw_group_options_init(&options, sizeof options - 1), -EINVAL);
	check_int(tw_group_options_init(&options, 4097), -E2BIG);
	newer.known.size = sizeof newer;
	group = group_open(&newer.known);
	group_close(group);
	newer.unknown = 1;
	rejected(&newer.known, -E2BIG);
	newer.known.size = 4097;
	rejected(&newer.known, -E2BIG);
}

/* The context of a thread hook, which makes `most` threads and then fails. */
struct maker {
	pthread_t thread[FOUR];
	int made;
	int most;
};

static int maker_hook(void *context, void *(*body)(void *arg), void *arg)
{
	struct maker *maker = context;

	if (maker->made == maker->most)
		return EPERM;
	return pthread_create(&maker->thread[maker->made++], NULL, body, arg);
}

/* Pinning must be rejected if another option decides where a worker runs, or if the options give no
 * rule by which engines get CPUs. */
Test(group, pinning_against_other_options_is_rejected)
{
	struct tw_group_options options = options_of(2);
	struct tw_options engine;
	cpu_set_t set;

	options.flags = TW_GROUP_PINNED;
	rejected(&options, -EINVAL);
	options.rule = TW_GROUP_BY_CPU;
	options.engine = &engine;
	check_int(tw_options_init(&engine, sizeof engine), 0);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	engine.cpu_set = &set;
	engine.cpu_set_bytes = sizeof set;
	rejected(&options, -EINVAL);
	check_int(tw_options_init(&engine, sizeof engine), 0);
	engine.thread = maker_hook;
	rejected(&options, -EINVAL);
	check_int(tw_options_init(&engine, sizeof engine), 0);
	engine.flags = TW_ENGINE_LOOP;
	rejected(&options, -EINVAL);
}

Test(group, null_in_every_call)
{
	struct tw_stats stats = {.size = sizeof stats};
	static const struct tw_period second = TW_PERIOD_RATE(NS_PER_S);
	struct tw_group *group = group_open(NULL);

	check_int(tw_group_schedule(NULL, 1, &count_kind, &runs, NULL), -EINVAL);
	check_int(tw_group_schedule_at(NULL, 0, &count_kind, &runs, NULL), -EINVAL);
	check_int(tw_group_schedule_periodic(NULL, &second, &count_kind, &runs, NULL), -EINVAL);
	check_int(tw_group_engines(NULL), -EINVAL);
	check_int(tw_group_pending(NULL), -EINVAL);
	check_int(tw_group_stats_get(NULL, &stats), -EINVAL);
	check_int(tw_group_stats_get(group, NULL), -EINVAL);
	stats.size = 4097;
	check_int(tw_group_stats_get(group, &stats), -EINVAL);
	check_int(tw_group_stop(NULL, NULL, NULL, 0), -EINVAL);
	check_int(tw_group_destroy(NULL), 0);
	check_true(tw_group_engine(NULL, 0) == NULL);
	check_true(tw_group_here(NULL) == NULL);
	group_close(group);
}

Test(group, a_start_that_fails_leaves_nothing)
{
	for (int most = 0; most < FOUR; most++) {
		struct tw_group_options options = options_of(FOUR);
		struct maker maker = {.most = most};
		struct tw_options engine;

		check_int(tw_options_init(&engine, sizeof engine), 0);
		engine.thread = maker_hook;
		engine.thread_context = &maker;
		options.engine = &engine;
		rejected(&options, -EPERM);
		/* The threads that were made must have ended. */
		check_int(maker.made, most);
		for (int i = 0; i < most; i++)
			check_int(pthread_join(maker.thread[i], NULL), 0);
	}
}

Test(group, a_create_that_fails_leaves_nothing)
{
	struct tw_group_options options = options_of(3);
	struct tw_group *group = NULL;
	struct fault fault;
	int failures = 0;
	int error;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	do {
		fault_arm(&fault, ++failures, 1);
		error = tw_group_create(&options, &group);
		fault_disarm(&fault);
		if (error != 0) {
			check_int(error, -ENOMEM);
			check_true(group == NULL);
			check_int(fault.live_bytes, 0);
		}
	} while (error != 0);
	/* The group allocates once, and each engine several times. */
	check_at_least(failures, 7);
	group_close(group);
	check_int(fault.live_bytes, 0);
	check_int(tw_memory_allocator_set(NULL), 0);
}

/* A virtual clock can serve only one engine, so the group must not be created. */
Test(group, virtual_clock_serves_a_group_of_one_engine_only)
{
	struct tw_group_options options = options_of(2);
	struct tw_options engine;
	struct tw_clock *clock;
	struct tw_group *group;

	check_int(tw_clock_create_virtual(0, &clock), 0);
	check_int(tw_options_init(&engine, sizeof engine), 0);
	engine.clock = clock;
	options.engine = &engine;
	rejected(&options, -EBUSY);
	options.engines = 1;
	group = group_open(&options);
	check_int(tw_group_schedule(group, 1, &count_kind, &runs, NULL), 0);
	check_int(tw_group_schedule_at(group, TW_NEVER, &count_kind, &runs, NULL), 0);
	check_int(tw_clock_set(clock, NS_PER_MS), 0);
	check_int(tw_engine_flush(tw_group_engine(group, 0), PATIENCE_NS), 0);
	check_int(runs, 1);
	check_int(tw_group_pending(group), 1);
	group_close(group);
	check_int(tw_clock_destroy(clock), 0);
}

/* The timeouts that one thread schedules, and the engine that it gets. */
struct producer {
	struct tw_group *group;
	struct tw_handle handle[EACH];
	struct tw_engine *here;
	int changes;
	int rejected;
};

static void *produce(void *argument)
{
	struct producer *producer = argument;

	producer->here = tw_group_here(producer->group);
	for (int i = 0; i < EACH; i++) {
		producer->changes += tw_group_here(producer->group) != producer->here;
		producer->rejected +=
			tw_group_schedule(producer->group, NS_PER_S * 3600, &count_kind, &runs,
					  &producer->handle[i]) != 0;
	}
	return NULL;
}

static void produce_all(struct tw_group *group, struct producer *producers)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		producers[i] = (struct producer){.group = group};
		check_int(pthread_create(&thread[i], NULL, produce, &producers[i]), 0);
		/*
		 * The threads run one after the other, because they get their numbers in the order
		 * in which they begin.
		 */
		check_int(pthread_join(thread[i], NULL), 0);
		check_int(producers[i].rejected, 0);
	}
}

Test(group, threads_are_dealt_out)
{
	struct tw_group_options options = options_of(FOUR);
	struct tw_group *group = group_open(&options);
	static struct producer producers[THREADS];
	struct tw_stats stats = {.size = sizeof stats};

	produce_all(group, producers);
	for (int i = 0; i < THREADS; i++) {
		check_int(producers[i].changes, 0);
		/* Each thread must get the same engine as the thread FOUR numbers before it. */
		if (i >= FOUR)
			check_true(producers[i].here == producers[i - FOUR].here);
	}
	for (uint32_t i = 0; i < FOUR; i++)
		check_int(tw_engine_pending(tw_group_engine(group, i)), EACH * THREADS / FOUR);
	check_int(tw_group_pending(group), EACH * THREADS);
	/* Cancels in a thread that scheduled none of these timeouts. */
	for (int i = 0; i < THREADS; i++)
		check_int(tw_cancel_many(producers[i].handle, EACH, NULL), EACH);
	check_int(tw_group_stats_get(group, &stats), 0);
	check_int(stats.scheduled, EACH * THREADS);
	check_int(stats.cancelled, EACH * THREADS);
	check_int(stats.pending, 0);
	group_close(group);
}

/* Uses two groups in turn, because a thread remembers an engine of only one group. */
Test(group, thread_finds_its_engines_in_two_groups_in_turn)
{
	struct tw_group_options options = options_of(3);
	struct tw_group *one = group_open(&options);
	struct tw_group *two = group_open(&options);
	struct tw_engine *first = tw_group_here(one);

	for (int i = 0; i < 10; i++) {
		check_true(number_of(two, tw_group_here(two)) >= 0);
		check_true(tw_group_here(one) == first);
	}
	group_close(one);
	group_close(two);
}

/* In the next test, the thread's engine inside a callback must be the callback's own. */
struct inside {
	struct tw_group *group;
	struct tw_engine *engine;
	atomic_int wrong;
	atomic_int done;
	atomic_int stopped; /* the result of stop */
	atomic_int destroyed;
};

static void on_inside(struct tw_handle self, void *arg)
{
	struct inside *inside = arg;

	(void)self;
	if (tw_group_here(inside->group) != inside->engine ||
	    tw_group_schedule(inside->group, TW_NEVER, &count_kind, &runs, NULL) != 0 ||
	    tw_engine_pending(inside->engine) != 1)
		atomic_fetch_add(&inside->wrong, 1);
	atomic_store(&inside->stopped, tw_group_stop(inside->group, NULL, NULL, TW_NEVER));
	atomic_store(&inside->destroyed, tw_group_destroy(inside->group));
	atomic_fetch_add(&inside->done, 1);
}

static const struct tw_kind inside_kind = TW_KIND(on_inside, NULL);

static void callbacks_check(uint32_t rule)
{
	struct tw_group_options options = options_of(FOUR);
	struct inside inside[FOUR];
	struct tw_group *group;

	options.rule = rule;
	group = group_open(&options);
	for (uint32_t i = 0; i < FOUR; i++) {
		memset(&inside[i], 0, sizeof inside[i]);
		inside[i].group = group;
		inside[i].engine = tw_group_engine(group, i);
		must_schedule(inside[i].engine, 1, &inside_kind, &inside[i]);
	}
	for (uint32_t i = 0; i < FOUR; i++) {
		check_true(wait_until_at_least(&inside[i].done, 1));
		check_int(inside[i].wrong, 0);
		check_int(inside[i].stopped, -EDEADLK);
		check_int(inside[i].destroyed, -EDEADLK);
	}
	/* The rejected calls must not have begun to stop any engine. */
	for (uint32_t i = 0; i < FOUR; i++)
		check_int(tw_engine_state(tw_group_engine(group, i)), TW_ENGINE_RUNNING);
	check_int(tw_group_destroy(group), -EBUSY);
	group_close(group);
}

Test(group, callbacks_are_at_home)
{
	callbacks_check(TW_GROUP_BY_THREAD);
	callbacks_check(TW_GROUP_BY_CPU);
	callbacks_check(TW_GROUP_BY_NODE);
}

static void hand_back_count(void *context, struct tw_handle handle, const struct tw_kind *kind,
			    void *arg, int64_t remaining_ns)
{
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add((atomic_int *)context, 1);
}

Test(group, stop_hands_back_of_all)
{
	struct tw_group_options options = options_of(FOUR);
	struct tw_group *group = group_open(&options);
	static struct producer producers[THREADS];
	struct tw_stats stats = {.size = sizeof stats};
	atomic_int back = 0;

	produce_all(group, producers);
	check_int(tw_group_stop(group, hand_back_count, &back, PATIENCE_NS), 0);
	check_int(back, EACH * THREADS);
	check_int(tw_group_stop(group, hand_back_count, &back, 0), 0);
	check_int(tw_group_stats_get(group, &stats), 0);
	check_int(stats.unexpired, EACH * THREADS);
	check_int(tw_group_schedule(group, 1, &count_kind, &runs, NULL), -ESHUTDOWN);
	check_int(tw_group_pending(group), 0);
	check_int(tw_group_destroy(group), 0);
}

Test(group, lazy_engines_start_one_by_one)
{
	struct tw_group_options options = options_of(FOUR);
	struct tw_group *group;
	int started = 0;

	options.flags = TW_GROUP_LAZY;
	group = group_open(&options);
	check_int(tw_engine_state(tw_group_here(group)), TW_ENGINE_NEW);
	check_int(tw_group_schedule(group, TW_NEVER, &count_kind, &runs, NULL), 0);
	for (uint32_t i = 0; i < FOUR; i++)
		started += tw_engine_state(tw_group_engine(group, i)) != TW_ENGINE_NEW;
	check_int(started, 1);
	group_close(group);
	/* Does the same with a group whose engines were never started. */
	group = group_open(&options);
	check_int(tw_group_destroy(group), 0);
}

/*
 * In the next test, each loop has its own thread. Inside a bracket, a thread's engine must be that
 * loop's, even if it had another one before.
 */
struct owner {
	struct tw_group *group;
	uint32_t number;
	bool home;
	int64_t polled;
};

static void *own(void *argument)
{
	struct owner *owner = argument;
	struct tw_engine *engine = tw_group_engine(owner->group, owner->number);

	(void)tw_group_here(owner->group);
	if (tw_loop_enter(engine) != 0)
		return NULL;
	owner->home = tw_group_here(owner->group) == engine;
	(void)tw_group_schedule_at(owner->group, 0, &count_kind, &runs, NULL);
	sleep_ns(2 * NS_PER_MS);
	owner->polled = tw_engine_poll(engine, 0);
	(void)tw_loop_exit(engine);
	return NULL;
}

Test(group, owner_of_a_loop_schedules_on_its_own_engine)
{
	struct tw_group_options options = options_of(FOUR);
	struct owner owner[FOUR];
	struct tw_options engine;
	struct tw_group *group;

	check_int(tw_options_init(&engine, sizeof engine), 0);
	engine.flags = TW_ENGINE_LOOP;
	options.engine = &engine;
	group = group_open(&options);
	for (uint32_t i = 0; i < FOUR; i++) {
		pthread_t thread;

		/*
		 * Goes from the last loop to the first, so that not every thread has had its own
		 * engine before.
		 */
		owner[i] = (struct owner){.group = group, .number = FOUR - 1 - i};
		check_int(tw_engine_state(tw_group_engine(group, owner[i].number)), TW_ENGINE_NEW);
		check_int(pthread_create(&thread, NULL, own, &owner[i]), 0);
		check_int(pthread_join(thread, NULL), 0);
		check_true(owner[i].home);
		check_int(owner[i].polled, 1);
	}
	group_close(group);
}

Test(group, periodic_runs_count_and_lateness_is_the_greatest)
{
	static const struct tw_period period = TW_PERIOD_RATE(2 * NS_PER_MS);
	struct tw_group_options options = options_of(2);
	struct tw_group *group = group_open(&options);
	struct tw_handle handle;
	struct tw_stats stats = {.size = sizeof stats};
	atomic_int late = 0;
	/*
	 * Half of the uptime. The machine may have started a minute ago, and a deadline below 0
	 * counts as 0.
	 */
	int64_t late_by_ns = monotonic_ns() / 2;

	runs = 0;
	check_int(tw_group_schedule_periodic(group, &period, &count_kind, &runs, &handle), 0);
	check_true(wait_until_at_least(&runs, 5));
	check_int(tw_group_pending(group), 1);
	check_true(tw_cancel_wait(handle, PATIENCE_NS) == TW_CANCEL_DONE);
	check_int(tw_group_stats_get(group, &stats), 0);
	check_at_least(stats.periodic_runs, 5);
	/* The group's lateness must be the greatest of its engines, not the sum. */
	for (uint32_t i = 0; i < 2; i++)
		must_schedule_at(tw_group_engine(group, i), monotonic_ns() - late_by_ns,
				 &count_kind, &late);
	check_true(wait_until_at_least(&late, 2));
	check_int(tw_group_stats_get(group, &stats), 0);
	check_at_least(stats.latest_ns, late_by_ns);
	check_at_most(stats.latest_ns, late_by_ns + late_by_ns / 2);
	group_close(group);
}

/* In a forked child all engines belong to the parent, and the child must be able to free them. */
Test(group, calls_in_a_forked_child_return_echild)
{
	struct tw_group_options options = options_of(2);
	struct tw_group *another = NULL;
	struct tw_group *group;
	struct tw_stats stats = {.size = sizeof stats};
	int status = 0;
	pid_t child;

	if (!heir_threads_possible())
		return;
	group = group_open(&options);
	child = quiet_fork();
	if (child == 0)
		heir_threads_begin();
	if (child == 0) {
		bool good = tw_group_schedule(group, 1, &count_kind, &runs, NULL) == -ECHILD &&
			    tw_group_schedule_at(group, 0, &count_kind, &runs, NULL) == -ECHILD &&
			    tw_group_pending(group) == -ECHILD &&
			    tw_group_stats_get(group, &stats) == -ECHILD &&
			    tw_group_stop(group, NULL, NULL, TW_NEVER) == -ECHILD &&
			    tw_group_destroy(group) == 0 &&
			    tw_group_create(&options, &another) == 0 &&
			    tw_group_stop(another, NULL, NULL, TW_NEVER) == 0 &&
			    tw_group_destroy(another) == 0;

		child_end(good ? 0 : 1);
	}
	check_int(waitpid(child, &status, 0), child);
	check_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	group_close(group);
}
