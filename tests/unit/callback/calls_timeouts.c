/* SPDX-License-Identifier: MIT */
/* Calls about timeouts: single ones, many at once, periodic ones. */
#include "calls.h"

static const struct tw_item two[2] = {{TW_NEVER, &count_kind, NULL}, {TW_NEVER, &count_kind, NULL}};

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

/* Returns the error of the second item. */
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

static int64_t call_id_schedule(struct tour *tour)
{
	tw_id id = TW_ID_NONE;
	int error = tw_id_schedule(tour->fixture.engine, TW_NEVER, &count_kind, NULL, &id);

	return error != 0 ? error : tw_id_cancel(id);
}

static int64_t call_id_schedule_at(struct tour *tour)
{
	tw_id id = TW_ID_NONE;
	int error = tw_id_schedule_at(tour->fixture.engine, TW_NEVER, &count_kind, NULL, &id);

	return error != 0 ? error : tw_id_cancel(id);
}

static int64_t call_id_schedule_periodic(struct tour *tour)
{
	static const struct tw_period period = TW_PERIOD_RATE(TW_NEVER);
	tw_id id = TW_ID_NONE;
	int error = tw_id_schedule_periodic(tour->fixture.engine, &period, &count_kind, NULL, &id);

	return error != 0 ? error : tw_id_cancel(id);
}

static int64_t call_id_state(struct tour *tour)
{
	return tw_id_state(tw_id_of(tour->self));
}

static int64_t call_id_reschedule(struct tour *tour)
{
	return tw_id_reschedule(tw_id_of(tour->self), 0);
}

static int64_t call_id_reschedule_at(struct tour *tour)
{
	return tw_id_reschedule_at(tw_id_of(tour->self), 0);
}

static int64_t call_id_handle(struct tour *tour)
{
	struct tw_handle self = tw_id_handle(tw_id_of(tour->self));

	return tw_handle_is_set(self) && tw_handle_equal(self, tour->self);
}

static int64_t call_text(struct tour *tour)
{
	return tw_timeout_text(tour->self, NULL, 0) > 0;
}

static int64_t call_due_run(struct tour *tour)
{
	(void)tour;
	return tw_due_run(NULL);
}

static int64_t call_schedule_periodic(struct tour *tour)
{
	static const struct tw_period period = TW_PERIOD_RATE(TW_NEVER);

	return tw_schedule_periodic(tour->fixture.engine, &period, &count_kind, NULL, &tour->made);
}

static int64_t call_schedule_wall(struct tour *tour)
{
	return tw_schedule_wall(tour->fixture.engine, TW_NEVER, &count_kind, NULL, &tour->made);
}

/* Sets the period. A separate test makes this call inside a run of a periodic timeout. */
static int64_t call_period_set(struct tour *tour)
{
	return tw_period_set(tour->self, NS_PER_S);
}

static int64_t call_run_get(struct tour *tour)
{
	struct tw_run run = {.size = sizeof run};
	int error = tw_run_get(&run);

	/* The dispatch hook runs on the worker, but not inside a run. */
	if (tour->moment == AT_DISPATCH)
		return error == -EPERM ? 0 : 1;
	return error != 0 ? error : run.arg != tour || run.engine != tour->fixture.engine;
}

static int64_t call_period_next(struct tour *tour)
{
	return tw_period_next(tour->self, NS_PER_S);
}

const struct call timeout_calls[] = {
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
	{"tw_id_schedule, tw_id_cancel", call_id_schedule, {0, 0, -ESHUTDOWN, 0}},
	{"tw_id_schedule_at", call_id_schedule_at, {0, 0, -ESHUTDOWN, 0}},
	{"tw_id_schedule_periodic", call_id_schedule_periodic, {0, 0, -ESHUTDOWN, 0}},
	{"tw_id_state",
	 call_id_state,
	 {TW_STATE_EXPIRED, TW_STATE_EXPIRED, TW_STATE_CANCELLED, TW_STATE_CANCELLED}},
	{"tw_id_reschedule",
	 call_id_reschedule,
	 {TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_CANCELLED,
	  TW_RESCHEDULE_CANCELLED}},
	{"tw_id_reschedule_at",
	 call_id_reschedule_at,
	 {TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_RUNNING, TW_RESCHEDULE_CANCELLED,
	  TW_RESCHEDULE_CANCELLED}},
	{"tw_id_of, tw_id_handle, tw_handle_equal, tw_handle_is_set", call_id_handle,
	 EVERYWHERE(1)},
	{"tw_timeout_text", call_text, EVERYWHERE(1)},
	{"tw_due_run", call_due_run, EVERYWHERE(-EINVAL)},
	{"tw_schedule_periodic", call_schedule_periodic, {0, 0, -ESHUTDOWN, 0}},
	{"tw_cancel, periodic",
	 call_cancel_made,
	 {TW_CANCEL_DONE, TW_CANCEL_DONE, -EINVAL, TW_CANCEL_DONE}},
	{"tw_schedule_wall", call_schedule_wall, {0, 0, -ESHUTDOWN, 0}},
	{"tw_cancel, with a date",
	 call_cancel_made,
	 {TW_CANCEL_DONE, TW_CANCEL_DONE, -EINVAL, TW_CANCEL_DONE}},
	{"tw_period_next", call_period_next, EVERYWHERE(-EPERM)},
	{"tw_period_set", call_period_set, EVERYWHERE(-EPERM)},
	{"tw_run_get", call_run_get, {0, 0, -EPERM, -EPERM}},
	{0},
};
