/* SPDX-License-Identifier: MIT */
/* The tour's timeouts: functions that schedule and cancel them, and their callbacks. */
#include "tour_inner.h"

#include <errno.h>

static const struct tw_period period_never = TW_PERIOD_RATE(TW_NEVER);

static int64_t id_schedule(struct entry *entry, unsigned turn, const struct tw_kind *kind,
			   uint32_t expected)
{
	tw_id id = TW_ID_NONE;
	int64_t result;

	if (turn == 1)
		result = tour_code(CALL_ID_SCHEDULE, expected,
				   tw_id_schedule(entry->engine, TW_NEVER, kind, entry, &id));
	else if (turn == 2)
		result = tour_code(CALL_ID_SCHEDULE_AT, expected,
				   tw_id_schedule_at(entry->engine, TW_NEVER, kind, entry, &id));
	else
		result = tour_code(
			CALL_ID_SCHEDULE_PERIODIC, expected,
			tw_id_schedule_periodic(entry->engine, &period_never, kind, entry, &id));
	RACE_CHECK((result == 0) == (id != TW_ID_NONE));
	entry->handle = tw_id_handle(id);
	RACE_CHECK(tw_id_of(entry->handle) == id);
	return result;
}

/*
 * Schedules a timeout that never expires. Four turns of eight use tw_schedule, each other turn one
 * of four further calls.
 */
static int64_t never_schedule(struct entry *entry, const struct tw_kind *kind, uint32_t expected)
{
	static _Atomic unsigned nevers;
	unsigned turn = ++nevers % 8;

	if (turn == 0)
		return tour_code(CALL_SCHEDULE_PERIODIC, expected,
				 tw_schedule_periodic(entry->engine, &period_never, kind, entry,
						      &entry->handle));
	if (turn <= 3)
		return id_schedule(entry, turn, kind, expected);
	return tour_code(CALL_SCHEDULE, expected,
			 tw_schedule(entry->engine, TW_NEVER, kind, entry, &entry->handle));
}

static int64_t entry_schedule(struct entry *entry, int64_t delay_ns, const struct tw_kind *kind,
			      uint32_t expected)
{
	int64_t result;

	if (delay_ns != TW_NEVER)
		entry->deadline_ns = tw_engine_now(entry->engine) + delay_ns;
	if (delay_ns == TW_NEVER)
		result = never_schedule(entry, kind, expected);
	else
		result = tour_code(
			CALL_SCHEDULE, expected,
			tw_schedule(entry->engine, delay_ns, kind, entry, &entry->handle));
	if (delay_ns != TW_NEVER)
		entry->due_by_ns = tw_engine_now(entry->engine) + delay_ns;
	if (result == 0)
		atomic_store(&entry->accepted, true);
	return result;
}

struct entry *tour_offer(struct tw_engine *engine, int64_t delay_ns, uint32_t expected)
{
	const struct tw_kind *kind;
	struct entry *entry = entry_new(engine, &kind);

	(void)entry_schedule(entry, delay_ns, kind, expected);
	return entry;
}

struct entry *tour_offer_kind(struct tw_engine *engine, int64_t delay_ns,
			      const struct tw_kind *kind, void *note, uint32_t expected)
{
	const struct tw_kind *unused;
	struct entry *entry = entry_new(engine, &unused);

	entry->has_finaliser = false;
	entry->note = note;
	(void)entry_schedule(entry, delay_ns, kind, expected);
	return entry;
}

int64_t tour_cancel(struct entry *entry, int64_t wait_ns)
{
	int64_t outcome;

	if (!entry->accepted)
		return -EINVAL;
	if (wait_ns < 0)
		outcome = tour_code(CALL_CANCEL, 0, tw_cancel(entry->handle));
	else
		outcome = tour_code(CALL_CANCEL_WAIT, CODE_ETIMEDOUT,
				    tw_cancel_wait(entry->handle, wait_ns));
	if (outcome == TW_CANCEL_DONE)
		entry_cancelled(entry);
	return outcome;
}

static void on_ask(struct tw_handle self, void *arg)
{
	struct entry *entry = arg;
	struct tw_stats stats = {.size = sizeof stats};
	struct tw_timeout timeout = {.size = sizeof timeout};
	struct tw_run run = {.size = sizeof run};

	entry_expired(entry);
	tour_exactly(CALL_CANCEL, tw_cancel(self), TW_CANCEL_RUNNING);
	tour_exactly(CALL_CANCEL_WAIT, tw_cancel_wait(self, TW_NEVER), TW_CANCEL_RUNNING);
	tour_exactly(CALL_RESCHEDULE, tw_reschedule(self, MS), TW_RESCHEDULE_RUNNING);
	tour_exactly(CALL_RESCHEDULE_AT, tw_reschedule_at(self, 0), TW_RESCHEDULE_RUNNING);
	tour_exactly(CALL_TIMEOUT_STATE, tw_timeout_state(self), TW_STATE_EXPIRED);
	tour_exactly(CALL_ID_STATE, tw_id_state(tw_id_of(self)), TW_STATE_EXPIRED);
	tour_exactly(CALL_ID_CANCEL, tw_id_cancel(tw_id_of(self)), TW_CANCEL_RUNNING);
	tour_exactly(CALL_ID_OF, tw_id_of(self) != TW_ID_NONE, 1);
	tour_exactly(CALL_ID_HANDLE, tw_handle_equal(tw_id_handle(tw_id_of(self)), self), 1);
	tour_exactly(CALL_HANDLE_EQUAL, tw_handle_equal(self, TW_HANDLE_NONE), 0);
	tour_exactly(CALL_HANDLE_IS_SET, tw_handle_is_set(self), 1);
	tour_exactly(CALL_PERIOD_NEXT, tw_period_next(self, 1), -EPERM);
	tour_exactly(CALL_PERIOD_SET, tw_period_set(self, 1), -EPERM);
	tour_exactly(CALL_RUN_GET, tw_run_get(&run), 0);
	RACE_CHECK(run.arg == arg && run.engine == entry->engine && run.late_ns >= 0);
	tour_exactly(CALL_TIMEOUT_GET, tw_timeout_get(self, &timeout), 0);
	RACE_CHECK(timeout.arg == arg && timeout.engine == entry->engine);
	tour_exactly(CALL_STOP, tw_engine_stop(entry->engine, NULL, NULL, TW_NEVER), -EDEADLK);
	tour_exactly(CALL_FLUSH, tw_engine_flush(entry->engine, TW_NEVER), -EDEADLK);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(entry->engine), -EDEADLK);
	tour_exactly(CALL_DETACH, tw_thread_detach(), -EBUSY);
	(void)tour_code(CALL_ATTACH, 0, tw_thread_attach());
	tour_exactly(CALL_STATS, tw_stats_get(entry->engine, &stats), 0);
	(void)tour_code(CALL_WATCH, CODE_EINVAL, tw_engine_watch(entry->engine));
	RACE_CHECK(tour_code(CALL_PENDING, 0, tw_engine_pending(entry->engine)) >= 0);
}

static void on_rearm(struct tw_handle self, void *arg)
{
	struct entry *entry = arg;
	uintptr_t left = (uintptr_t)entry->note;

	(void)self;
	entry_expired(entry);
	/* After stop has begun, this schedule is rejected. */
	if (left > 0)
		(void)tour_offer_kind(entry->engine, MS, &rearm_kind, (void *)(left - 1),
				      CODE_ESHUTDOWN);
}

static void on_cancel(struct tw_handle self, void *arg)
{
	struct entry *entry = arg;

	(void)self;
	entry_expired(entry);
	(void)tour_cancel(entry->note, -1);
}

static void on_gate(struct tw_handle self, void *arg)
{
	(void)self;
	entry_expired(arg);
	atomic_store(&tour.gate_entered, true);
	while (!atomic_load(&tour.gate_open))
		tour_sleep_ns(MS / 10);
}

const struct tw_kind ask_kind = TW_KIND(on_ask, NULL);
const struct tw_kind rearm_kind = TW_KIND(on_rearm, NULL);
const struct tw_kind cancel_kind = TW_KIND(on_cancel, NULL);
const struct tw_kind gate_kind = TW_KIND(on_gate, NULL);

/* Accepts the first half. The worker runs the rest. */
size_t tour_dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accepted = 0;

	(void)context;
	if (tour.closing)
		return 0;
	while (accepted < (count + 1) / 2 && tour.dues < DUES)
		tour.due[tour.dues++] = due[accepted++];
	return accepted;
}

void tour_dues_run(void)
{
	size_t number;

	for (number = 0; number < tour.dues; number++) {
		tour_exactly(CALL_DUE_RUN, tw_due_run(&tour.due[number]), 0);
		tour_exactly(CALL_DUE_RUN, tw_due_run(&tour.due[number]), -ESTALE);
	}
	tour.dues = 0;
}
