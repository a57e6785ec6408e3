/* SPDX-License-Identifier: MIT */
/* The tour's last steps: using the engines after the fault, stop, destroy. */
#include "tour_inner.h"

#include <errno.h>

void step_detach(void)
{
	tour_exactly(CALL_DETACH, tw_thread_detach(), 0);
	(void)tour_offer(tour.real, 10000 * MS, 0);
}

/* Polls an engine that has no thread. */
static void loop_use(struct tw_engine *engine)
{
	tour_exactly(CALL_ENTER, tw_loop_enter(engine), 0);
	tour_exactly(CALL_ENTER, tw_loop_enter(engine), -EBUSY);
	(void)tour_code(CALL_FD, CODE_ENOMEM, tw_engine_fd(engine));
	for (int number = 0; number < SOON; number++)
		(void)tour_offer(engine, 0, 0);
	while (tour_code(CALL_NEXT_DUE, 0, tw_engine_next_due(engine)) != TW_NEVER) {
		(void)tour_code(CALL_POLL_AT, 0, tw_engine_poll_at(engine, 0, 0));
		(void)tour_code(CALL_POLL, 0, tw_engine_poll(engine, 1));
	}
	(void)tour_code(CALL_POLL_FOR, 0, tw_engine_poll_for(engine, 0, MS));
	tour_exactly(CALL_EXIT, tw_loop_exit(engine), 0);
	tour_exactly(CALL_EXIT, tw_loop_exit(engine), -EPERM);
}

static void books_add(struct tw_engine *engine);

static void loop_live(void)
{
	struct tw_options options;
	struct tw_engine *engine;

	tour_exactly(CALL_OPTIONS_INIT, tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	tour_exactly(CALL_CREATE, tw_engine_create(&options, &engine), 0);
	loop_use(engine);
	tour_exactly(CALL_STOP, tw_engine_stop(engine, ledger_hand_back, NULL, TW_NEVER), 0);
	books_add(engine);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(engine), 0);
}

/* how many slabs tw_memory_reserve(1000) creates: one to use, one in reserve */
enum { SLABS_OF_1000 = 2 };

/*
 * The greatest allowed lateness. It is less than a revolution of the wheel, because a timeout that
 * an advance has wrongly skipped runs one revolution late.
 */
#define LATE_NS INT64_C(3000000000)

static void due_await(void)
{
	int64_t limit_ns = race_now_ns() + LATE_NS;

	while (ledger_overdue(tour.real, tour.soon_by_ns) != 0) {
		RACE_CHECK(race_now_ns() < limit_ns);
		tour_sleep_ns(MS / 2);
	}
}

static void on_text(void *context, const char *text, size_t bytes)
{
	(void)context;
	RACE_CHECK(text != NULL && bytes > 0);
}

/*
 * Uses the engines when the fault is over, or when they can work in spite of it. So all calls must
 * succeed.
 */
void step_usable(void)
{
	int number;

	if (tour.plan->course != TOUR_RECOVERS)
		return;
	tour_relent();
	tour_exactly(CALL_RESERVE, tw_memory_reserve(1000), 0);
	RACE_CHECK(tw_memory_slab_bytes() >= SLABS_OF_1000 * (2 << 20));
	loop_live();
	step_keys();
	step_groups();
	step_scopes();
	step_scaled();
	step_retries();
	tour_exactly(CALL_START, tw_engine_start(tour.real), 0);
	tour_exactly(CALL_START, tw_engine_start(tour.moved), 0);
	for (number = 0; number < SOON; number++) {
		RACE_CHECK(tour_offer(tour.real, MS, 0)->accepted);
		(void)tour_offer(tour.moved, MS, CODE_EAGAIN);
	}
	RACE_CHECK(tour_cancel(tour_offer(tour.real, TW_NEVER, 0), -1) == TW_CANCEL_DONE);
	RACE_CHECK(tour_cancel(tour_offer(tour.real, TW_NEVER, 0), 0) == TW_CANCEL_DONE);
	tour.soon_by_ns = tw_engine_now(tour.real) + MS;
	tour_ask(tour_offer(tour.real, TW_NEVER, 0));
	tour_exactly(CALL_FLUSH, tw_engine_flush(tour.real, tour.patience_ns), 0);
	tour_exactly(CALL_FLUSH, tw_engine_flush(tour.moved, tour.patience_ns), 0);
	tour_dues_run();
	tour_moved_advance(100 * MS);
	RACE_CHECK(ledger_overdue(tour.moved, tour.moved_ns - 2 * MS) == 0);
	due_await();
	(void)tour_code(CALL_DUMP, CODE_ETIMEDOUT,
			tw_engine_dump(tour.real, on_text, NULL, tour.patience_ns));
}

static void on_print(void *context, const char *text, size_t bytes)
{
	(void)context;
	(void)text;
	(void)bytes;
}

static void print_use(const struct tw_stats *stats, const struct tw_histogram *histogram)
{
	const struct tw_reading reading = {"tour", stats, histogram, histogram};

	tour_exactly(CALL_STATS_PRINT,
		     tw_stats_print(&reading, 1, TW_PRINT_PROMETHEUS, on_print, NULL), 0);
	tour_exactly(CALL_HISTOGRAM_PRINT,
		     tw_histogram_print(histogram, "tour", TW_PRINT_PERCENTILES, on_print, NULL),
		     0);
}

/* Reads the histograms. Without the option for histograms the call must fail. */
static void histogram_use(struct tw_engine *engine, const struct tw_stats *stats)
{
	static struct tw_histogram histogram = {.size = sizeof histogram};

	(void)tour_code(CALL_HISTOGRAM_GET, CODE_EINVAL, tw_histogram_get(engine, 0, &histogram));
	tour_exactly(CALL_HISTOGRAM_RECORD, tw_histogram_record(&histogram, 1), 0);
	tour_exactly(CALL_HISTOGRAM_MERGE, tw_histogram_merge(&histogram, &histogram), 0);
	tour_exactly(CALL_HISTOGRAM_SUBTRACT, tw_histogram_subtract(&histogram, &histogram), 0);
	tour_exactly(CALL_HISTOGRAM_PERCENTILE, tw_histogram_percentile(&histogram, 50), 0);
	print_use(stats, &histogram);
}

static void books_add(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof stats};

	tour_exactly(CALL_STATS, tw_stats_get(engine, &stats), 0);
	/* Without a threshold for slow callbacks the call must fail. */
	(void)tour_code(CALL_WATCH, CODE_EINVAL, tw_engine_watch(engine));
	tour_exactly(CALL_DUMP, tw_engine_dump(engine, on_text, NULL, TW_NEVER), 0);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
	histogram_use(engine, &stats);
	tour_exactly(CALL_PENDING, tw_engine_pending(engine), 0);
	tour.books.scheduled += stats.scheduled;
	tour.books.expired += stats.expired;
	tour.books.cancelled += stats.cancelled;
	tour.books.unexpired += stats.unexpired;
}

static void engine_stop(struct tw_engine *engine)
{
	(void)tour_code(CALL_STOP, CODE_ETIMEDOUT,
			tw_engine_stop(engine, ledger_hand_back, NULL, 0));
	tour_exactly(CALL_STOP, tw_engine_stop(engine, NULL, NULL, tour.patience_ns), 0);
	tour_exactly(CALL_STATE, tw_engine_state(engine), TW_ENGINE_STOPPED);
	tour_exactly(CALL_START, tw_engine_start(engine), -ESHUTDOWN);
	tour_exactly(CALL_FLUSH, tw_engine_flush(engine, TW_NEVER), -ESHUTDOWN);
	RACE_CHECK(!tour_offer(engine, 0, CODE_ESHUTDOWN)->accepted);
	books_add(engine);
}

void step_stop(void)
{
	engine_stop(tour.real);
	/* From here on the hook must accept no timeouts, because no thread would run them. */
	atomic_store(&tour.closing, true);
	if (tour_code(CALL_FLUSH, 0, tw_engine_flush(tour.moved, tour.patience_ns)) == 0)
		tour_dues_run();
	engine_stop(tour.moved);
}

void step_destroy(void)
{
	size_t number;

	if (tour.plan->publish != NULL)
		tour.plan->publish(NULL, NULL, NULL);
	tour_exactly(CALL_CLOCK_DESTROY, tw_clock_destroy(tour.clock), -EBUSY);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(tour.moved), 0);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(tour.real), 0);
	tour_exactly(CALL_CLOCK_DESTROY, tw_clock_destroy(tour.clock), 0);
	for (number = 0; number < tour.hook_threads; number++)
		RACE_CHECK(pthread_join(tour.hook_thread[number], NULL) == 0);
	for (number = 0; number < ledger.count; number += 5)
		RACE_CHECK(tour_cancel(&ledger.entry[number], 0) != TW_CANCEL_DONE);
	tour_exactly(CALL_DETACH, tw_thread_detach(), 0);
}
