/* SPDX-License-Identifier: MIT */
/* Calls about the process, its memory, clocks, and engines. */
#include "calls.h"

#include <string.h>

static atomic_int other_runs;
static struct tw_histogram histogram = {.size = sizeof(histogram)};

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

/* These functions return constant texts, so they must return the same text in every place. */
#define NAMES(X)                                                                                   \
	X(cancel_outcome)                                                                          \
	X(reschedule_outcome)                                                                      \
	X(end)                                                                                     \
	X(state)                                                                                   \
	X(engine_state)                                                                            \
	X(keyed_outcome)                                                                           \
	X(keyed_end)                                                                               \
	X(retry_submit_outcome)                                                                    \
	X(retry_cancel_outcome)                                                                    \
	X(retry_end)

#define NAME_CALL(what)                                                                            \
	static int64_t call_##what##_name(struct tour *tour)                                       \
	{                                                                                          \
		(void)tour;                                                                        \
		return strcmp(tw_##what##_name(-ECHILD), tw_strerror(-ECHILD)) != 0 ||             \
		       tw_##what##_name(0)[0] == '\0';                                             \
	}

NAMES(NAME_CALL)

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

static int64_t call_clock_set_wall(struct tour *tour)
{
	return tw_clock_set_wall(tour->fixture.clock, 1);
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
	return tw_schedule(tour->other, 1, &count_kind, &other_runs, NULL);
}

static int64_t call_flush_other(struct tour *tour)
{
	return tw_engine_flush(tour->other, TW_NEVER);
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

static int64_t call_default_engine(struct tour *tour)
{
	(void)tour;
	return tw_default_engine() != NULL;
}

static int64_t call_default_options(struct tour *tour)
{
	struct tw_options options;
	int error = tw_options_init(&options, sizeof options);

	(void)tour;
	return error != 0 ? error : tw_default_options_set(&options);
}

static int64_t call_run_until(struct tour *tour)
{
	return tw_engine_run_until(tour->fixture.engine, tw_engine_now(tour->fixture.engine));
}

static int64_t call_flush(struct tour *tour)
{
	return tw_engine_flush(tour->fixture.engine, TW_NEVER);
}

/*
 * Stops the engine. In the finaliser of a cancel, stop is allowed and would end the engine during
 * the tour. So a separate test makes that call.
 */
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

static int64_t call_histogram_get(struct tour *tour)
{
	return tw_histogram_get(tour->fixture.engine, TW_MEASUREMENT_LATENESS, &histogram);
}

static int64_t call_histogram_record(struct tour *tour)
{
	(void)tour;
	return tw_histogram_record(&histogram, 1);
}

static int64_t call_histogram_percentile(struct tour *tour)
{
	(void)tour;
	return tw_histogram_percentile(&histogram, 50) < 0;
}

static int64_t call_histogram_merge(struct tour *tour)
{
	(void)tour;
	return tw_histogram_merge(&histogram, &histogram);
}

static int64_t call_histogram_subtract(struct tour *tour)
{
	(void)tour;
	return tw_histogram_subtract(&histogram, &histogram);
}

static void on_text(void *context, const char *text, size_t bytes)
{
	*(size_t *)context += bytes;
	(void)text;
}

static int64_t call_stats_print(struct tour *tour)
{
	static struct tw_stats stats = {.size = sizeof(stats)};
	const struct tw_reading reading = {.engine = "tour", .stats = &stats};
	size_t bytes = 0;

	(void)tour;
	return tw_stats_print(&reading, 1, TW_PRINT_JSON, on_text, &bytes);
}

static int64_t call_histogram_print(struct tour *tour)
{
	size_t bytes = 0;

	(void)tour;
	return tw_histogram_print(&histogram, "tour", TW_PRINT_TEXT, on_text, &bytes);
}

static int64_t call_watch(struct tour *tour)
{
	return tw_engine_watch(tour->fixture.engine);
}

/*
 * Dumps the engine. If an executor's callback asks, the worker must write the dump. In a hand-back
 * the worker serves no other thread, so the calling thread must write it itself.
 */
static int64_t call_dump(struct tour *tour)
{
	size_t bytes = 0;
	int error = tw_engine_dump(tour->fixture.engine, on_text, &bytes, TW_NEVER);

	return bytes > 0 ? error : INT64_MIN;
}

/*
 * Creates a loop engine. The thread of the first call on it becomes its owner. A poll inside a
 * callback must be rejected.
 */
static int64_t call_create_loop(struct tour *tour)
{
	struct tw_options options;
	int error = tw_options_init(&options, sizeof(options));

	options.flags = TW_ENGINE_LOOP;
	return error != 0 ? error : tw_engine_create(&options, &tour->other);
}

static int64_t call_poll(struct tour *tour)
{
	return tw_engine_poll(tour->other, 0);
}

static int64_t call_poll_at(struct tour *tour)
{
	return tw_engine_poll_at(tour->other, 0, 0);
}

static int64_t call_next_due(struct tour *tour)
{
	return tw_engine_next_due(tour->other);
}

static int64_t call_fd(struct tour *tour)
{
	return tw_engine_fd(tour->other) >= 0;
}

static int64_t call_poll_for(struct tour *tour)
{
	return tw_engine_poll_for(tour->other, 0, 1);
}

static int64_t call_enter(struct tour *tour)
{
	return tw_loop_enter(tour->other);
}

static int64_t call_exit(struct tour *tour)
{
	return tw_loop_exit(tour->other);
}

static int64_t call_generation(struct tour *tour)
{
	(void)tour;
	return tw_fork_generation();
}

static int64_t call_reinit(struct tour *tour)
{
	return tw_fork_reinit(tour->fixture.engine, 0);
}

const struct call process_calls[] = {
	{"tw_version", call_version, EVERYWHERE(0)},
	{"tw_version_string", call_version_string, EVERYWHERE(0)},
	{"tw_strerror", call_strerror, EVERYWHERE(0)},
	{"tw_cancel_outcome_name", call_cancel_outcome_name, EVERYWHERE(0)},
	{"tw_reschedule_outcome_name", call_reschedule_outcome_name, EVERYWHERE(0)},
	{"tw_end_name", call_end_name, EVERYWHERE(0)},
	{"tw_state_name", call_state_name, EVERYWHERE(0)},
	{"tw_engine_state_name", call_engine_state_name, EVERYWHERE(0)},
	{"tw_keyed_outcome_name", call_keyed_outcome_name, EVERYWHERE(0)},
	{"tw_keyed_end_name", call_keyed_end_name, EVERYWHERE(0)},
	{"tw_retry_submit_outcome_name", call_retry_submit_outcome_name, EVERYWHERE(0)},
	{"tw_retry_cancel_outcome_name", call_retry_cancel_outcome_name, EVERYWHERE(0)},
	{"tw_retry_end_name", call_retry_end_name, EVERYWHERE(0)},
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
	{"tw_clock_set_wall", call_clock_set_wall, EVERYWHERE(0)},
	{"tw_clock_destroy", call_clock_destroy_own, EVERYWHERE(-EBUSY)},
	{"tw_options_init", call_options_init, EVERYWHERE(0)},
	{"tw_engine_create", call_create, EVERYWHERE(0)},
	{"tw_engine_start, another", call_start_other, EVERYWHERE(0)},
	{"tw_schedule, another", call_schedule_other, EVERYWHERE(0)},
	{"tw_engine_flush, another", call_flush_other, EVERYWHERE(0)},
	{"tw_engine_stop, another", call_stop_other, EVERYWHERE(0)},
	{"tw_engine_destroy, another", call_destroy_other, EVERYWHERE(0)},
	{"tw_engine_start", call_start, {0, 0, -ESHUTDOWN, 0}},
	{"tw_engine_flush", call_flush, {-EDEADLK, 0, -EDEADLK, 0}},
	{"tw_engine_run_until", call_run_until, {-EDEADLK, -EDEADLK, -EDEADLK, 0}},
	{"tw_default_engine", call_default_engine, EVERYWHERE(1)},
	{"tw_default_options_set", call_default_options, EVERYWHERE(-EBUSY)},
	{"tw_engine_stop", call_stop, {-EDEADLK, -EDEADLK, -EDEADLK, NOT_CALLED}},
	{"tw_engine_destroy", call_destroy, {-EDEADLK, -EDEADLK, -EDEADLK, -EBUSY}},
	{"tw_engine_now", call_now, EVERYWHERE(0)},
	{"tw_engine_pending", call_pending, EVERYWHERE(0)},
	{"tw_engine_state",
	 call_state,
	 {TW_ENGINE_RUNNING, TW_ENGINE_RUNNING, TW_ENGINE_STOPPING, TW_ENGINE_RUNNING}},
	{"tw_stats_get", call_stats, EVERYWHERE(0)},
	{"tw_stats_print", call_stats_print, EVERYWHERE(0)},
	{"tw_histogram_print", call_histogram_print, EVERYWHERE(0)},
	{"tw_histogram_get", call_histogram_get, EVERYWHERE(-EINVAL)},
	{"tw_histogram_record", call_histogram_record, EVERYWHERE(0)},
	{"tw_histogram_percentile", call_histogram_percentile, EVERYWHERE(0)},
	{"tw_histogram_merge", call_histogram_merge, EVERYWHERE(0)},
	{"tw_histogram_subtract", call_histogram_subtract, EVERYWHERE(0)},
	{"tw_engine_watch", call_watch, EVERYWHERE(-EINVAL)},
	{"tw_engine_dump", call_dump, EVERYWHERE(0)},
	{"tw_engine_create, tw_options_init, a loop", call_create_loop, EVERYWHERE(0)},
	{"tw_engine_poll", call_poll, EVERYWHERE(0)},
	{"tw_engine_poll_at", call_poll_at, EVERYWHERE(0)},
	{"tw_engine_poll_for", call_poll_for, EVERYWHERE(0)},
	{"tw_engine_next_due", call_next_due, EVERYWHERE(TW_NEVER)},
	{"tw_engine_fd", call_fd, EVERYWHERE(true)},
	{"tw_loop_enter", call_enter, EVERYWHERE(0)},
	{"tw_loop_exit", call_exit, EVERYWHERE(0)},
	{"tw_engine_stop, a loop", call_stop_other, EVERYWHERE(0)},
	{"tw_engine_destroy, a loop", call_destroy_other, EVERYWHERE(0)},
	{"tw_fork_generation", call_generation, EVERYWHERE(0)},
	{"tw_fork_reinit", call_reinit, EVERYWHERE(-EBUSY)},
	{0},
};
