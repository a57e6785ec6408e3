/* SPDX-License-Identifier: MIT */
/*
 * Calls each public function in a forked child with objects of the parent, and compares the results
 * with a table. The test also compares the table with the list of exported functions, so that a new
 * function needs a row. All calls together must end in time, whether the worker sleeps or is in a
 * callback at the fork.
 *
 * Seen to fail with these defects: tw_timeout_state, or tw_retry_pending, does not check for a
 * fork.
 */
#include "child.h"
#include "exported.h"
#include "heir_threads.h"
#include "probe.h"

#include <errno.h>
#include <string.h>

/* In a row, instead of the expected result: the call may return any number that is not an error
 * code. */
#define A_NUMBER INT64_C(1000000)
/* The call may return -ECHILD or any number, because some children have taken over the library
 * before it. */
#define UNTIL_TAKEN (A_NUMBER + 1)

static struct fixture fixture, looped;
static tw_id an_id;
static struct probe probe;
static struct tw_handle handle;
static struct tw_clock *idle_clock;
static struct tw_retry *queue;
static struct tw_retry_handle task;
static struct tw_keyed *table;
static struct tw_group *group;
static struct tw_scope *scope;
static struct tw_scaled *scaled;
static struct tw_handle scaled_handle;

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	(void)self;
	(void)arg;
	(void)attempt;
	return TW_RETRY_PENDING;
}

static const struct tw_retry_schedule failback = TW_RETRY_READY(TW_RETRY_FORM_FAILBACK);
static const struct tw_retry_kind task_kind = TW_RETRY_KIND(on_attempt, NULL, &failback, 0);

static int64_t on_key(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	(void)arg;
	return TW_KEYED_END;
}

static const struct tw_keyed_kind key_kind = TW_KEYED_KIND(on_key, NULL);

static int on_visit(void *context, const void *key, size_t key_bytes,
		    const struct tw_keyed_info *info)
{
	(void)context;
	(void)key;
	(void)key_bytes;
	(void)info;
	return 0;
}

static const struct tw_period second = TW_PERIOD_RATE(NS_PER_S);
static const struct tw_item item = {.kind = &probe_kind, .arg = &probe};

/* Calls for rows that need more than an expression. */

static int64_t call_create(void)
{
	struct tw_engine *engine = NULL;
	int error = tw_engine_create(NULL, &engine);

	return error != 0 ? error : tw_engine_destroy(engine);
}

static int64_t call_clock_create(void)
{
	struct tw_clock *clock = NULL;
	int error = tw_clock_create(TW_CLOCK_MONOTONIC, &clock);

	return error != 0 ? error : tw_clock_destroy(clock);
}

static int64_t call_clock_create_virtual(void)
{
	struct tw_clock *clock = NULL;
	int error = tw_clock_create_virtual(0, &clock);

	return error != 0 ? error : tw_clock_destroy(clock);
}

static int64_t call_timeout_get(void)
{
	struct tw_timeout timeout = {.size = sizeof timeout};

	return tw_timeout_get(handle, &timeout);
}

static int64_t call_stats(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	return tw_stats_get(fixture.engine, &stats);
}

static int64_t call_due_run(void)
{
	const struct tw_due due = {.handle = handle, .kind = &probe_kind};

	return tw_due_run(&due);
}

static int64_t call_options(void)
{
	struct tw_options options;

	return tw_options_init(&options, sizeof options);
}

static int64_t call_retry_options(void)
{
	struct tw_retry_options options;

	return tw_retry_options_init(&options, sizeof options);
}

static int64_t call_retry_create(void)
{
	struct tw_retry *made = NULL;

	return tw_retry_create(fixture.engine, NULL, &made);
}

static int64_t call_retry_delay(void)
{
	return tw_retry_delay(&failback, 1);
}

static int64_t call_keyed_create(void)
{
	struct tw_keyed *made = NULL;

	return tw_keyed_create(fixture.engine, NULL, &made);
}

static int64_t call_keyed_options(void)
{
	struct tw_keyed_options options;

	return tw_keyed_options_init(&options, sizeof options);
}

static int64_t call_group_create(void)
{
	struct tw_group *made = NULL;
	int error = tw_group_create(NULL, &made);

	if (error == 0)
		error = tw_group_stop(made, NULL, NULL, TW_NEVER);
	return error != 0 ? error : tw_group_destroy(made);
}

static int64_t call_group_options(void)
{
	struct tw_group_options options;

	return tw_group_options_init(&options, sizeof options);
}

static int64_t call_group_stats(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	return tw_group_stats_get(group, &stats);
}

static int64_t call_scope_create(void)
{
	struct tw_scope *made = NULL;

	return tw_scope_create(fixture.engine, NULL, &made);
}

static int64_t call_scaled_create(void)
{
	struct tw_scaled *made = NULL;

	return tw_scaled_create(fixture.engine, 0, 1, &made);
}

static int64_t call_scaled_deadline(void)
{
	int64_t deadline_ns;

	return tw_scaled_deadline(scaled, scaled_handle, &deadline_ns);
}

static int64_t call_scaled_factor_get(void)
{
	double factor;

	return tw_scaled_factor_get(fixture.engine, &factor);
}

static void on_text(void *context, const char *text, size_t bytes)
{
	(void)context;
	(void)text;
	(void)bytes;
}

static struct tw_histogram histogram = {.size = sizeof histogram};

static int64_t call_stats_print(void)
{
	static struct tw_stats stats = {.size = sizeof stats};
	const struct tw_reading reading = {.engine = "fork", .stats = &stats};

	return tw_stats_print(&reading, 1, TW_PRINT_PROMETHEUS, on_text, NULL);
}

#define ROW(function, expected, call)                                                              \
	static int64_t row_##function(void)                                                        \
	{                                                                                          \
		return (int64_t)(call);                                                            \
	}
#define ROWS(X)                                                                                    \
	X(tw_cancel, -ECHILD, tw_cancel(handle))                                                   \
	X(tw_cancel_many, UNTIL_TAKEN, tw_cancel_many(&handle, 1, NULL))                           \
	X(tw_cancel_wait, -ECHILD, tw_cancel_wait(handle, TW_NEVER))                               \
	X(tw_clock_create, 0, call_clock_create())                                                 \
	X(tw_clock_create_virtual, 0, call_clock_create_virtual())                                 \
	X(tw_clock_lag, 0, tw_clock_lag(fixture.clock))                                            \
	X(tw_clock_now, A_NUMBER, tw_clock_now(fixture.clock))                                     \
	X(tw_clock_set, 0, tw_clock_set(fixture.clock, fixture.now_ns + NS_PER_S))                 \
	X(tw_clock_set_wall, 0, tw_clock_set_wall(fixture.clock, NS_PER_S))                        \
	X(tw_clock_type, TW_CLOCK_VIRTUAL, tw_clock_type(fixture.clock))                           \
	X(tw_clock_destroy, 0, tw_clock_destroy(idle_clock))                                       \
	X(tw_due_run, -ECHILD, call_due_run())                                                     \
	X(tw_engine_create, 0, call_create())                                                      \
	X(tw_engine_dump, -ECHILD, tw_engine_dump(fixture.engine, on_text, NULL, TW_NEVER))        \
	X(tw_engine_fd, -ECHILD, tw_engine_fd(looped.engine))                                      \
	X(tw_loop_enter, -ECHILD, tw_loop_enter(looped.engine))                                    \
	X(tw_loop_exit, -ECHILD, tw_loop_exit(looped.engine))                                      \
	X(tw_engine_now, A_NUMBER, tw_engine_now(fixture.engine))                                  \
	X(tw_engine_pending, -ECHILD, tw_engine_pending(fixture.engine))                           \
	X(tw_engine_flush, -ECHILD, tw_engine_flush(fixture.engine, TW_NEVER))                     \
	X(tw_engine_start, -ECHILD, tw_engine_start(fixture.engine))                               \
	X(tw_engine_state, -ECHILD, tw_engine_state(fixture.engine))                               \
	X(tw_engine_stop, -ECHILD, tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER))           \
	X(tw_engine_watch, -ECHILD, tw_engine_watch(fixture.engine))                               \
	X(tw_fork_generation, 1, tw_fork_generation())                                             \
	X(tw_group_create, 0, call_group_create())                                                 \
	X(tw_group_engine, true, tw_group_engine(group, 0) != NULL)                                \
	X(tw_group_engines, 1, tw_group_engines(group))                                            \
	X(tw_group_here, true, tw_group_here(group) != NULL)                                       \
	X(tw_group_options_init, 0, call_group_options())                                          \
	X(tw_group_pending, -ECHILD, tw_group_pending(group))                                      \
	X(tw_group_schedule, -ECHILD, tw_group_schedule(group, 1, &probe_kind, &probe, NULL))      \
	X(tw_group_schedule_at, -ECHILD,                                                           \
	  tw_group_schedule_at(group, 0, &probe_kind, &probe, NULL))                               \
	X(tw_group_schedule_periodic, -ECHILD,                                                     \
	  tw_group_schedule_periodic(group, &second, &probe_kind, &probe, NULL))                   \
	X(tw_group_stats_get, -ECHILD, call_group_stats())                                         \
	X(tw_group_histogram_get, -ECHILD, tw_group_histogram_get(group, 0, &histogram))           \
	X(tw_histogram_get, -ECHILD, tw_histogram_get(fixture.engine, 0, &histogram))              \
	X(tw_histogram_record, 0, tw_histogram_record(&histogram, 1))                              \
	X(tw_histogram_percentile, 1, tw_histogram_percentile(&histogram, 50))                     \
	X(tw_histogram_print, 0,                                                                   \
	  tw_histogram_print(&histogram, "fork", TW_PRINT_JSON, on_text, NULL))                    \
	X(tw_stats_print, 0, call_stats_print())                                                   \
	X(tw_histogram_merge, 0, tw_histogram_merge(&histogram, &histogram))                       \
	X(tw_histogram_subtract, 0, tw_histogram_subtract(&histogram, &histogram))                 \
	X(tw_group_stop, -ECHILD, tw_group_stop(group, NULL, NULL, TW_NEVER))                      \
	X(tw_group_destroy, 0, tw_group_destroy(group))                                            \
	X(tw_keyed_cancel, -ECHILD, tw_keyed_cancel(table, "key", 3, TW_KEYED_ANY))                \
	X(tw_keyed_count, A_NUMBER, tw_keyed_count(table))                                         \
	X(tw_keyed_create, -ECHILD, call_keyed_create())                                           \
	X(tw_keyed_each, -ECHILD, tw_keyed_each(table, on_visit, NULL))                            \
	X(tw_keyed_get, -ECHILD, tw_keyed_get(table, "key", 3, NULL))                              \
	X(tw_keyed_options_init, 0, call_keyed_options())                                          \
	X(tw_keyed_owns, 0, tw_keyed_owns(&probe_kind))                                            \
	X(tw_keyed_replace, -ECHILD, tw_keyed_replace(table, "key", 3, 0, &key_kind, NULL, NULL))  \
	X(tw_keyed_reschedule, -ECHILD, tw_keyed_reschedule(table, "key", 3, 0))                   \
	X(tw_keyed_schedule, -ECHILD,                                                              \
	  tw_keyed_schedule(table, "other", 5, 0, &key_kind, NULL, NULL))                          \
	X(tw_keyed_destroy, -EBUSY, tw_keyed_destroy(table))                                       \
	X(tw_log_set, 0, tw_log_set(NULL))                                                         \
	X(tw_memory_allocator_set, 0, tw_memory_allocator_set(NULL))                               \
	X(tw_memory_cap_set, 0, tw_memory_cap_set(0))                                              \
	X(tw_memory_reserve, 0, tw_memory_reserve(10))                                             \
	X(tw_memory_slab_bytes, A_NUMBER, tw_memory_slab_bytes())                                  \
	X(tw_engine_next_due, -ECHILD, tw_engine_next_due(looped.engine))                          \
	X(tw_options_init, 0, call_options())                                                      \
	X(tw_default_engine, 1, tw_default_engine() != NULL)                                       \
	X(tw_default_options_set, -EINVAL, tw_default_options_set(NULL))                           \
	X(tw_engine_run_until, -ECHILD, tw_engine_run_until(fixture.engine, fixture.now_ns))       \
	X(tw_period_next, -ECHILD, tw_period_next(handle, 0))                                      \
	X(tw_period_set, -ECHILD, tw_period_set(handle, 1))                                        \
	X(tw_run_get, -EPERM, tw_run_get(&(struct tw_run){.size = sizeof(struct tw_run)}))         \
	X(tw_engine_poll, -ECHILD, tw_engine_poll(looped.engine, 0))                               \
	X(tw_engine_poll_at, -ECHILD, tw_engine_poll_at(looped.engine, 0, 0))                      \
	X(tw_engine_poll_for, -ECHILD, tw_engine_poll_for(looped.engine, 0, 1))                    \
	X(tw_fork_reinit, -EINVAL, tw_fork_reinit(fixture.engine, 8))                              \
	X(tw_reschedule, -ECHILD, tw_reschedule(handle, 0))                                        \
	X(tw_reschedule_at, -ECHILD, tw_reschedule_at(handle, TW_NEVER))                           \
	X(tw_retry_cancel, -ECHILD, tw_retry_cancel(task))                                         \
	X(tw_retry_complete, -ECHILD, tw_retry_complete(task, TW_RETRY_DONE))                      \
	X(tw_retry_create, -ECHILD, call_retry_create())                                           \
	X(tw_retry_delay, 5 * NS_PER_S, call_retry_delay())                                        \
	X(tw_retry_options_init, 0, call_retry_options())                                          \
	X(tw_retry_owns, 0, tw_retry_owns(&probe_kind))                                            \
	X(tw_retry_pending, -ECHILD, tw_retry_pending(queue))                                      \
	X(tw_retry_submit, -ECHILD, tw_retry_submit(queue, 0, &task_kind, NULL, NULL))             \
	X(tw_retry_submit_failed, -ECHILD, tw_retry_submit_failed(queue, &task_kind, NULL, NULL))  \
	X(tw_retry_destroy, -EBUSY, tw_retry_destroy(queue))                                       \
	X(tw_scaled_create, -ECHILD, call_scaled_create())                                         \
	X(tw_scaled_schedule, -ECHILD, tw_scaled_schedule(scaled, &probe_kind, &probe, NULL))      \
	X(tw_scaled_touch, -ECHILD, tw_scaled_touch(scaled, scaled_handle))                        \
	X(tw_scaled_deadline, -ECHILD, call_scaled_deadline())                                     \
	X(tw_scaled_factor_set, -ECHILD, tw_scaled_factor_set(fixture.engine, 1))                  \
	X(tw_scaled_factor_get, -ECHILD, call_scaled_factor_get())                                 \
	X(tw_scaled_pending, -ECHILD, tw_scaled_pending(scaled))                                   \
	X(tw_scaled_owns, 0, tw_scaled_owns(&probe_kind))                                          \
	X(tw_scaled_stop, -ECHILD, tw_scaled_stop(scaled, NULL, NULL, TW_NEVER))                   \
	X(tw_scaled_destroy, 0, tw_scaled_destroy(scaled))                                         \
	X(tw_scope_create, -ECHILD, call_scope_create())                                           \
	X(tw_scope_schedule, -ECHILD, tw_scope_schedule(scope, 1, &probe_kind, &probe, NULL))      \
	X(tw_scope_schedule_at, -ECHILD,                                                           \
	  tw_scope_schedule_at(scope, 0, &probe_kind, &probe, NULL))                               \
	X(tw_scope_count, UNTIL_TAKEN, tw_scope_count(scope))                                      \
	X(tw_scope_end, UNTIL_TAKEN, tw_scope_end(scope))                                          \
	X(tw_scope_end_wait, UNTIL_TAKEN, tw_scope_end_wait(scope, TW_NEVER))                      \
	X(tw_scope_destroy, 0, tw_scope_destroy(scope))                                            \
	X(tw_schedule, -ECHILD, tw_schedule(fixture.engine, 1, &probe_kind, &probe, NULL))         \
	X(tw_schedule_at, -ECHILD, tw_schedule_at(fixture.engine, 0, &probe_kind, &probe, NULL))   \
	X(tw_schedule_many, -ECHILD, tw_schedule_many(fixture.engine, &item, 1, NULL, NULL))       \
	X(tw_schedule_many_at, -ECHILD, tw_schedule_many_at(fixture.engine, &item, 1, NULL, NULL)) \
	X(tw_schedule_periodic, -ECHILD,                                                           \
	  tw_schedule_periodic(fixture.engine, &second, &probe_kind, &probe, NULL))                \
	X(tw_schedule_wall, -ECHILD,                                                               \
	  tw_schedule_wall(fixture.engine, 1, &probe_kind, &probe, NULL))                          \
	X(tw_stats_get, -ECHILD, call_stats())                                                     \
	X(tw_cancel_outcome_name, true, tw_cancel_outcome_name(0) != NULL)                         \
	X(tw_reschedule_outcome_name, true, tw_reschedule_outcome_name(0) != NULL)                 \
	X(tw_end_name, true, tw_end_name(0) != NULL)                                               \
	X(tw_state_name, true, tw_state_name(0) != NULL)                                           \
	X(tw_engine_state_name, true, tw_engine_state_name(0) != NULL)                             \
	X(tw_keyed_outcome_name, true, tw_keyed_outcome_name(0) != NULL)                           \
	X(tw_keyed_end_name, true, tw_keyed_end_name(0) != NULL)                                   \
	X(tw_retry_submit_outcome_name, true, tw_retry_submit_outcome_name(0) != NULL)             \
	X(tw_retry_cancel_outcome_name, true, tw_retry_cancel_outcome_name(0) != NULL)             \
	X(tw_retry_end_name, true, tw_retry_end_name(0) != NULL)                                   \
	X(tw_strerror, true, tw_strerror(-ECHILD) != NULL)                                         \
	X(tw_thread_attach, 0, tw_thread_attach())                                                 \
	X(tw_thread_detach, 0, tw_thread_detach())                                                 \
	X(tw_handle_equal, 1, tw_handle_equal(handle, handle))                                     \
	X(tw_handle_is_set, 1, tw_handle_is_set(handle))                                           \
	X(tw_id_cancel, -ECHILD, tw_id_cancel(tw_id_of(handle)))                                   \
	X(tw_id_handle, 1, tw_handle_equal(tw_id_handle(tw_id_of(handle)), handle))                \
	X(tw_id_of, 1, tw_id_of(handle) != TW_ID_NONE)                                             \
	X(tw_id_reschedule, -ECHILD, tw_id_reschedule(tw_id_of(handle), 0))                        \
	X(tw_id_reschedule_at, -ECHILD, tw_id_reschedule_at(tw_id_of(handle), TW_NEVER))           \
	X(tw_id_schedule, -ECHILD, tw_id_schedule(fixture.engine, 0, &count_kind, NULL, &an_id))   \
	X(tw_id_schedule_at, -ECHILD,                                                              \
	  tw_id_schedule_at(fixture.engine, 0, &count_kind, NULL, &an_id))                         \
	X(tw_id_schedule_periodic, -ECHILD,                                                        \
	  tw_id_schedule_periodic(fixture.engine, NULL, &count_kind, NULL, &an_id))                \
	X(tw_id_state, -ECHILD, tw_id_state(tw_id_of(handle)))                                     \
	X(tw_timeout_text, A_NUMBER, tw_timeout_text(handle, NULL, 0))                             \
	X(tw_timeout_get, -ECHILD, call_timeout_get())                                             \
	X(tw_timeout_state, -ECHILD, tw_timeout_state(handle))                                     \
	X(tw_version, TW_VERSION, tw_version())                                                    \
	X(tw_version_string, true, tw_version_string() != NULL)                                    \
	X(tw_engine_destroy, 0, tw_engine_destroy(fixture.engine))

ROWS(ROW)

struct row {
	const char *name;
	int64_t (*call)(void);
	int64_t expected;
};

#define ENTRY(function, expected, call) {#function, row_##function, (expected)},
/* clang-format off */
static const struct row rows[] = {ROWS(ENTRY)};
/* clang-format on */

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static bool said_right(const struct row *row, int64_t said)
{
	if (row->expected == UNTIL_TAKEN)
		return said >= 0 || said == -ECHILD;
	return row->expected == A_NUMBER ? said >= 0 : said == row->expected;
}

static void child_calls_all(void)
{
	int64_t begin_ns = monotonic_ns();
	int wrong = 0;

	heir_threads_begin();
	for (size_t number = 0; number < ROW_COUNT; number++) {
		int64_t said = rows[number].call();

		if (said_right(&rows[number], said))
			continue;
		fprintf(stderr, "# %s says %lld\n", rows[number].name, (long long)said);
		wrong++;
	}
	child_need(wrong, 0);
	child_need(monotonic_ns() - begin_ns < PATIENCE_NS, true);
	child_need(probe.runs + probe.finalised, 0);
}

static void open_all(void)
{
	struct tw_options options = fixture_options();
	struct tw_group_options group_options;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	options.flags = TW_ENGINE_LOOP;
	fixture_open(&looped, &options);
	check_at_least(tw_engine_poll(looped.engine, 0), 0);
	check_int(tw_clock_create_virtual(0, &idle_clock), 0);
	check_int(tw_retry_create(fixture.engine, NULL, &queue), 0);
	check_int(tw_retry_submit(queue, NS_PER_S, &task_kind, NULL, &task), 0);
	check_int(tw_keyed_create(fixture.engine, NULL, &table), 0);
	check_int(tw_keyed_schedule(table, "key", 3, NS_PER_S, &key_kind, NULL, NULL), 0);
	check_int(tw_group_options_init(&group_options, sizeof group_options), 0);
	group_options.engines = 1;
	check_int(tw_group_create(&group_options, &group), 0);
	check_int(tw_scope_create(fixture.engine, NULL, &scope), 0);
	check_int(tw_scope_schedule(scope, NS_PER_S, &count_kind, &probe.runs, NULL), 0);
	check_int(tw_scaled_create(fixture.engine, NS_PER_S, 9 * NS_PER_S, &scaled), 0);
	check_int(tw_scaled_schedule(scaled, &count_kind, &probe.runs, &scaled_handle), 0);
	fixture_advance(&fixture, NS_PER_MS);
}

static void close_all(void)
{
	check_int(tw_retry_cancel(task), TW_RETRY_CANCEL_DONE);
	check_int(tw_scope_end(scope), 1);
	check_int(tw_scope_destroy(scope), 0);
	check_int(tw_scaled_stop(scaled, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_scaled_destroy(scaled), 0);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
	fixture_close(&looped);
	check_int(tw_retry_destroy(queue), 0);
	check_int(tw_keyed_destroy(table), 0);
	check_int(tw_group_stop(group, NULL, NULL, TW_NEVER), 0);
	check_int(tw_group_destroy(group), 0);
	check_int(tw_clock_destroy(idle_clock), 0);
}

/* The create takes over the library for the child. The parent's objects stay the parent's. */
static void child_creates_first(void)
{
	child_need(call_create(), 0);
	child_calls_all();
}

Test(fork_calls, each_call_in_the_child_returns_its_code)
{
	open_all();
	in_child(child_calls_all);
	in_child(child_creates_first);
	close_all();
}

Test(fork_calls, while_the_worker_stands_in_a_callback)
{
	struct gate gate;

	open_all();
	(void)gate_hold(&fixture, &gate);
	in_child(child_calls_all);
	gate_open(&gate);
	close_all();
}

/* Needs the linker's list, which not every build passes. */
#ifdef TESTS_MAP
static bool has_row(const char *name)
{
	for (size_t number = 0; number < ROW_COUNT; number++) {
		if (strcmp(rows[number].name, name) == 0)
			return true;
	}
	return false;
}

Test(fork_calls, each_function_has_a_row)
{
	check_int(exported_check(has_row), ROW_COUNT);
}
#endif
