/* SPDX-License-Identifier: MIT */
/* Calls of the layers above timeouts: keyed tables, retry queues, groups of engines, scopes,
 * scaled timeouts. */
#include "calls.h"

static int64_t call_keyed_options_init(struct tour *tour)
{
	struct tw_keyed_options options;

	(void)tour;
	return tw_keyed_options_init(&options, sizeof(options));
}

static int64_t call_keyed_owns(struct tour *tour)
{
	(void)tour;
	return tw_keyed_owns(&count_kind);
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

static int64_t call_retry_options_init(struct tour *tour)
{
	struct tw_retry_options options;

	(void)tour;
	return tw_retry_options_init(&options, sizeof(options));
}

static int64_t call_retry_owns(struct tour *tour)
{
	(void)tour;
	return tw_retry_owns(&count_kind);
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

static const struct tw_retry_schedule failback = TW_RETRY_READY(TW_RETRY_FORM_FAILBACK);
static const struct tw_retry_kind failback_kind = TW_RETRY_KIND(on_attempt, NULL, &failback, 1);

static int64_t call_retry_delay(struct tour *tour)
{
	(void)tour;
	return tw_retry_delay(&failback, 7);
}

static int64_t call_retry_submit(struct tour *tour)
{
	tour->task = (struct tw_retry_handle){0};
	return tw_retry_submit(tour->queue, NS_PER_S, &failback_kind, NULL, &tour->task);
}

static int64_t call_retry_submit_failed(struct tour *tour)
{
	tour->task = (struct tw_retry_handle){0};
	return tw_retry_submit_failed(tour->queue, &failback_kind, NULL, &tour->task);
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

static int64_t call_group_options_init(struct tour *tour)
{
	struct tw_group_options options;

	(void)tour;
	return tw_group_options_init(&options, sizeof(options));
}

/* Creates a group. The calling callback belongs to an engine outside of it. */
static int64_t call_group_create(struct tour *tour)
{
	struct tw_group_options options;

	(void)tw_group_options_init(&options, sizeof(options));
	options.engines = 2;
	return tw_group_create(&options, &tour->group);
}

static int64_t call_group_engines(struct tour *tour)
{
	return tw_group_engines(tour->group);
}

static int64_t call_group_engine(struct tour *tour)
{
	return tw_group_engine(tour->group, 1) != NULL && tw_group_engine(tour->group, 2) == NULL;
}

static int64_t call_group_here(struct tour *tour)
{
	return tw_group_here(tour->group) != NULL;
}

static int64_t call_group_schedule(struct tour *tour)
{
	return tw_group_schedule(tour->group, TW_NEVER, &count_kind, NULL, NULL);
}

static int64_t call_group_schedule_at(struct tour *tour)
{
	return tw_group_schedule_at(tour->group, TW_NEVER, &count_kind, NULL, NULL);
}

static int64_t call_group_schedule_periodic(struct tour *tour)
{
	static const struct tw_period period = TW_PERIOD_RATE(TW_NEVER);

	return tw_group_schedule_periodic(tour->group, &period, &count_kind, NULL, NULL);
}

static int64_t call_group_pending(struct tour *tour)
{
	return tw_group_pending(tour->group);
}

static int64_t call_group_stats(struct tour *tour)
{
	struct tw_stats stats = {.size = sizeof(stats)};
	int error = tw_group_stats_get(tour->group, &stats);

	return error != 0 ? error : (int64_t)stats.scheduled;
}

static int64_t call_group_histogram(struct tour *tour)
{
	static struct tw_histogram histogram = {.size = sizeof(histogram)};

	return tw_group_histogram_get(tour->group, TW_MEASUREMENT_DURATION, &histogram);
}

static int64_t call_group_stop(struct tour *tour)
{
	return tw_group_stop(tour->group, NULL, NULL, TW_NEVER);
}

static int64_t call_group_destroy(struct tour *tour)
{
	return tw_group_destroy(tour->group);
}

static int64_t call_scope_create(struct tour *tour)
{
	return tw_scope_create(tour->fixture.engine, NULL, &tour->scope);
}

static int64_t call_scope_schedule(struct tour *tour)
{
	return tw_scope_schedule(tour->scope, NS_PER_S, &count_kind, NULL, NULL);
}

static int64_t call_scope_schedule_at(struct tour *tour)
{
	return tw_scope_schedule_at(tour->scope, TW_NEVER, &count_kind, NULL, NULL);
}

static int64_t call_scope_count(struct tour *tour)
{
	return tw_scope_count(tour->scope);
}

static int64_t call_scope_end(struct tour *tour)
{
	return tw_scope_end(tour->scope);
}

static int64_t call_scope_end_wait(struct tour *tour)
{
	return tw_scope_end_wait(tour->scope, TW_NEVER);
}

static int64_t call_scope_destroy(struct tour *tour)
{
	return tw_scope_destroy(tour->scope);
}

/* Uses its own engine, because the tour's engine may have been stopped already. */
static int64_t call_scaled_create(struct tour *tour)
{
	struct tw_options options;
	int error = tw_options_init(&options, sizeof options);

	options.flags = TW_ENGINE_LOOP;
	if (error == 0)
		error = tw_engine_create(&options, &tour->scaled_engine);
	if (error == 0)
		error = tw_scaled_create(tour->scaled_engine, NS_PER_S, 9 * NS_PER_S,
					 &tour->scaled);
	return error;
}

static int64_t call_scaled_schedule(struct tour *tour)
{
	return tw_scaled_schedule(tour->scaled, &count_kind, NULL, &tour->scaled_handle);
}

static int64_t call_scaled_touch(struct tour *tour)
{
	return tw_scaled_touch(tour->scaled, tour->scaled_handle);
}

static int64_t call_scaled_deadline(struct tour *tour)
{
	int64_t deadline_ns;

	return tw_scaled_deadline(tour->scaled, tour->scaled_handle, &deadline_ns);
}

static int64_t call_scaled_factor_set(struct tour *tour)
{
	return tw_scaled_factor_set(tour->scaled_engine, 0.5);
}

static int64_t call_scaled_factor_get(struct tour *tour)
{
	double factor;

	return tw_scaled_factor_get(tour->scaled_engine, &factor);
}

static int64_t call_scaled_pending(struct tour *tour)
{
	return tw_scaled_pending(tour->scaled);
}

static int64_t call_scaled_owns(struct tour *tour)
{
	(void)tour;
	return tw_scaled_owns(&count_kind);
}

static int64_t call_scaled_stop(struct tour *tour)
{
	return tw_scaled_stop(tour->scaled, NULL, NULL, TW_NEVER);
}

static int64_t call_scaled_destroy(struct tour *tour)
{
	int error = tw_scaled_destroy(tour->scaled);

	if (error == 0)
		error = tw_engine_stop(tour->scaled_engine, NULL, NULL, TW_NEVER);
	return error == 0 ? tw_engine_destroy(tour->scaled_engine) : error;
}

const struct call layer_calls[] = {
	{"tw_keyed_options_init", call_keyed_options_init, EVERYWHERE(0)},
	{"tw_keyed_owns", call_keyed_owns, EVERYWHERE(0)},
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
	{"tw_retry_options_init", call_retry_options_init, EVERYWHERE(0)},
	{"tw_retry_owns", call_retry_owns, EVERYWHERE(0)},
	{"tw_retry_delay", call_retry_delay, EVERYWHERE(5 * NS_PER_S)},
	{"tw_retry_create", call_retry_create, EVERYWHERE(0)},
	{"tw_retry_submit", call_retry_submit, {0, 0, -ESHUTDOWN, 0}},
	{"tw_retry_complete", call_retry_complete, EVERYWHERE(-EINVAL)},
	{"tw_retry_cancel",
	 call_retry_cancel,
	 {TW_RETRY_CANCEL_DONE, TW_RETRY_CANCEL_DONE, -EINVAL, TW_RETRY_CANCEL_DONE}},
	{"tw_retry_submit_failed", call_retry_submit_failed, {0, 0, -ESHUTDOWN, 0}},
	{"tw_retry_cancel, again",
	 call_retry_cancel,
	 {TW_RETRY_CANCEL_DONE, TW_RETRY_CANCEL_DONE, -EINVAL, TW_RETRY_CANCEL_DONE}},
	{"tw_retry_pending", call_retry_pending, EVERYWHERE(0)},
	{"tw_retry_destroy", call_retry_destroy, EVERYWHERE(0)},
	{"tw_group_options_init", call_group_options_init, EVERYWHERE(0)},
	{"tw_group_create", call_group_create, EVERYWHERE(0)},
	{"tw_group_engines", call_group_engines, EVERYWHERE(2)},
	{"tw_group_engine", call_group_engine, EVERYWHERE(1)},
	{"tw_group_here", call_group_here, EVERYWHERE(1)},
	{"tw_group_schedule", call_group_schedule, EVERYWHERE(0)},
	{"tw_group_schedule_at", call_group_schedule_at, EVERYWHERE(0)},
	{"tw_group_schedule_periodic", call_group_schedule_periodic, EVERYWHERE(0)},
	{"tw_group_pending", call_group_pending, EVERYWHERE(3)},
	{"tw_group_stats_get", call_group_stats, EVERYWHERE(3)},
	{"tw_group_histogram_get", call_group_histogram, EVERYWHERE(-EINVAL)},
	{"tw_group_stop", call_group_stop, EVERYWHERE(0)},
	{"tw_group_destroy", call_group_destroy, EVERYWHERE(0)},
	{"tw_scope_create", call_scope_create, EVERYWHERE(0)},
	{"tw_scope_schedule", call_scope_schedule, {0, 0, -ESHUTDOWN, 0}},
	{"tw_scope_schedule_at", call_scope_schedule_at, {0, 0, -ESHUTDOWN, 0}},
	{"tw_scope_count", call_scope_count, {2, 2, 0, 2}},
	{"tw_scope_end", call_scope_end, {2, 2, 0, 2}},
	{"tw_scope_end_wait", call_scope_end_wait, EVERYWHERE(0)},
	{"tw_scope_destroy", call_scope_destroy, EVERYWHERE(0)},
	{"tw_scaled_create", call_scaled_create, EVERYWHERE(0)},
	{"tw_scaled_schedule", call_scaled_schedule, EVERYWHERE(0)},
	{"tw_scaled_touch", call_scaled_touch, EVERYWHERE(0)},
	{"tw_scaled_deadline", call_scaled_deadline, EVERYWHERE(0)},
	{"tw_scaled_factor_set", call_scaled_factor_set, EVERYWHERE(0)},
	{"tw_scaled_factor_get", call_scaled_factor_get, EVERYWHERE(0)},
	{"tw_scaled_pending", call_scaled_pending, EVERYWHERE(1)},
	{"tw_scaled_owns", call_scaled_owns, EVERYWHERE(0)},
	{"tw_scaled_stop", call_scaled_stop, EVERYWHERE(0)},
	{"tw_scaled_destroy", call_scaled_destroy, EVERYWHERE(0)},
	{0},
};
