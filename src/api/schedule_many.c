/* SPDX-License-Identifier: MIT */
/*
 * tw_schedule_many and tw_schedule_many_at.
 *
 * A call works in spans of at most TWI_BATCH_MAX items. A span has one RCU section, one batch of
 * pushes (ingress/batch.h), and one check whether the worker sleeps. In a span each item is
 * checked, gets its node, is counted and is added to the batch. An item can be rejected only before
 * it is added. Its handle and its error code must be written just before it is added, because from
 * then on its callback may run, and may free the arrays.
 *
 * An item is scheduled by the single call (tw_schedule_at) in two cases: the caller is the engine's
 * own worker, which uses its wheel directly, or the item's kind has a flag. If the engine does not
 * accept, the call starts it outside the RCU section, as the single call does. If the start fails,
 * all remaining items are rejected with the start's error code.
 *
 * Inside the section a magazine may be allocated, and the first push to a lane allocates its ring.
 * The thread cannot be cancelled (pthread_cancel) in the allocator's hook (memory.h).
 */
#include "api/schedule.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "clock/tsc.h"
#include "engine/misuse.h"
#include "expiry/limit.h"
#include "expiry/slack.h"
#include "expiry/slow.h"
#include "ingress/batch.h"
#include "ingress/pressure.h"
#include "ingress/push.h"
#include "thread/rcu.h"
#include "worker/at_once.h"
#include "worker/state.h"

#include <errno.h>
#include <tickwheel/batch.h>

/* The state of one call. */
struct batch {
	struct tw_engine *engine;
	const struct tw_item *item;
	struct tw_handle *ret_handle; /* the caller's array, or NULL */
	int *ret_error;               /* the caller's array, or NULL */
	size_t count;
	size_t at; /* index of the next item */
	size_t scheduled;
	int64_t base_ns;        /* the items' times count from here */
	int64_t past_before_ns; /* items with an earlier time are due at once */
	int64_t past_ns;        /* the deadline of such items; TW_NEVER until the clock is read */
	const struct tw_kind *kind; /* the last valid kind, or NULL */
};

/* The state of one RCU section. */
struct span {
	struct twi_batch batch;
	struct twi_worker *worker;
	struct twi_thread *thread;
	int64_t earliest_ns;
	uint32_t units; /* units that this section has filled */
	/* at the end of the section, check whether the caller must slow down */
	bool throttle_checked;
	bool slow_found; /* the caller reports a slow run after the section */
	struct twi_report report;
};

/* Returns the address to which the next item's handle is written, or NULL. */
static inline struct tw_handle *item_handle(const struct batch *batch)
{
	return batch->ret_handle != NULL ? &batch->ret_handle[batch->at] : NULL;
}

static inline void item_error(const struct batch *batch, int error)
{
	if (batch->ret_error != NULL)
		batch->ret_error[batch->at] = error;
}

static inline void item_scheduled(struct batch *batch, struct tw_handle handle)
{
	if (batch->ret_handle != NULL)
		batch->ret_handle[batch->at] = handle;
	item_error(batch, 0);
	batch->scheduled++;
	batch->at++;
}

static TWI_COLD void item_rejected(struct batch *batch, int error)
{
	if (batch->ret_handle != NULL)
		batch->ret_handle[batch->at] = (struct tw_handle){0};
	item_error(batch, error);
	batch->at++;
}

/*
 * Checks a kind. Most items have the same kind as the item before, and that kind is not checked
 * again.
 */
static inline int kind_check(struct batch *batch, const struct tw_kind *kind)
{
	int error;

	if (TWI_LIKELY(kind == batch->kind && kind != NULL))
		return 0;
	error = twi_kind_check(kind);
	if (error == 0)
		batch->kind = kind;
	return error;
}

/* Returns 0, or the error that the single call would return for the item. */
static inline int item_check(struct batch *batch, const struct tw_item *item)
{
	if (TWI_UNLIKELY(item->time_ns == INT64_MIN))
		return -ERANGE;
	return kind_check(batch, item->kind);
}

/* Returns the deadline for items that are due at once. Reads the clock at most once per call. */
static TWI_COLD int64_t past_ns(struct batch *batch)
{
	if (batch->past_ns == TW_NEVER)
		batch->past_ns = twi_at_once_ns(&batch->engine->worker);
	return batch->past_ns;
}

/*
 * Computes an item's deadline. If the items' times are deadlines, base_ns and past_before_ns are 0.
 */
static inline int64_t item_deadline_ns(struct batch *batch, const struct tw_item *item)
{
	if (TWI_UNLIKELY(item->time_ns < batch->past_before_ns))
		return past_ns(batch);
	return twi_deadline_after(batch->base_ns, item->time_ns);
}

/*
 * Schedules the next item by the single call. Writes the error code 0 before the call, because
 * after the call the callback may have run and freed the array. If the call fails, its error code
 * replaces the 0.
 */
static TWI_NOINLINE void single_schedule(struct batch *batch)
{
	const struct tw_item *item = &batch->item[batch->at];
	int error = item_check(batch, item);

	item_error(batch, 0);
	if (error == 0)
		error = tw_schedule_at(batch->engine, item_deadline_ns(batch, item), item->kind,
				       item->arg, item_handle(batch));
	if (error != 0) {
		item_rejected(batch, error);
		return;
	}
	batch->scheduled++;
	batch->at++;
}

/*
 * Rejects the rest of the batch with this error. But an invalid item gets its own error code. An
 * item whose kind has a flag is still scheduled by the single call.
 */
static TWI_COLD void rest_reject(struct batch *batch, int error)
{
	while (batch->at < batch->count) {
		const struct tw_item *item = &batch->item[batch->at];
		int own_error = item_check(batch, item);

		if (own_error == 0 && item->kind->flags != 0) {
			single_schedule(batch);
			continue;
		}
		if (own_error == 0)
			own_error = twi_schedule_reject(batch->engine, twi_thread(), NULL, error);
		item_rejected(batch, own_error);
	}
}

static TWI_NOINLINE struct twi_node *node_refill(struct twi_thread *thread)
{
	return twi_pool_take_warm(&thread->stock);
}

static inline struct twi_node *node_take(struct twi_thread *thread)
{
	if (TWI_LIKELY(twi_pool_ready(&thread->stock)))
		return twi_pool_take_ready(&thread->stock);
	return node_refill(thread);
}

/*
 * Counts a unit that is full (64 pushed timeouts). After some units, the end of the section must
 * also check whether the caller must slow down.
 */
static TWI_NOINLINE void span_unit_end(struct span *span, uint64_t count)
{
	span->units++;
	span->throttle_checked |= count % TWI_THROTTLE_UNIT == 0;
}

static inline void node_add(struct span *span, struct twi_node *node, uint64_t generation,
			    int64_t deadline_ns)
{
	uint64_t count = twi_lane_begin_count(span->batch.lane);

	if (TWI_UNLIKELY(count % TWI_UNIT_TIMEOUTS == 0))
		span_unit_end(span, count);
	if (deadline_ns < span->earliest_ns)
		span->earliest_ns = deadline_ns;
	twi_batch_add(&span->batch, node, generation);
}

/* Adds the next item, which must be valid. Returns 0, or the error with which it is rejected. */
static inline int span_item(struct batch *batch, struct span *span, const struct tw_item *item)
{
	struct twi_node *node = node_take(span->thread);
	int64_t deadline_ns = item_deadline_ns(batch, item);
	struct tw_handle handle;

	if (TWI_UNLIKELY(node == NULL))
		return twi_schedule_reject(batch->engine, span->thread, NULL, -ENOMEM);
	if (TWI_UNLIKELY(span->worker->pending_limit != 0) &&
	    !twi_limit_take(span->worker, span->thread))
		return twi_schedule_reject(batch->engine, span->thread, node, -EAGAIN);
	if (TWI_UNLIKELY(item->kind->slack_ns != 0))
		deadline_ns = twi_slacken(span->worker, deadline_ns, item->kind->slack_ns);
	handle = twi_node_begin(node, batch->engine, item->kind, item->arg, deadline_ns);
	TWI_PROBE5(schedule, span->worker, node, handle.generation, deadline_ns,
		   item->kind->callback);
	item_scheduled(batch, handle);
	node_add(span, node, handle.generation, deadline_ns);
	return 0;
}

/*
 * Adds items up to `end`, or up to an item that needs the single call because its kind has a flag.
 */
static void span_items(struct batch *batch, struct span *span, size_t end)
{
	while (batch->at < end) {
		const struct tw_item *item = &batch->item[batch->at];
		int error = item_check(batch, item);

		if (TWI_UNLIKELY(error == 0 && item->kind->flags != 0))
			return;
		if (TWI_LIKELY(error == 0))
			error = span_item(batch, span, item);
		if (TWI_UNLIKELY(error != 0))
			item_rejected(batch, error);
	}
}

/* Wakes the worker if necessary. Returns how much the caller must slow down after the section. */
static inline unsigned span_report(struct span *span)
{
	TWI_TEST_POINT("schedule:pushed");
	/*
	 * E8: must come after the pushes, so that either the worker sees them before it sleeps, or
	 * we wake it.
	 */
	if (TWI_UNLIKELY(span->earliest_ns < twi_load_seq_cst(&span->worker->wake_before_ns)))
		twi_park_wake(&span->worker->park);
	if (TWI_UNLIKELY(span->units != 0)) {
		twi_units_add(span->worker, span->units);
		span->slow_found =
			span->worker->watch != NULL && twi_watch_claim(span->worker, &span->report);
	}
	return span->throttle_checked ? twi_throttle_level(span->worker, span->thread)
				      : TWI_THROTTLE_FREE;
}

/*
 * Sets all fields except `batch` (see twi_batch_begin) and `report`, which is read only if
 * slow_found is set.
 */
static inline void span_begin(struct span *span, const struct batch *batch,
			      struct twi_thread *thread)
{
	span->worker = &batch->engine->worker;
	span->thread = thread;
	span->earliest_ns = INT64_MAX;
	span->units = 0;
	span->throttle_checked = false;
	span->slow_found = false;
}

/* Schedules one span. Returns false, and does nothing, if the engine does not accept. */
static bool span_schedule(struct batch *batch, struct twi_thread *thread)
{
	size_t left = batch->count - batch->at;
	size_t wanted = left < TWI_BATCH_MAX ? left : TWI_BATCH_MAX;
	struct span span;
	unsigned way;

	span_begin(&span, batch, thread);

	/* E10: the RCU section lasts from the look at the engine's state to the end of the push. */
	twi_rcu_enter();
	/* RELAXED: no other data is read because of the state. */
	if (TWI_UNLIKELY(!twi_state_accepts(twi_load_relaxed(&span.worker->state)))) {
		twi_rcu_leave();
		return false;
	}
	TWI_TEST_POINT("schedule:open");
	twi_batch_begin(&span.batch, span.worker, thread, (uint32_t)wanted);
	span_items(batch, &span, batch->at + wanted);
	twi_batch_end(&span.batch);
	way = span_report(&span);
	twi_rcu_leave();
	if (TWI_UNLIKELY(span.slow_found))
		twi_report_deliver(&span.report);
	if (TWI_UNLIKELY(way != TWI_THROTTLE_FREE))
		twi_throttle_wait(way);
	return true;
}

/* Returns true if the next item must be scheduled by the single call. */
static bool item_apart(const struct batch *batch, const struct twi_thread *thread)
{
	const struct tw_kind *kind = batch->item[batch->at].kind;

	/*
	 * RELAXED: only this thread writes its own address to `owner`. So this thread finds that
	 * address there only while it is the owner.
	 */
	return twi_load_relaxed(&batch->engine->worker.owner) == thread ||
	       (kind != NULL && kind == batch->kind && kind->flags != 0);
}

/*
 * Starts an engine that does not accept. First rejects invalid items up to the first valid one.
 * Does not start the engine if no item is left, or if the single call must schedule the next item.
 */
static TWI_COLD int span_start(struct batch *batch, const struct twi_thread *thread)
{
	int error = 0;

	while (batch->at < batch->count &&
	       (error = item_check(batch, &batch->item[batch->at])) != 0)
		item_rejected(batch, error);
	if (batch->at == batch->count || item_apart(batch, thread))
		return 0;
	return twi_engine_start(batch->engine);
}

static void batch_schedule(struct batch *batch)
{
	while (batch->at < batch->count) {
		struct twi_thread *thread = twi_thread();
		int error = 0;

		if (item_apart(batch, thread))
			single_schedule(batch);
		else if (!span_schedule(batch, thread))
			error = span_start(batch, thread);
		if (TWI_UNLIKELY(error != 0))
			rest_reject(batch, error);
	}
}

static int arguments_check(const struct tw_engine *engine, const struct tw_item *items,
			   size_t count)
{
	if (engine == NULL || items == NULL || count == 0)
		return -EINVAL;
	if (count > TW_BATCH_MAX)
		return -ERANGE;
	return twi_engine_of_parent(engine) ? twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD) : 0;
}

/* Returns the time from which the items' delays count. */
static int64_t begin_ns(struct tw_engine *engine)
{
	int64_t now_ns;

	if (twi_clock_quick_after_ns(engine->worker.clock, 0, &now_ns))
		return now_ns;
	return twi_clock_after_ns(engine->worker.clock, 0);
}

static TWI_ALWAYS_INLINE int many_schedule(struct tw_engine *engine, bool delays,
					   const struct tw_item *items, size_t count,
					   struct tw_handle *ret_handles, int *ret_errors)
{
	struct batch batch = {.engine = engine,
			      .item = items,
			      .ret_handle = ret_handles,
			      .ret_error = ret_errors,
			      .count = count,
			      .past_ns = TWI_LONG_PAST_NS};
	int error = arguments_check(engine, items, count);

	if (error != 0)
		return error;
	if (delays) {
		batch.base_ns = begin_ns(engine);
		batch.past_before_ns = 1;
		batch.past_ns = TW_NEVER;
	}
	batch_schedule(&batch);
	return (int)batch.scheduled;
}

int tw_schedule_many(struct tw_engine *engine, const struct tw_item *items, size_t count,
		     struct tw_handle *ret_handles, int *ret_errors)
{
	return many_schedule(engine, true, items, count, ret_handles, ret_errors);
}

int tw_schedule_many_at(struct tw_engine *engine, const struct tw_item *items, size_t count,
			struct tw_handle *ret_handles, int *ret_errors)
{
	return many_schedule(engine, false, items, count, ret_handles, ret_errors);
}
