/* SPDX-License-Identifier: MIT */
/*
 * Presences (thread/presence.h): which threads have a mark, that each quick call clears the mark,
 * and that stop waits for marks. Stop also waits for sections and pins, and must keep its limit with
 * each of them. This program replaces the system's barrier by a function that can fail.
 *
 * Seen to fail with these defects:
 * - twi_worker_finish() does not wait for presences;
 * - twi_presences_wait() goes on after a barrier that failed, or makes none;
 * - a quick call that ends, fails, or has a finaliser leaves the mark set;
 * - a thread has a mark although the system has no barrier;
 * - a forked child keeps the marks of threads that it does not have;
 * - twi_thread_release(), or a fork, leaves the thread its mark; the mark of an ending thread stays
 *   set;
 * - a loop's stop waits for presences, for a grace period or for pins beyond its limit, returns 0
 *   although its time is up, or looks at more marks or pins than there are;
 * - stop tries a forbidden barrier again and again, or does not rest between two tries.
 */
#include "check.h"
#include "child.h"
#include "fixture.h"
#include "probe.h"
#include "slowdown.h"

#include "engine/engine.h"
#include "thread/barrier.h"
#include "thread/fork.h"
#include "thread/pin.h"
#include "thread/presence.h"
#include "thread/rcu.h"
#include "thread/thread.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <tickwheel.h>
#include <unistd.h>

enum {
	STILL_MS = 50,
	/* A guest that the test does not let go in time leaves by itself. So a stop that ignores its
	 * limit returns too late, instead of never. */
	OVERSTAY_MS = 3000,
	FAILED_BARRIERS = 20,
	/* Half of the time that stop rests before it tries a barrier again. */
	REST_LEAST_NS = 50000,
};

static atomic_bool unable, forbidden;
static atomic_int failures_left, barriers;
/* When the first barrier failed, and when the latest one did. */
static _Atomic int64_t first_failure_ns, last_failure_ns;

bool twi_barrier_able(void)
{
	return !atomic_load(&unable);
}

/*
 * Returns false when the library is loaded, so that sections use fences of their own. Then only the
 * barriers for marks are counted.
 */
bool twi_barrier_register(void)
{
	static bool loaded;
	bool result = loaded && !atomic_load(&forbidden);

	loaded = true;
	return result;
}

bool twi_barrier_all(void)
{
	static atomic_bool registered;

	atomic_fetch_add(&barriers, 1);
	if (atomic_load(&forbidden))
		return false;
	if (atomic_load(&failures_left) > 0) {
		if (atomic_fetch_sub(&failures_left, 1) == FAILED_BARRIERS)
			atomic_store(&first_failure_ns, monotonic_ns());
		atomic_store(&last_failure_ns, monotonic_ns());
		return false;
	}
	if (!atomic_exchange(&registered, true))
		check_int(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0),
			  0);
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static void on_end(void *arg, enum tw_end end)
{
	(void)end;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind ended_kind = TW_KIND(on_expire, on_end);

/* The calling thread's mark: 1 if it is set, 0 if it is clear, -1 if the thread has none. */
static int own_mark(void)
{
	const struct twi_presence *presence = twi_thread()->presence;

	return presence == NULL ? -1 : (int)twi_load_relaxed(&presence->inside);
}

static struct tw_handle scheduled(struct tw_engine *engine, const struct tw_kind *kind, void *arg)
{
	struct tw_handle handle;

	check_int(tw_schedule(engine, TW_HOURS(1), kind, arg, &handle), 0);
	return handle;
}

Test(presence, each_quick_call_clears_the_mark)
{
	struct tw_engine *engine = real_engine_open(NULL);
	atomic_int fired = 0, ended = 0;
	struct tw_handle handle;

	check_int(tw_thread_attach(), 0);
	check_int(own_mark(), 0);
	/* The first schedule makes the lane's ring. The next ones take the quick path. */
	for (int i = 0; i < 3; i++) {
		handle = scheduled(engine, &count_kind, &fired);
		check_int(own_mark(), 0);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
		check_int(own_mark(), 0);
	}
	check_true(tw_cancel(handle) != TW_CANCEL_DONE);
	check_int(own_mark(), 0);
	/* A finaliser makes the cancel leave the quick path after its swap. */
	check_int(tw_cancel(scheduled(engine, &ended_kind, &ended)), TW_CANCEL_DONE);
	check_int(own_mark(), 0);
	check_int(atomic_load(&ended), 1);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_schedule(engine, 1, &count_kind, &fired, NULL), -ESHUTDOWN);
	check_int(own_mark(), 0);
	check_int(tw_engine_destroy(engine), 0);
}

/* How a guest keeps engines in memory: by its mark, by an RCU section, or by a pin on one engine. */
enum guest_way { BY_MARK, BY_SECTION, BY_PIN };

/*
 * A thread that does not let stop finish until the test lets the thread end. `leaves`: ends at once,
 * and does not clear its mark.
 */
struct guest {
	pthread_t thread;
	enum guest_way way;
	struct tw_engine *engine; /* the engine to pin */
	bool leaves;
	atomic_bool inside, may_leave;
	struct twi_presence *mark;
};

static void guest_enter(const struct guest *guest)
{
	if (guest->way == BY_SECTION)
		twi_rcu_enter();
	else if (guest->way == BY_PIN)
		twi_pin_set(twi_thread()->pin, &guest->engine->worker);
	else
		twi_presence_enter(guest->mark);
}

static void guest_leave(const struct guest *guest)
{
	if (guest->way == BY_SECTION)
		twi_rcu_leave();
	else if (guest->way == BY_PIN)
		twi_pin_clear(twi_thread()->pin);
	else
		twi_presence_leave(guest->mark);
}

static void *be_present(void *argument)
{
	struct guest *guest = argument;
	int64_t until_ns = monotonic_ns() + OVERSTAY_MS * slowdown() * NS_PER_MS;

	guest->mark = twi_thread()->presence;
	guest_enter(guest);
	atomic_store(&guest->inside, true);
	if (guest->leaves)
		return NULL;
	while (!atomic_load(&guest->may_leave) && monotonic_ns() < until_ns)
		sleep_ns(NS_PER_MS);
	guest_leave(guest);
	return NULL;
}

static void guest_begin(struct guest *guest)
{
	check_int(pthread_create(&guest->thread, NULL, be_present, guest), 0);
	while (!atomic_load(&guest->inside))
		sleep_ns(NS_PER_MS);
}

static void guest_end(struct guest *guest)
{
	atomic_store(&guest->may_leave, true);
	check_int(pthread_join(guest->thread, NULL), 0);
}

Test(presence, stop_waits_for_a_thread_inside)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct guest guest = {.mark = NULL};

	check_int(tw_engine_start(engine), 0);
	guest_begin(&guest);
	check_int(tw_engine_stop(engine, NULL, NULL, STILL_MS * NS_PER_MS), -ETIMEDOUT);
	check_true(tw_engine_state(engine) != TW_ENGINE_STOPPED);
	guest_end(&guest);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
}

static struct tw_engine *loop_open(void)
{
	struct tw_options options;
	struct tw_engine *engine;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags |= TW_ENGINE_LOOP;
	engine = real_engine_open(&options);
	check_int(tw_engine_start(engine), 0);
	return engine;
}

/* The caller finishes a loop's engine itself, so it makes the waits. */
static void loop_stop_keeps_its_limit(enum guest_way way)
{
	struct tw_engine *engine = loop_open();
	struct guest guest = {.way = way, .engine = engine};

	guest_begin(&guest);
	check_int(tw_engine_stop(engine, NULL, NULL, STILL_MS * NS_PER_MS), -ETIMEDOUT);
	check_int(tw_engine_stop(engine, NULL, NULL, 0), -ETIMEDOUT);
	check_true(tw_engine_state(engine) != TW_ENGINE_STOPPED);
	guest_end(&guest);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
}

Test(presence, stop_of_a_loop_returns_in_time_if_a_thread_is_inside)
{
	loop_stop_keeps_its_limit(BY_MARK);
}

Test(presence, stop_of_a_loop_returns_in_time_if_a_section_is_open)
{
	loop_stop_keeps_its_limit(BY_SECTION);
}

Test(presence, stop_of_a_loop_returns_in_time_if_the_engine_is_pinned)
{
	loop_stop_keeps_its_limit(BY_PIN);
}

/* No thread delays this stop, so it must succeed even with a time limit of 0. */
Test(presence, stop_of_a_loop_ends_although_its_limit_is_over)
{
	struct tw_engine *engine = loop_open();

	check_int(tw_engine_stop(engine, NULL, NULL, 0), 0);
	check_int(tw_engine_destroy(engine), 0);
}

static void on_abort(int signal_number)
{
	(void)signal_number;
	child_end(0);
}

/* The barrier is forbidden after the threads have got their marks, as when a program enters a
 * sandbox. */
static void abort_without_barrier(void)
{
	struct tw_engine *engine;
	struct tw_options options;

	child_need(tw_options_init(&options, sizeof options), 0);
	options.flags |= TW_ENGINE_LOOP;
	child_need(tw_engine_create(&options, &engine), 0);
	child_need(tw_engine_start(engine), 0);
	child_need(signal(SIGABRT, on_abort) != SIG_ERR, true);
	atomic_store(&forbidden, true);
	child_need(tw_engine_stop(engine, NULL, NULL, TW_NEVER), -EINTR);
}

Test(presence, stop_ends_the_process_if_the_barrier_is_forbidden)
{
	in_child(abort_without_barrier);
}

Test(presence, an_ending_thread_clears_its_mark)
{
	struct guest guest = {.leaves = true};

	guest_begin(&guest);
	guest_end(&guest);
	check_int(twi_load_relaxed(&guest.mark->inside), 0);
}

Test(presence, stop_repeats_a_barrier_that_failed)
{
	struct tw_engine *engine = real_engine_open(NULL);

	check_int(tw_engine_start(engine), 0);
	atomic_store(&barriers, 0);
	atomic_store(&failures_left, FAILED_BARRIERS);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(atomic_load(&failures_left), 0);
	/* Each of stop's two waits for presences needs a barrier that succeeds. */
	check_at_least(atomic_load(&barriers), FAILED_BARRIERS + 2);
	check_at_least(atomic_load(&last_failure_ns) - atomic_load(&first_failure_ns),
		       (FAILED_BARRIERS - 1) * REST_LEAST_NS);
	check_int(tw_engine_destroy(engine), 0);
}

static void *has_mark(void *argument)
{
	struct guest *guest = argument;

	check_int(tw_thread_attach(), 0);
	guest->mark = twi_thread()->presence;
	check_int(tw_thread_detach(), 0);
	atomic_store(&guest->inside, twi_thread_self.presence != NULL);
	return NULL;
}

static struct twi_presence *mark_of_next_thread(void)
{
	struct guest guest = {.mark = NULL};

	check_int(pthread_create(&guest.thread, NULL, has_mark, &guest), 0);
	check_int(pthread_join(guest.thread, NULL), 0);
	check_true(!atomic_load(&guest.inside));
	return guest.mark;
}

Test(presence, the_next_thread_gets_the_mark_of_an_ended_one)
{
	struct twi_presence *first = mark_of_next_thread();

	check_true(first != NULL);
	check_true(mark_of_next_thread() == first);
	check_int(twi_load_relaxed(&first->inside), 0);
}

static void *pair_without_mark(void *argument)
{
	struct tw_handle handle;
	atomic_int fired = 0;

	check_int(own_mark(), -1);
	for (int i = 0; i < 3; i++) {
		handle = scheduled(argument, &count_kind, &fired);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
	}
	return NULL;
}

Test(presence, without_a_barrier_threads_have_no_mark)
{
	struct tw_engine *engine;
	pthread_t thread;

	atomic_store(&unable, true);
	engine = real_engine_open(NULL);
	check_int(pthread_create(&thread, NULL, pair_without_mark, engine), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
	check_int(atomic_load(&barriers), 0);
}

static struct guest forked_guest;

static void mark_is_clear(void)
{
	child_need(twi_load_relaxed(&forked_guest.mark->inside), 0);
	/* The thread that forked is not attached here, so it has no mark. */
	child_need(twi_thread_self.presence == NULL, true);
}

Test(presence, a_forked_child_clears_the_marks_of_other_threads)
{
	check_true(twi_thread()->presence != NULL);
	twi_fork_watch();
	guest_begin(&forked_guest);
	in_child(mark_is_clear);
	check_int(twi_load_relaxed(&forked_guest.mark->inside), 1);
	guest_end(&forked_guest);
}
