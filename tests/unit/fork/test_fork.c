/* SPDX-License-Identifier: MIT */
/*
 * In a forked child the engines belong to the parent. Every call on them must return -ECHILD, and
 * none may hang.
 *
 * Seen to fail with this defect: a worker finishes its engine in the child
 * (callback_may_return_in_the_child).
 */
#include "child.h"
#include "fault.h"
#include "probe.h"

#include <errno.h>
#include <sys/mman.h>

static struct fixture fixture;
static struct probe probe;
static struct fault memory;
static struct tw_handle handle;

static void child_uses_the_engine(void)
{
	static const struct tw_period second = TW_PERIOD_RATE(NS_PER_S);
	static const struct tw_item item = {0, &probe_kind, &probe};
	struct tw_stats stats = {.size = sizeof(stats)};
	struct tw_timeout timeout = {.size = sizeof(timeout)};

	child_need(tw_schedule(fixture.engine, 1, &probe_kind, &probe, NULL), -ECHILD);
	child_need(tw_schedule_at(fixture.engine, 0, &probe_kind, &probe, NULL), -ECHILD);
	child_need(tw_schedule_periodic(fixture.engine, &second, &probe_kind, &probe, NULL),
		   -ECHILD);
	child_need(tw_period_next(handle, 0), -ECHILD);
	child_need(tw_schedule_many(fixture.engine, &item, 1, NULL, NULL), -ECHILD);
	child_need(tw_schedule_many_at(fixture.engine, &item, 1, NULL, NULL), -ECHILD);
	child_need(tw_cancel(handle), -ECHILD);
	child_need(tw_cancel_many(&handle, 1, NULL), -ECHILD);
	child_need(tw_cancel_wait(handle, TW_NEVER), -ECHILD);
	child_need(tw_reschedule(handle, 0), -ECHILD);
	child_need(tw_reschedule_at(handle, TW_NEVER), -ECHILD);
	child_need(tw_timeout_state(handle), -ECHILD);
	child_need(tw_timeout_get(handle, &timeout), -ECHILD);
	child_need(tw_engine_start(fixture.engine), -ECHILD);
	child_need(tw_engine_flush(fixture.engine, TW_NEVER), -ECHILD);
	child_need(tw_engine_pending(fixture.engine), -ECHILD);
	child_need(tw_engine_state(fixture.engine), -ECHILD);
	child_need(tw_stats_get(fixture.engine, &stats), -ECHILD);
	child_need(tw_engine_watch(fixture.engine), -ECHILD);
	child_need(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), -ECHILD);
}

static void child_asks_what_needs_no_engine(void)
{
	child_need(tw_version(), TW_VERSION);
	child_need(tw_strerror(-ECHILD) != NULL, true);
	child_need(tw_memory_slab_bytes() > 0, true);
	child_need(tw_thread_detach(), 0);
}

static void child_destroys(void)
{
	long long before_bytes = atomic_load(&memory.live_bytes);

	child_need(tw_engine_destroy(fixture.engine), 0);
	child_need(atomic_load(&memory.live_bytes) < before_bytes, true);
}

/* Ends the child normally, which runs the destructors of thread data and of the library. */
static void child_exits(void)
{
	child_uses_the_engine();
	exit(0);
}

static void open_used(void)
{
	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
}

/* Closes the engine in the parent. The child's calls must not have changed anything there. */
static void close_used(void)
{
	check_int(probe.finalised, 0);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

Test(fork, child_gets_echild_everywhere)
{
	open_used();
	in_child(child_uses_the_engine);
	close_used();
}

Test(fork, child_without_engine_calls)
{
	open_used();
	in_child(child_asks_what_needs_no_engine);
	close_used();
}

Test(fork, child_destroys_the_engine)
{
	fault_init(&memory);
	check_int(tw_memory_allocator_set(&memory.allocator), 0);
	open_used();
	in_child(child_destroys);
	close_used();
}

Test(fork, child_exits_by_exit)
{
	open_used();
	in_child(child_exits);
	close_used();
}

Test(fork, while_a_callback_runs)
{
	struct gate gate;

	open_used();
	gate_hold(&fixture, &gate);
	in_child(child_uses_the_engine);
	gate_open(&gate);
	close_used();
}

Test(fork, many_children_leave_the_parent_working)
{
	int i;

	open_used();
	for (i = 0; i < 20; i++) {
		in_child(child_uses_the_engine);
		fixture_advance(&fixture, NS_PER_MS);
	}
	close_used();
}

/*
 * In the next test, a callback forks and returns in the child, too. There its thread must end, and
 * no timeout may run or be finalised.
 */
static struct {
	atomic_int ends_in_child; /* in memory that both processes share */
	atomic_int forked;
	pid_t parent;
	_Atomic pid_t child;
} * shared;

/*
 * In the child the process ends when its last thread ends. This call prevents a sanitizer from
 * reporting the parent's memory as leaks.
 */
static void leave(void)
{
	_exit(0);
}

static void on_fork(struct tw_handle self, void *arg)
{
	pid_t child;

	(void)self;
	(void)arg;
	child = quiet_fork();
	if (child == 0) {
		alarm(30);
		(void)atexit(leave);
		return;
	}
	atomic_store(&shared->child, child);
	atomic_store(&shared->forked, 1);
}

static void on_end(void *arg, enum tw_end end)
{
	(void)arg;
	(void)end;
	if (getpid() != shared->parent)
		atomic_fetch_add(&shared->ends_in_child, 1);
}

static const struct tw_kind fork_kind = TW_KIND(on_fork, NULL);

Test(fork, callback_may_return_in_the_child)
{
	struct tw_kind ends = TW_KIND(on_fork, on_end);
	int status = 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	check_true(shared != MAP_FAILED);
	shared->parent = getpid();
	fixture_open(&fixture, NULL);
	for (int i = 0; i < 10; i++)
		must_schedule(fixture.engine, NS_PER_S, &ends, NULL);
	fflush(NULL);
	must_schedule(fixture.engine, 1, &fork_kind, NULL);
	fixture_advance(&fixture, NS_PER_MS);
	check_true(wait_until_at_least(&shared->forked, 1));
	check_int(waitpid(shared->child, &status, 0), shared->child);
	cr_assert(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	check_int(shared->ends_in_child, 0);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 10);
	fixture_close(&fixture);
	check_int(munmap(shared, sizeof(*shared)), 0);
}

static void child_makes_its_own(void)
{
	struct tw_engine *engine = NULL;

	child_need(tw_engine_create(NULL, &engine), 0);
	child_need(tw_schedule(engine, NS_PER_S, &probe_kind, &probe, NULL), 0);
	child_need(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	child_need(tw_engine_destroy(engine), 0);
}

/* If the parent never used the library, the child may use it. */
Test(fork, child_may_use_a_library_unused_by_the_parent)
{
	in_child(child_makes_its_own);
}
