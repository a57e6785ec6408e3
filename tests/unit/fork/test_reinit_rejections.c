/* SPDX-License-Identifier: MIT */
/*
 * The cases that tw_fork_reinit rejects. After a rejection nothing may have changed: the engine is
 * still the parent's. When the reason no longer applies, the engine can be taken over.
 *
 * Seen to fail with these defects: tw_fork_reinit does not check whether the fork was in a callback;
 * it makes the wheel only after it has taken over the library; it takes over the library in a
 * process that is not a child; destroy is rejected in a child that was forked in a callback.
 */
#include "fault.h"
#include "heir.h"

#include <pthread.h>

static struct fixture fixture;
static struct probe probe;
static struct tw_handle handle;
static struct fault memory;

static void open_used(const struct tw_options *options)
{
	fixture_open(&fixture, options);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
}

static void close_used(void)
{
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

/* Runs in the child, which must be able to take over the engine with all its timeouts. */
static void child_takes_over(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	heir_close(&fixture);
}

static int reinit(uint64_t flags)
{
	return tw_fork_reinit(fixture.engine, flags);
}

static void rejects_own(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	check_int(reinit(0), -EBUSY);
	check_int(reinit(TW_REINIT_KEEP), -EBUSY);
	check_int(tw_fork_reinit(NULL, 0), 0);
	/* The rejected call must not have changed anything. */
	check_int(tw_timeout_get(handle, &seen), 0);
	check_true(seen.engine == fixture.engine);
}

Test(reinit_rejections, reinit_of_an_engine_in_the_parent_is_rejected)
{
	check_int(tw_fork_reinit(NULL, 0), 0);
	check_int(tw_fork_generation(), 0);
	open_used(NULL);
	rejects_own();
	close_used();
}

static void child_asks_too_much(void)
{
	child_need(reinit(8), -EINVAL);
	child_need(reinit(UINT64_MAX), -EINVAL);
	child_need(reinit(TW_REINIT_KEEP | TW_REINIT_FINALISE), -EINVAL);
	child_need(tw_fork_reinit(NULL, 8), -EINVAL);
	child_need(tw_timeout_state(handle), -ECHILD);
	child_takes_over();
}

Test(reinit_rejections, bad_flags_are_rejected)
{
	open_used(NULL);
	in_child(child_asks_too_much);
	close_used();
}

static void child_has_it_already(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(reinit(TW_REINIT_KEEP), -EBUSY);
	child_need(reinit(0), -EBUSY);
	child_need(tw_fork_reinit(NULL, 0), 0);
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	heir_close(&fixture);
}

Test(reinit_rejections, second_reinit_of_an_engine_is_rejected)
{
	open_used(NULL);
	in_child(child_has_it_already);
	close_used();
}

static void child_finds_it_stopped(void)
{
	child_need(reinit(TW_REINIT_KEEP), -ESHUTDOWN);
	child_need(reinit(0), -ESHUTDOWN);
	child_need(tw_engine_state(fixture.engine), -ECHILD);
	child_need(tw_engine_destroy(fixture.engine), 0);
	child_need(tw_clock_destroy(fixture.clock), 0);
}

Test(reinit_rejections, stopped_engine_is_rejected)
{
	open_used(NULL);
	fixture_stop(&fixture);
	in_child(child_finds_it_stopped);
	fixture_close(&fixture);
}

/* The worker is inside a callback, so the stop is still under way. */
Test(reinit_rejections, child_finds_a_stopping_engine_stopped)
{
	struct gate gate;

	open_used(NULL);
	(void)gate_hold(&fixture, &gate);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, 0), -ETIMEDOUT);
	in_child(child_finds_it_stopped);
	gate_open(&gate);
	fixture_close(&fixture);
}

/* Calls tw_fork_reinit in a callback that the child itself runs. */
static atomic_int in_callback;

static void on_reinit(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_store(&in_callback, tw_fork_reinit(arg, TW_REINIT_KEEP));
}

static const struct tw_kind reinit_kind = TW_KIND(on_reinit, NULL);

static struct fixture other;

static void child_tries_in_a_callback(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_schedule(fixture.engine, 1, &reinit_kind, other.engine, NULL), 0);
	heir_advance(&fixture, NS_PER_MS);
	child_need(in_callback, -EDEADLK);
	heir_take(&other, 0);
	heir_close(&other);
	heir_close(&fixture);
}

Test(reinit_rejections, reinit_in_a_callback_returns_edeadlk)
{
	open_used(NULL);
	fixture_open(&other, NULL);
	in_child(child_tries_in_a_callback);
	fixture_close(&other);
	close_used();
}

/* The next test forks in a callback. So the stack frames of that callback's caller belong to the
 * parent's engine, also in the child. */
static _Atomic pid_t forked;

static void *reinit_elsewhere(void *arg)
{
	child_need(reinit(TW_REINIT_KEEP), -EDEADLK);
	return arg;
}

static void child_asks_in_two_threads(void)
{
	struct tw_engine *engine = NULL;
	pthread_t thread;

	heir_threads_begin();
	child_need(reinit(TW_REINIT_KEEP), -EDEADLK);
	child_need(tw_fork_reinit(NULL, 0), -EDEADLK);
	child_need(tw_engine_create(NULL, &engine), -EDEADLK);
	child_need(tw_default_engine() == NULL, true);
	child_need(pthread_create(&thread, NULL, reinit_elsewhere, NULL), 0);
	child_need(pthread_join(thread, NULL), 0);
	child_need(tw_timeout_state(handle), -ECHILD);
	/* Destroy must work, because the child ends without returning from the callback into the
	 * engine. */
	child_need(tw_engine_destroy(fixture.engine), 0);
}

static void on_fork(struct tw_handle self, void *arg)
{
	pid_t child = quiet_fork();

	(void)self;
	(void)arg;
	if (child == 0) {
		alarm(CHILD_SECONDS);
		child_asks_in_two_threads();
		child_end(0);
	}
	atomic_store(&forked, child);
}

static const struct tw_kind fork_kind = TW_KIND(on_fork, NULL);

Test(reinit_rejections, child_forked_in_a_callback_is_rejected)
{
	open_used(NULL);
	must_schedule(fixture.engine, 1, &fork_kind, NULL);
	fixture_advance(&fixture, NS_PER_MS);
	child_await(atomic_load(&forked));
	close_used();
}

/*
 * In the next test, another thread of the child has attached before the take-over, and uses the
 * library after it.
 */
static sem_t attached, end;

static void *use_before(void *arg)
{
	child_need(tw_thread_attach(), 0);
	sem_post(&attached);
	while (sem_wait(&end) != 0)
		;
	child_need(tw_thread_attach(), 0);
	child_need(tw_thread_detach(), 0);
	return arg;
}

static void child_has_another_thread(void)
{
	pthread_t thread;

	heir_threads_begin();
	sem_init(&attached, 0, 0);
	sem_init(&end, 0, 0);
	child_need(pthread_create(&thread, NULL, use_before, NULL), 0);
	while (sem_wait(&attached) != 0)
		;
	child_takes_over();
	sem_post(&end);
	child_need(pthread_join(thread, NULL), 0);
}

Test(reinit_rejections, another_thread_has_attached)
{
	open_used(NULL);
	in_child(child_has_another_thread);
	close_used();
}

/*
 * Tries a take-over that must fail, because its first allocation fails: the new wheel's own memory.
 */
static void child_lacks_memory(void)
{
	long long live_bytes = atomic_load(&memory.live_bytes);

	fault_arm(&memory, 1, 1);
	child_need(reinit(TW_REINIT_KEEP), -ENOMEM);
	child_need(atomic_load(&memory.failed), 1);
	child_need(atomic_load(&memory.live_bytes), live_bytes);
	child_need(tw_timeout_state(handle), -ECHILD);
	child_need(tw_engine_state(fixture.engine), -ECHILD);
	child_takes_over();
}

/*
 * Lets later allocations fail. The take-over succeeds, because the engine can work without memory
 * for slot entries and rings.
 */
static void child_lacks_memory_later(void)
{
	fault_arm(&memory, 2, 1000);
	heir_take(&fixture, TW_REINIT_KEEP);
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	child_need(atomic_load(&memory.failed) > 0, true);
	fault_disarm(&memory);
	heir_close(&fixture);
}

Test(reinit_rejections, without_memory_the_child_may_try_again)
{
	fault_init(&memory);
	check_int(tw_memory_allocator_set(&memory.allocator), 0);
	open_used(NULL);
	in_child(child_lacks_memory);
	in_child(child_lacks_memory_later);
	close_used();
}

/* No thread can be made for the kept timeouts. */
static atomic_int thread_errors;

static int make_thread(void *context, void *(*body)(void *), void *arg)
{
	pthread_t thread;
	int error;

	(void)context;
	if (atomic_load(&thread_errors) > 0) {
		atomic_fetch_sub(&thread_errors, 1);
		return EAGAIN;
	}
	error = pthread_create(&thread, NULL, body, arg);
	return error != 0 ? error : pthread_detach(thread);
}

static void child_is_stalled(void)
{
	atomic_store(&thread_errors, 1);
	child_need(reinit(TW_REINIT_KEEP), -ENOMEM);
	child_need(tw_engine_state(fixture.engine), TW_ENGINE_STALLED);
	child_need(tw_engine_pending(fixture.engine), 1);
	child_need(tw_engine_destroy(fixture.engine), -EBUSY);
	child_need(tw_engine_start(fixture.engine), 0);
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	heir_close(&fixture);
}

static void child_stops_it_stalled(void)
{
	atomic_store(&thread_errors, 1);
	child_need(reinit(TW_REINIT_KEEP), -ENOMEM);
	heir_close(&fixture);
	child_need(fixture.back.count, 1);
	child_need(probe.runs, 0);
	child_need(probe.end, TW_END_UNEXPIRED);
}

Test(reinit_rejections, reinit_without_a_thread_leaves_a_stalled_engine)
{
	struct tw_options options = fixture_options();

	options.thread = make_thread;
	open_used(&options);
	in_child(child_is_stalled);
	in_child(child_stops_it_stalled);
	close_used();
}
