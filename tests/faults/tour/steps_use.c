/* SPDX-License-Identifier: MIT */
/* The tour's middle steps: queries, cancels, threads, callbacks, waiting calls. */
#include "tour_inner.h"

#include <errno.h>

/*
 * A delay of a hundred years, which is more than all leaps of a clock together. So such a timeout
 * cannot become due during the tour.
 */
#define FAR_OFF_NS INT64_C(3155760000000000000)

void tour_ask(struct entry *entry)
{
	struct tw_timeout timeout = {.size = sizeof timeout};

	if (!entry->accepted)
		return;
	(void)tour_code(CALL_TIMEOUT_STATE, CODE_ESTALE, tw_timeout_state(entry->handle));
	(void)tour_code(CALL_ID_STATE, CODE_ESTALE, tw_id_state(tw_id_of(entry->handle)));
	RACE_CHECK(tour_code(CALL_TIMEOUT_TEXT, 0, tw_timeout_text(entry->handle, NULL, 0)) > 0);
	if (tour_code(CALL_TIMEOUT_GET, CODE_ESTALE, tw_timeout_get(entry->handle, &timeout)) == 0)
		/* A chain that has ended has no argument to report. */
		RACE_CHECK((timeout.arg == entry ||
			    (timeout.arg == NULL && timeout.state != TW_STATE_INIT)) &&
			   timeout.engine == entry->engine);
}

/* Reschedules to an earlier deadline and back to the old one. */
static void tour_move(struct entry *entry)
{
	struct tw_timeout timeout = {.size = sizeof timeout};

	if (!entry->accepted || tw_timeout_get(entry->handle, &timeout) != 0 ||
	    timeout.deadline_ns != TW_NEVER)
		return;
	(void)tour_code(CALL_RESCHEDULE, CODE_ESTALE, tw_reschedule(entry->handle, FAR_OFF_NS));
	(void)tour_code(CALL_RESCHEDULE_AT, CODE_ESTALE, tw_reschedule_at(entry->handle, TW_NEVER));
	(void)tour_code(CALL_ID_RESCHEDULE, CODE_ESTALE,
			tw_id_reschedule(tw_id_of(entry->handle), FAR_OFF_NS));
	(void)tour_code(CALL_ID_RESCHEDULE_AT, CODE_ESTALE,
			tw_id_reschedule_at(tw_id_of(entry->handle), TW_NEVER));
}

/* Makes the calls that take a handle or an id, with a handle or an id that names no timeout. */
static void none_ask(void)
{
	struct tw_handle none = tw_id_handle(TW_ID_NONE);

	tour_exactly(CALL_ID_HANDLE, tw_handle_equal(none, TW_HANDLE_NONE), 1);
	tour_exactly(CALL_HANDLE_EQUAL, tw_handle_equal(none, none), 1);
	tour_exactly(CALL_HANDLE_IS_SET, tw_handle_is_set(none), 0);
	tour_exactly(CALL_ID_OF, tw_id_of(none) != TW_ID_NONE, 0);
	tour_exactly(CALL_ID_STATE, tw_id_state(TW_ID_NONE), -EINVAL);
	tour_exactly(CALL_ID_CANCEL, tw_id_cancel(TW_ID_NONE), -EINVAL);
	tour_exactly(CALL_ID_RESCHEDULE, tw_id_reschedule(TW_ID_NONE, 0), -EINVAL);
	tour_exactly(CALL_ID_RESCHEDULE_AT, tw_id_reschedule_at(TW_ID_NONE, 0), -EINVAL);
	tour_exactly(CALL_ID_SCHEDULE, tw_id_schedule(tour.real, 0, NULL, NULL, NULL), -EINVAL);
	tour_exactly(CALL_ID_SCHEDULE_AT, tw_id_schedule_at(tour.real, 0, NULL, NULL, NULL),
		     -EINVAL);
	tour_exactly(CALL_ID_SCHEDULE_PERIODIC,
		     tw_id_schedule_periodic(tour.real, NULL, NULL, NULL, NULL), -EINVAL);
	tour_exactly(CALL_TIMEOUT_TEXT, tw_timeout_text(none, NULL, 1), -EINVAL);
}

/* Cancels timeouts in ingress, in the wheel, in their callback, and after their end. */
void step_cancel(void)
{
	unsigned count = ledger.count;
	unsigned number;

	for (number = 0; number < count; number += 3)
		tour_ask(&ledger.entry[number]);
	none_ask();
	tour_exactly(CALL_RESCHEDULE, tw_reschedule((struct tw_handle){0}, 0), -EINVAL);
	tour_exactly(CALL_RESCHEDULE_AT, tw_reschedule_at((struct tw_handle){0}, 0), -EINVAL);
	tour_exactly(CALL_PERIOD_NEXT, tw_period_next((struct tw_handle){0}, 0), -EINVAL);
	tour_exactly(CALL_PERIOD_SET, tw_period_set((struct tw_handle){0}, 1), -EINVAL);
	tour_exactly(CALL_RUN_GET, tw_run_get(NULL), -EINVAL);
	tour_exactly(CALL_RUN_UNTIL, tw_engine_run_until(tour.real, 0), -EINVAL);
	tour_exactly(CALL_DEFAULT_OPTIONS, tw_default_options_set(NULL), -EINVAL);
	(void)tour_code(CALL_DEFAULT_ENGINE, 0, tw_default_engine() != NULL);
	tour_exactly(CALL_SCHEDULE_PERIODIC,
		     tw_schedule_periodic(tour.real, NULL, NULL, NULL, NULL), -EINVAL);
	tour_exactly(CALL_SCHEDULE_WALL, tw_schedule_wall(tour.real, 0, NULL, NULL, NULL), -EINVAL);
	tour_exactly(CALL_CLOCK_SET_WALL, tw_clock_set_wall(tour.clock, -1), -EINVAL);
	for (number = 0; number < count; number += 5)
		tour_move(&ledger.entry[number]);
	for (number = 0; number < count; number += 7)
		(void)tour_cancel(&ledger.entry[number], -1);
	for (number = 0; number < count; number += 11)
		(void)tour_cancel(&ledger.entry[number], number % 2 ? tour.patience_ns : 0);
	for (number = 0; number < count; number += 7)
		RACE_CHECK(tour_cancel(&ledger.entry[number], -1) != TW_CANCEL_DONE);
}

static void *producer_body(void *arg)
{
	int64_t number;

	for (number = 0; number < PRODUCED; number++) {
		struct entry *entry =
			tour_offer(tour.real, number % 2 ? SOON_MS * MS : TW_NEVER, 0);

		if (number % 3 == 0)
			(void)tour_cancel(entry, -1);
		if (arg != NULL)
			pthread_testcancel();
	}
	if (arg != NULL && tour.plan->producer_end == PRODUCER_EXITS)
		pthread_exit(arg);
	return arg;
}

/* Waits for the thread's end. Counts it if the thread ended as the plan asks. */
static void helper_end(pthread_t thread)
{
	void *result;
	bool cancelled;

	if (tour.plan->producer_end == PRODUCER_CANCELLED)
		(void)pthread_cancel(thread);
	RACE_CHECK(pthread_join(thread, &result) == 0);
	cancelled = result == PTHREAD_CANCELED;
	if (cancelled == (tour.plan->producer_end == PRODUCER_CANCELLED))
		atomic_fetch_add(&tour.result->ends, 1);
}

/* Creates threads that schedule, cancel, and end with timeouts pending. */
void step_producers(void)
{
	pthread_t thread[PRODUCERS];
	bool made[PRODUCERS];
	int number;

	for (number = 0; number < PRODUCERS; number++)
		made[number] = tour_thread_make(producer_body, &tour, &thread[number]);
	for (number = 0; number < PRODUCERS; number++) {
		if (made[number])
			helper_end(thread[number]);
		else
			(void)producer_body(NULL);
	}
	tour.soon_by_ns = tw_engine_now(tour.real) + SOON_MS * MS;
}

void tour_moved_advance(int64_t step_ns)
{
	tour.moved_ns += step_ns;
	tour_exactly(CALL_CLOCK_SET, tw_clock_set(tour.clock, tour.moved_ns), 0);
	if (tour_code(CALL_FLUSH, 0, tw_engine_flush(tour.moved, tour.patience_ns)) == 0)
		tour_dues_run();
}

void step_callbacks(void)
{
	int round;

	(void)tour_offer_kind(tour.real, MS, &ask_kind, NULL, 0);
	(void)tour_offer_kind(tour.real, MS, &rearm_kind, (void *)2, 0);
	(void)tour_offer_kind(tour.real, MS, &cancel_kind, tour_offer(tour.real, TW_NEVER, 0), 0);
	for (round = 0; round < 4; round++)
		tour_moved_advance(10 * MS);
	(void)tour_offer_kind(tour.moved, MS, &rearm_kind, (void *)3, 0);
	(void)tour_offer_kind(tour.moved, MS, &cancel_kind, tour_offer(tour.moved, 5 * MS, 0), 0);
	for (round = 0; round < 8; round++)
		tour_moved_advance(2 * MS);
}

/* Returns whether a worker exists or may still come. */
static bool worker_expected(struct tw_engine *engine)
{
	int64_t state = tour_code(CALL_STATE, 0, tw_engine_state(engine));

	return state == TW_ENGINE_STARTING || state == TW_ENGINE_RUNNING;
}

static void gate_await(void)
{
	int64_t limit_ns = race_now_ns() + TOUR_PATIENCE_NS;

	while (!tour.gate_entered && worker_expected(tour.real)) {
		RACE_CHECK(race_now_ns() < limit_ns);
		tour_sleep_ns(MS / 10);
	}
}

/*
 * Makes a waiting call. If this thread is cancelled inside the call, the call must end first, and
 * the thread afterwards.
 */
static void *waiter_body(void *arg)
{
	const struct entry *gate = arg;

	if (gate != NULL)
		(void)tour_code(CALL_CANCEL_WAIT, 0,
				tw_cancel_wait(gate->handle, tour.patience_ns));
	else
		(void)tour_code(CALL_FLUSH, 0, tw_engine_flush(tour.real, tour.patience_ns));
	atomic_fetch_add(&tour.waits_ended, 1);
	pthread_testcancel();
	return arg;
}

/*
 * Starts the waiting threads while the gate is shut. When it returns, each thread waits or is about
 * to wait.
 */
static unsigned waiters_begin(struct entry *gate, pthread_t *ret_threads)
{
	unsigned made = 0;

	atomic_store(&tour.waits_ended, 0);
	made += tour_thread_make(waiter_body, gate, &ret_threads[made]);
	made += tour_thread_make(waiter_body, NULL, &ret_threads[made]);
	tour_sleep_ns(MS);
	return made;
}

static void waiters_end(const pthread_t *threads, unsigned made)
{
	unsigned number;

	for (number = 0; number < made; number++)
		helper_end(threads[number]);
	RACE_CHECK(tour.waits_ended == made);
}

/* Makes calls that wait for a callback which does not end. */
static void gate_hold(struct entry *gate)
{
	pthread_t waiter[2];
	unsigned made = waiters_begin(gate, waiter);
	unsigned number;

	tour_exactly(CALL_CANCEL_WAIT, tw_cancel_wait(gate->handle, MS), -ETIMEDOUT);
	tour_exactly(CALL_FLUSH, tw_engine_flush(tour.real, MS), -ETIMEDOUT);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(tour.real), -EBUSY);
	RACE_CHECK(tour.waits_ended == 0);
	for (number = 0; number < made && tour.plan->producer_end == PRODUCER_CANCELLED; number++)
		RACE_CHECK(pthread_cancel(waiter[number]) == 0);
	atomic_store(&tour.gate_open, true);
	waiters_end(waiter, made);
}

void step_waits(void)
{
	struct entry *gate;
	int64_t outcome;

	atomic_store(&tour.gate_entered, false);
	atomic_store(&tour.gate_open, false);
	gate = tour_offer_kind(tour.real, 0, &gate_kind, NULL, 0);
	if (gate->accepted)
		gate_await();
	if (tour.gate_entered) {
		gate_hold(gate);
		outcome = tour_cancel(gate, tour.patience_ns);
		RACE_CHECK(outcome == TW_CANCEL_EXPIRED || outcome == TW_CANCEL_STALE);
	}
	atomic_store(&tour.gate_open, true);
	(void)tour_code(CALL_FLUSH, 0, tw_engine_flush(tour.real, tour.patience_ns));
}
