/* SPDX-License-Identifier: MIT */
/*
 * Every public function, from every place where the library runs code of its user: a callback on
 * the worker and in an executor, their finalisers, the dispatch hook, the hand-back and its
 * finaliser, and the finaliser of a cancel. Each answers as docs/threading.md says, and none hangs.
 *
 * Seen to fail: stop that knows the worker only by its thread (an executor's stop waited for
 * itself); finish without the worker's mark on its thread (the hand-back's settle hung).
 */
#include "probe.h"

#include <errno.h>
#include <string.h>

/* Where a call is made, as far as the answers differ. */
enum place { ON_WORKER, IN_EXECUTOR, IN_HAND_BACK, IN_CANCEL, PLACES };

/* When the tour begins. */
enum moment { AT_CALLBACK, AT_FINALISER, AT_DISPATCH, AT_HAND_BACK };

/* Never a result. */
#define NOT_CALLED INT64_MIN

enum { CALLS_MAX = 96 };

struct tour {
	struct fixture fixture;
	enum place place;
	enum moment moment;
	struct tw_handle self;
	struct tw_handle made;
	struct tw_handle many[2];
	struct tw_engine *other;
	struct tw_clock *other_clock;
	struct tw_due due; /* what the dispatch hook accepted */
	struct tw_retry *queue;
	struct tw_retry_handle task;
	struct tw_keyed *table;
	int64_t result[CALLS_MAX];
	int tours;
};

static atomic_int other_runs;

static int64_t call_version(struct tour *tour)
{
	(void)tour;
	return tw_version() - TW_VERSION;
}

static int64_t call_version_string(struct tour *tour)
{
	(void)tour;
	return tw_version_string() == NULL;
}

static int64_t call_strerror(struct tour *tour)
{
	(void)tour;
	return strcmp(tw_strerror(-ESTALE), tw_strerror(-EINVAL)) == 0;
}

static int64_t call_log_set(struct tour *tour)
{
	(void)tour;
	return tw_log_set(NULL);
}

static int64_t call_allocator_set(struct tour *tour)
{
	(void)tour;
	return tw_memory_allocator_set(NULL);
}

static int64_t call_cap_set(struct tour *tour)
{
	(void)tour;
	return tw_memory_cap_set(0);
}

static int64_t call_reserve(struct tour *tour)
{
	(void)tour;
	return tw_memory_reserve(1);
}

static int64_t call_slab_bytes(struct tour *tour)
{
	(void)tour;
	return tw_memory_slab_bytes() == 0;
}

static int64_t call_attach(struct tour *tour)
{
	(void)tour;
	return tw_thread_attach();
}

static int64_t call_detach(struct tour *tour)
{
	(void)tour;
	return tw_thread_detach();
}

static int64_t call_clock_create(struct tour *tour)
{
	return tw_clock_create_virtual(0, &tour->other_clock);
}

static int64_t call_clock_create_system(struct tour *tour)
{
	struct tw_clock *clock = NULL;

	(void)tour;
	if (tw_clock_create(TW_CLOCK_BOOTTIME, &clock) != 0)
		return -1;
	return tw_clock_destroy(clock);
}

static int64_t call_clock_now(struct tour *tour)
{
	return tw_clock_now(tour->fixture.clock) - tw_engine_now(tour->fixture.engine);
}

static int64_t call_clock_type(struct tour *tour)
{
	return tw_clock_type(tour->fixture.clock);
}

static int64_t call_clock_lag(struct tour *tour)
{
	return tw_clock_lag(tour->fixture.clock);
}

static int64_t call_clock_set_other(struct tour *tour)
{
	return tw_clock_set(tour->other_clock, 1);
}

static int64_t call_clock_set_own(struct tour *tour)
{
	return tw_clock_set(tour->fixture.clock, tw_engine_now(tour->fixture.engine));
}

static int64_t call_clock_destroy_own(struct tour *tour)
{
	return tw_clock_destroy(tour->fixture.clock);
}

static int64_t call_options_init(struct tour *tour)
{
	struct tw_options options;

	(void)tour;
	return tw_options_init(&options, sizeof(options));
}

static int64_t call_create(struct tour *tour)
{
	return tw_engine_create(NULL, &tour->other);
}

static int64_t call_start_other(struct tour *tour)
{
	return tw_engine_start(tour->other);
}

static int64_t call_schedule_other(struct tour *tour)
{
	return tw_schedule(tour->other, 0, &count_kind, &other_runs, NULL);
}

static int64_t call_settle_other(struct tour *tour)
{
	return tw_engine_settle(tour->other, TW_NEVER);
}

static int64_t call_stop_other(struct tour *tour)
{
	return tw_engine_stop(tour->other, NULL, NULL, TW_NEVER);
}

static int64_t call_destroy_other(struct tour *tour)
{
	return tw_engine_destroy(tour->other);
}

static int64_t call_start(struct tour *tour)
{
	return tw_engine_start(tour->fixture.engine);
}

static int64_t call_settle(struct tour *tour)
{
	return tw_engine_settle(tour->fixture.engine, TW_NEVER);
}

/* Where it is allowed, it has a test of its own. */
static int64_t call_stop(struct tour *tour)
{
	if (tour->place == IN_CANCEL)
		return NOT_CALLED;
	return tw_engine_stop(tour->fixture.engine, NULL, NULL, TW_NEVER);
}

static int64_t call_destroy(struct tour *tour)
{
	return tw_engine_destroy(tour->fixture.engine);
}

static int64_t call_now(struct tour *tour)
{
	return tw_engine_now(tour->fixture.engine) - tour->fixture.now_ns;
}

static int64_t call_pending(struct tour *tour)
{
	return tw_engine_pending(tour->fixture.engine);
}

static int64_t call_state(struct tour *tour)
{
	return tw_engine_state(tour->fixture.engine);
}

static int64_t call_stats(struct tour *tour)
{
	struct tw_stats stats = {.size = sizeof(stats)};

	return tw_stats_get(tour->fixture.engine, &stats);
}

static int64_t call_watch(struct tour *tour)
{
	return tw_engine_watch(tour->fixture.engine);
}

static int64_t call_schedule(struct tour *tour)
{
	return tw_schedule(tour->fixture.engine, TW_NEVER, &count_kind, NULL, &tour->made);
}

static int64_t call_cancel_made(struct tour *tour)
{
	return tw_cancel(tour->made);
}

static int64_t call_schedule_at(struct tour *tour)
{
	return tw_schedule_at(tour->fixture.engine, TW_NEVER, &count_kind, NULL, &tour->made);
}

static int64_t call_cancel_wait_made(struct tour *tour)
{
	return tw_cancel_wait(tour->made, TW_NEVER);
}

static const struct tw_item two[2] = {{TW_NEVER, &count_kind, NULL}, {TW_NEVER, &count_kind, NULL}};

/* What came of the second. */
static int64_t call_schedule_many(struct tour *tour)
{
	int errors[2];

	(void)tw_schedule_many(tour->fixture.engine, two, 2, tour->many, errors);
	(void)tw_cancel_many(tour->many, 2, NULL);
	(void)tw_schedule_many_at(tour->fixture.engine, two, 2, tour->many, errors);
	return errors[1];
}

static int64_t call_cancel_many(struct tour *tour)
{
	int outcomes[2];

	(void)tw_cancel_many(tour->many, 2, outcomes);
	return outcomes[1];
}

static int64_t call_cancel_self(struct tour *tour)
{
	return tw_cancel(tour->self);
}

static int64_t call_cancel_wait_self(struct tour *tour)
{
	return tw_cancel_wait(tour->self, TW_NEVER);
}

static int64_t call_reschedule_self(struct tour *tour)
{
	return tw_reschedule(tour->self, NS_PER_S);
}

static int64_t call_reschedule_at_self(struct tour *tour)
{
	return tw_reschedule_at(tour->self, 0);
}

static int64_t call_timeout_state(struct tour *tour)
{
	return tw_timeout_state(tour->self);
}

static int64_t call_timeout_get(struct tour *tour)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	int result = tw_timeout_get(tour->self, &seen);

	return result != 0 ? result : seen.arg != tour || seen.engine != tour->fixture.engine;
}

static int64_t call_due_run(struct tour *tour)
{
	(void)tour;
	return tw_due_run(NULL);
}

static int64_t call_keyed_create(struct tour *tour)
{
	return tw_keyed_create(tour->fixture.engine, NULL, &tour->table);
}

static int64_t on_key(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	(void)arg;
	return TW_KEYED_END;
}

static const struct tw_keyed_kind key_kind = TW_KEYED_KIND(on_key, NULL);

static int64_t call_keyed_schedule(struct tour *tour)
{
	return tw_keyed_schedule(tour->table, "a", 1, NS_PER_S, &key_kind, NULL, NULL);
}

static int64_t call_keyed_replace(struct tour *tour)
{
	return tw_keyed_replace(tour->table, "a", 1, NS_PER_S, &key_kind, NULL, NULL);
}

static int64_t call_keyed_reschedule(struct tour *tour)
{
	return tw_keyed_reschedule(tour->table, "a", 1, 2 * NS_PER_S);
}

static int64_t call_keyed_get(struct tour *tour)
{
	return tw_keyed_get(tour->table, "a", 1, NULL);
}

static int on_visit(void *context, const void *key, size_t key_bytes,
		    const struct tw_keyed_info *info)
{
	(void)context;
	(void)key;
	(void)key_bytes;
	(void)info;
	return 0;
}

static int64_t call_keyed_each(struct tour *tour)
{
	return tw_keyed_each(tour->table, on_visit, NULL);
}

static int64_t call_keyed_count(struct tour *tour)
{
	return tw_keyed_count(tour->table);
}

static int64_t call_keyed_cancel(struct tour *tour)
{
	return tw_keyed_cancel(tour->table, "a", 1, TW_KEYED_ANY);
}

static int64_t call_keyed_destroy(struct tour *tour)
{
	return tw_keyed_destroy(tour->table);
}

static int64_t call_retry_create(struct tour *tour)
{
	return tw_retry_create(tour->fixture.engine, NULL, &tour->queue);
}

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	(void)self;
	(void)arg;
	(void)attempt;
	return TW_RETRY_DONE;
}

static int64_t call_retry_submit(struct tour *tour)
{
	static const struct tw_retry_schedule schedule = TW_RETRY_READY(TW_RETRY_FORM_FAILBACK);
	static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, NULL, &schedule, 1);

	tour->task = (struct tw_retry_handle){0};
	return tw_retry_submit(tour->queue, NS_PER_S, &kind, NULL, &tour->task);
}

static int64_t call_retry_complete(struct tour *tour)
{
	return tw_retry_complete(tour->task, TW_RETRY_DONE);
}

static int64_t call_retry_cancel(struct tour *tour)
{
	return tw_retry_cancel(tour->task);
}

static int64_t call_retry_pending(struct tour *tour)
{
	return tw_retry_pending(tour->queue);
}

static int64_t call_retry_destroy(struct tour *tour)
{
	return tw_retry_destroy(tour->queue);
}

#define EVERYWHERE(result)                                                                         \
	{                                                                                          \
		(result), (result), (result), (result)                                             \
	}

static const struct call {
	const char *name;
	int64_t (*make)(struct tour *tour);
	/* On the worker, in an executor, in a hand-back, in a cancel's finaliser. */
	int64_t expected[PLACES];
} calls[] = {
	{"tw_version", call_version, EVERYWHERE(0)},
	{"tw_version_string", call_version_string, EVERYWHERE(0)},
	{"tw_strerror", call_strerror, EVERYWHERE(0)},
	{"tw_log_set", call_log_set, EVERYWHERE(0)},
	{"tw_memory_allocator_set", call_allocator_set, EVERYWHERE(0)},
	{"tw_memory_cap_set", call_cap_set, EVERYWHERE(0)},
	{"tw_memory_reserve", call_reserve, EVERYWHERE(0)},
	{"tw_memory_slab_bytes", call_slab_bytes, EVERYWHERE(0)},
	{"tw_thread_attach", call_attach, EVERYWHERE(0)},
	{"tw_thread_detach", call_detach, {-EBUSY, -EBUSY, -EBUSY, 0}},
	{"tw_clock_create_virtual", call_clock_create, EVERYWHERE(0)},
	{"tw_clock_create", call_clock_create_system, EVERYWHERE(0)},
	{"tw_clock_now", call_clock_now, EVERYWHERE(0)},
	{"tw_clock_type", call_clock_type, EVERYWHERE(TW_CLOCK_VIRTUAL)},
	{"tw_clock_lag", call_clock_lag, EVERYWHERE(0)},
	{"tw_clock_set, another", call_clock_set_other, EVERYWHERE(0)},
	{"tw_clock_set", call_clock_set_own, EVERYWHERE(0)},
	{"tw_clock_destroy", call_clock_destroy_own, EVERYWHERE(-EBUSY)},
	{"tw_options_init", call_options_init, EVERYWHERE(0)},
	{"tw_engine_create", call_create, EVERYWHERE(0)},
	{"tw_engine_start, another", call_start_other, EVERYWHERE(0)},
	{"tw_schedule, another", call_schedule_other, EVERYWHERE(0)},
	{"tw_engine_settle, another", call_settle_other, EVERYWHERE(0)},
	{"tw_engine_stop, another", call_stop_other, EVERYWHERE(0)},
	{"tw_engine_destroy, another", call_destroy_other, EVERYWHERE(0)},
	{"tw_engine_start", call_start, {0, 0, -ESHUTDOWN, 0}},
	{"tw_engine_settle", call_settle, {-EDEADLK, 0, -EDEADLK, 0}},
	{"tw_engine_stop", call_stop, {-EDEADLK, -EDEADLK, -EDEADLK, NOT_CALLED}},
	{"tw_engine_destroy", call_destroy, {-EDEADLK, -EDEADLK, -EDEADLK, -EBUSY}},
	{"tw_engine_now", call_now, EVERYWHERE(0)},
	{"tw_engine_pending", call_pending, EVERYWHERE(0)},
	{"tw_engine_state",
	 call_state,
	 {TW_ENGINE_RUNNING, TW_ENGINE_RUNNING, TW_ENGINE_STOPPING, TW_ENGINE_RUNNING}},
	{"tw_stats_get", call_stats, EVERYWHERE(0)},
	{"tw_engine_watch", call_watch, EVERYWHERE(-EINVAL)},
	{"tw_schedule", call_schedule, {0, 0, -ESHUTDOWN, 0}},
	{"tw_cancel", call_cancel_made, {TW_CANCEL_DONE, TW_CANCEL_DONE, -EINVAL, TW_CANCEL_DONE}},
	{"tw_schedule_at", call_schedule_at, {0, 0, -ESHUTDOWN, 0}},
	{"tw_cancel_wait",
	 call_cancel_wait_made,
	 {TW_CANCEL_DONE, TW_CANCEL_DONE, -EINVAL, TW_CANCEL_DONE}},
	{"tw_schedule_many, tw_schedule_many_at", call_schedule_many, {0, 0, -ESHUTDOWN, 0}},
	{"tw_cancel_many", call_cancel_many, {0, 0, -EINVAL, 0}},
	{"tw_cancel, its own",
	 call_cancel_self,
	 {TW_CANCEL_RUNNING, TW_CANCEL_RUNNING, TW_CANCEL_CANCELLED, TW_CANCEL_CANCELLED}},
	{"tw_cancel_wait, its own",
	 call_cancel_wait_self,
	 {TW_CANCEL_RUNNING, TW_CANCEL_RUNNING, TW_CANCEL_CANCELLED, TW_CANCEL_CANCELLED}},
	{"tw_reschedule, its own",
	 call_reschedule_self,
	 {TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_CANCELLED,
	  TW_RESCHEDULE_CANCELLED}},
	{"tw_reschedule_at, its own",
	 call_reschedule_at_self,
	 {TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_CANCELLED,
	  TW_RESCHEDULE_CANCELLED}},
	{"tw_timeout_state",
	 call_timeout_state,
	 {TW_STATE_EXPIRED, TW_STATE_EXPIRED, TW_STATE_CANCELLED, TW_STATE_CANCELLED}},
	{"tw_timeout_get", call_timeout_get, EVERYWHERE(0)},
	{"tw_due_run", call_due_run, EVERYWHERE(-EINVAL)},
	{"tw_keyed_create", call_keyed_create, EVERYWHERE(0)},
	{"tw_keyed_schedule", call_keyed_schedule, {0, 0, -ESHUTDOWN, 0}},
	{"tw_keyed_replace",
	 call_keyed_replace,
	 {TW_KEYED_REPLACED, TW_KEYED_REPLACED, -ESHUTDOWN, TW_KEYED_REPLACED}},
	{"tw_keyed_reschedule",
	 call_keyed_reschedule,
	 {TW_KEYED_DONE, TW_KEYED_DONE, TW_KEYED_ABSENT, TW_KEYED_DONE}},
	{"tw_keyed_get",
	 call_keyed_get,
	 {TW_KEYED_PRESENT, TW_KEYED_PRESENT, TW_KEYED_ABSENT, TW_KEYED_PRESENT}},
	{"tw_keyed_each", call_keyed_each, {1, 1, 0, 1}},
	{"tw_keyed_count", call_keyed_count, {1, 1, 0, 1}},
	{"tw_keyed_cancel",
	 call_keyed_cancel,
	 {TW_KEYED_DONE, TW_KEYED_DONE, TW_KEYED_ABSENT, TW_KEYED_DONE}},
	{"tw_keyed_destroy", call_keyed_destroy, EVERYWHERE(0)},
	{"tw_retry_create", call_retry_create, EVERYWHERE(0)},
	{"tw_retry_submit", call_retry_submit, {0, 0, -ESHUTDOWN, 0}},
	{"tw_retry_complete", call_retry_complete, EVERYWHERE(-EINVAL)},
	{"tw_retry_cancel",
	 call_retry_cancel,
	 {TW_RETRY_CANCEL_DONE, TW_RETRY_CANCEL_DONE, -EINVAL, TW_RETRY_CANCEL_DONE}},
	{"tw_retry_pending", call_retry_pending, EVERYWHERE(0)},
	{"tw_retry_destroy", call_retry_destroy, EVERYWHERE(0)},
};

#define CALLS ((int)(sizeof(calls) / sizeof(calls[0])))

_Static_assert(CALLS <= CALLS_MAX, "room for each result");

/* Records; the test asserts. */
static void tour_make(struct tour *tour, enum moment moment)
{
	if (tour->moment != moment)
		return;
	for (int i = 0; i < CALLS; i++)
		tour->result[i] = calls[i].make(tour);
	tour->tours++;
}

static void on_tour(struct tw_handle self, void *arg)
{
	(void)self;
	tour_make(arg, AT_CALLBACK);
}

static void on_tour_end(void *arg, enum tw_end end)
{
	(void)end;
	tour_make(arg, AT_FINALISER);
}

static const struct tw_kind tour_kind = TW_KIND(on_tour, on_tour_end);

static size_t tour_dispatch(void *context, const struct tw_due *due, size_t count)
{
	struct tour *tour = context;

	(void)count;
	tour_make(tour, AT_DISPATCH);
	tour->due = due[0];
	return tour->place == IN_EXECUTOR ? 1 : 0;
}

static void tour_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			   void *arg, int64_t remaining_ns)
{
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	tour_make(context, AT_HAND_BACK);
}

static void tour_open(struct tour *tour, enum place place, enum moment moment)
{
	struct tw_options options = fixture_options();

	memset(tour, 0, sizeof(*tour));
	if (place == IN_EXECUTOR || moment == AT_DISPATCH)
		options.dispatch = tour_dispatch;
	options.dispatch_context = tour;
	fixture_open(&tour->fixture, &options);
	tour->place = place;
	tour->moment = moment;
	/* It runs at the next boundary; what is handed back or cancelled has time. */
	tour->self = must_schedule(tour->fixture.engine, place >= IN_HAND_BACK ? NS_PER_S : 0,
				   &tour_kind, tour);
	fixture_settle(&tour->fixture);
	tour->fixture.now_ns += place >= IN_HAND_BACK ? 0 : NS_PER_MS;
}

static void tour_close(struct tour *tour)
{
	check_int(tour->tours, 1);
	for (int i = 0; i < CALLS; i++)
		cr_assert(tour->result[i] == calls[i].expected[tour->place],
			  "%s: %lld instead of %lld", calls[i].name, (long long)tour->result[i],
			  (long long)calls[i].expected[tour->place]);
	fixture_close(&tour->fixture);
	check_int(tw_clock_destroy(tour->other_clock), 0);
}

static struct tour tour;

static void expire_and_check(enum place place, enum moment moment)
{
	tour_open(&tour, place, moment);
	fixture_advance_to(&tour.fixture, tour.fixture.now_ns);
	if (place == IN_EXECUTOR)
		check_int(tw_due_run(&tour.due), 0);
	tour_close(&tour);
}

Test(callback_calls, in_a_callback_on_the_worker)
{
	expire_and_check(ON_WORKER, AT_CALLBACK);
}

Test(callback_calls, in_its_finaliser)
{
	expire_and_check(ON_WORKER, AT_FINALISER);
}

Test(callback_calls, in_the_dispatch_hook)
{
	expire_and_check(ON_WORKER, AT_DISPATCH);
}

Test(callback_calls, in_a_callback_in_an_executor)
{
	expire_and_check(IN_EXECUTOR, AT_CALLBACK);
}

Test(callback_calls, in_its_finaliser_in_an_executor)
{
	expire_and_check(IN_EXECUTOR, AT_FINALISER);
}

static void hand_back_and_check(enum moment moment)
{
	tour_open(&tour, IN_HAND_BACK, moment);
	check_int(tw_engine_stop(tour.fixture.engine, tour_hand_back, &tour, PATIENCE_NS), 0);
	tour_close(&tour);
}

Test(callback_calls, in_a_hand_back)
{
	hand_back_and_check(AT_HAND_BACK);
}

Test(callback_calls, in_the_finaliser_of_a_hand_back)
{
	hand_back_and_check(AT_FINALISER);
}

Test(callback_calls, in_the_finaliser_of_a_cancel)
{
	tour_open(&tour, IN_CANCEL, AT_FINALISER);
	check_int(tw_cancel(tour.self), TW_CANCEL_DONE);
	tour_close(&tour);
}

/* The thread that cancels is nobody's worker: its finaliser may stop the engine. */
static void on_stop_end(void *arg, enum tw_end end)
{
	struct tour *own = arg;

	if (end == TW_END_CANCELLED)
		own->result[0] = tw_engine_stop(own->fixture.engine, NULL, NULL, TW_NEVER);
}

static const struct tw_kind stop_end_kind = TW_KIND(on_tour, on_stop_end);

Test(callback_calls, stop_in_the_finaliser_of_a_cancel)
{
	struct tw_handle handle;

	memset(&tour, 0, sizeof(tour));
	fixture_open(&tour.fixture, NULL);
	handle = must_schedule(tour.fixture.engine, NS_PER_S, &stop_end_kind, &tour);
	fixture_settle(&tour.fixture);
	tour.result[0] = NOT_CALLED;
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tour.result[0], 0);
	check_int(tw_engine_state(tour.fixture.engine), TW_ENGINE_STOPPED);
	fixture_close(&tour.fixture);
}
