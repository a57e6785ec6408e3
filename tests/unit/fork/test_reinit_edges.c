/* SPDX-License-Identifier: MIT */
/*
 * Rare cases of a take-over: engines in each state that allows it, flags that are set in a state
 * word at the fork, and the rule that a child keeps no memory or descriptor of the parent's engine.
 *
 * Seen to fail with these defects:
 * - an engine in STALLED, or in FAILED, is rejected;
 * - QUEUED stays set in a state word, so a reschedule to an earlier time is not filed;
 * - RESCHEDULED stays set after a chain's run, so the chain's grid moves by the jitter;
 * - the parent's rings, wheel or descriptor are not given back; if the take-over fails, the new
 *   wheel is not given back;
 * - the child calls the finaliser of a kind that has none;
 * - a thread still counts as inside a finaliser.
 */
#include "fault.h"
#include "heir.h"

#include "footprint.h"

#include <pthread.h>
#include <sys/resource.h>

static struct fixture fixture;
static struct probe probe;
static struct tw_handle handle;
static struct fault memory;

static void open_with_handlers(const struct tw_options *options)
{
	fixture_open(&fixture, options);
}

/* The next tests take over engines in each state that allows it. */

static bool threads_fail;
static pthread_t made; /* the worker's thread, which the test joins */

static int make_thread(void *context, void *(*body)(void *), void *arg)
{
	(void)context;
	return threads_fail ? EAGAIN : pthread_create(&made, NULL, body, arg);
}

static void child_has_threads(void)
{
	threads_fail = false;
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_state(fixture.engine), TW_ENGINE_NEW);
	child_need(tw_schedule(fixture.engine, 1, &probe_kind, &probe, NULL), 0);
	heir_advance(&fixture, NS_PER_MS);
	child_need(probe.runs, 1);
	heir_close(&fixture);
	child_need(pthread_join(made, NULL), 0);
}

Test(reinit_edges, stalled_engine_can_be_taken_over)
{
	struct tw_options options = fixture_options();

	options.thread = make_thread;
	threads_fail = true;
	open_with_handlers(&options);
	probe_init(&probe, fixture.engine);
	check_int(tw_schedule(fixture.engine, 1, &probe_kind, &probe, NULL), -ENOMEM);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STALLED);
	in_child(child_has_threads);
	fixture_destroy(&fixture);
}

static void on_end_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	pthread_exit(NULL);
}

static const struct tw_kind end_thread_kind = TW_KIND(on_end_thread, NULL);

static void child_revives(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_state(fixture.engine) != TW_ENGINE_FAILED, true);
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	heir_close(&fixture);
	child_need(pthread_join(made, NULL), 0);
}

Test(reinit_edges, failed_engine_can_be_taken_over)
{
	struct tw_options options = fixture_options();

	/* The test makes the thread itself, so that it can join it. */
	options.thread = make_thread;
	open_with_handlers(&options);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	must_schedule(fixture.engine, 1, &end_thread_kind, NULL);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns += fixture.tick_ns), 0);
	check_int(pthread_join(made, NULL), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_FAILED);
	in_child(child_revives);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 1);
	check_int(pthread_join(made, NULL), 0);
	fixture_close(&fixture);
}

/* The next tests fork while a flag is set in a state word. */

static void child_hastens_again(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_reschedule(handle, 10 * NS_PER_MS), TW_RESCHEDULE_DONE);
	heir_advance(&fixture, 12 * NS_PER_MS);
	child_need(probe.runs, 1);
	heir_close(&fixture);
}

/* A callback holds the worker, so the reschedule stays queued at the fork. */
Test(reinit_edges, reschedule_queued_at_the_fork_can_be_repeated)
{
	struct gate gate;

	open_with_handlers(NULL);
	handle = probe_schedule(&fixture, &probe, 9 * NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	(void)gate_hold(&fixture, &gate);
	check_int(tw_reschedule(handle, NS_PER_S), TW_RESCHEDULE_DONE);
	in_child(child_hastens_again);
	gate_open(&gate);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

enum { RUNS = 40 };

#define PERIOD_NS (100 * NS_PER_MS)
#define JITTER_NS (PERIOD_NS / 2)

static struct gate gate_in_run;

static void on_stand(struct tw_handle self, void *arg)
{
	struct probe *own = arg;

	if (atomic_fetch_add(&own->runs, 1) == 1)
		gate_kind.callback(self, &gate_in_run);
}

static const struct tw_kind standing_kind = TW_KIND(on_stand, NULL);

/* Checks that each deadline is at a point of the grid, or later by at most the jitter. */
static void child_keeps_its_points(void)
{
	struct tw_timeout seen = {.size = sizeof seen};
	int64_t point_ns = 3 * PERIOD_NS;

	heir_take(&fixture, TW_REINIT_KEEP);
	for (int i = 0; i < RUNS; i++) {
		child_need(tw_timeout_get(handle, &seen), 0);
		child_need(seen.deadline_ns >= point_ns, true);
		child_need(seen.deadline_ns <= point_ns + JITTER_NS, true);
		heir_advance_to(&fixture, seen.deadline_ns + fixture.tick_ns);
		child_need(probe.runs, i + 3);
		point_ns += PERIOD_NS;
	}
	heir_close(&fixture);
}

/*
 * The parent reschedules the chain to a point of its grid, and is then in the chain's second run at
 * the fork. That run belongs to the parent.
 */
Test(reinit_edges, child_leaves_the_running_run_of_a_chain_to_its_parent)
{
	struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	period.jitter_ppm = 500000;
	period.seed = 3;
	open_with_handlers(NULL);
	probe_init(&probe, fixture.engine);
	gate_init(&gate_in_run);
	check_int(tw_schedule_periodic(fixture.engine, &period, &standing_kind, &probe, &handle),
		  0);
	fixture_advance_to(&fixture, PERIOD_NS + JITTER_NS + NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(tw_reschedule_at(handle, 2 * PERIOD_NS), TW_RESCHEDULE_DONE);
	fixture_flush(&fixture);
	fixture.now_ns = 2 * PERIOD_NS + fixture.tick_ns;
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	gate_await(&gate_in_run);
	in_child(child_keeps_its_points);
	gate_open(&gate_in_run);
	fixture_close(&fixture);
}

/* The next tests check that the child gives back the parent's memory and descriptors. */

static void child_leaves_slabs_alone(void)
{
	heir_take(&fixture, TW_REINIT_FINALISE);
	/* The detach works only if the thread no longer counts as inside a finaliser. */
	child_need(tw_thread_detach(), 0);
	child_need(probe.finalised, 1);
	child_need(heir_stats(&fixture).wheel_bytes > 0, true);
	heir_close(&fixture);
	child_need(atomic_load(&memory.live_bytes), tw_memory_slab_bytes());
	child_need(atomic_load(&memory.bad_releases), 0);
}

Test(reinit_edges, nothing_of_the_parents_is_left)
{
	atomic_int runs = 0;

	fault_init(&memory);
	check_int(tw_memory_allocator_set(&memory.allocator), 0);
	open_with_handlers(NULL);
	/* These timeouts need a ring, and more memory than the wheel itself. */
	for (int i = 0; i < 5000; i++)
		must_schedule(fixture.engine, (1 + i % 100) * NS_PER_S, &count_kind, &runs);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	in_child(child_leaves_slabs_alone);
	fixture_close(&fixture);
}

static void child_has_one_descriptor_for_another(void)
{
	struct footprint before = footprint_take(), after;

	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_fd(fixture.engine) >= 0, true);
	after = footprint_take();
	child_need(after.descriptors, before.descriptors);
	heir_close(&fixture);
	after = footprint_take();
	child_need(after.descriptors, before.descriptors - 1);
}

Test(reinit_edges, descriptors_of_a_loop)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	open_with_handlers(&options);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	check_at_least(tw_engine_fd(fixture.engine), 0);
	in_child(child_has_one_descriptor_for_another);
	fixture_close(&fixture);
}

/* An engine with CLOCK_BOOTTIME needs its own descriptors in each process. */
static struct tw_engine *real;

static void child_lacks_descriptors(void)
{
	long long live_bytes = atomic_load(&memory.live_bytes);
	struct rlimit limit, none;

	heir_threads_begin();
	child_need(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	child_need(setrlimit(RLIMIT_NOFILE, &none), 0);
	child_need(tw_fork_reinit(real, TW_REINIT_KEEP), -ENOMEM);
	child_need(atomic_load(&memory.live_bytes), live_bytes);
	child_need(tw_timeout_state(handle), -ECHILD);
	child_need(setrlimit(RLIMIT_NOFILE, &limit), 0);
	child_need(tw_fork_reinit(real, TW_REINIT_KEEP), 0);
	child_need(tw_reschedule(handle, NS_PER_MS), TW_RESCHEDULE_DONE);
	child_need(wait_until_at_least(&probe.runs, 1), true);
	child_need(tw_engine_stop(real, NULL, NULL, TW_NEVER), 0);
	child_need(tw_engine_destroy(real), 0);
}

Test(reinit_edges, without_descriptors_the_child_may_try_again)
{
	struct tw_options options;
	struct tw_clock *clock;

	fault_init(&memory);
	check_int(tw_memory_allocator_set(&memory.allocator), 0);
	check_int(tw_clock_create(TW_CLOCK_BOOTTIME, &clock), 0);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.clock = clock;
	real = real_engine_open(&options);
	probe_init(&probe, real);
	handle = must_schedule(real, 3600 * NS_PER_S, &probe_final_kind, &probe);
	check_int(tw_engine_flush(real, TW_NEVER), 0);
	in_child(child_lacks_descriptors);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	real_engine_close(real);
	check_int(tw_clock_destroy(clock), 0);
}
