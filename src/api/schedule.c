/* SPDX-License-Identifier: MIT */
/*
 * tw_schedule and tw_schedule_at: the producers' hot path.
 *
 * A new timeout begins in CANCELLED, a state in which no other thread touches it (timeout/word.h).
 * All steps that can reject the timeout come next. Then the producer writes the timeout's handle,
 * offers the timeout (stores INIT or LINKED) and pushes it; these steps cannot fail. If the timeout
 * is rejected, its node returns to the stock in CANCELLED, so ring entries that still name it do no
 * harm.
 *
 * The handle. Every path must write `*ret_handle` after the last step that can reject, and before
 * the node is offered. An earlier write would also happen in a call that fails. After the offer,
 * the callback may have run, and may have freed the object that holds the handle. The offer and the
 * push publish the handle together with the node's fields, to the worker and to a forked child.
 */
#include "api/schedule.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/sized.h"
#include "base/tick.h"
#include "clock/tsc.h"
#include "engine/misuse.h"
#include "expiry/limit.h"
#include "expiry/run.h"
#include "expiry/slack.h"
#include "expiry/slow.h"
#include "ingress/pressure.h"
#include "ingress/push.h"
#include "thread/presence.h"
#include "thread/rcu.h"
#include "turn/direct.h"
#include "turn/fresh.h"
#include "worker/at_once.h"
#include "worker/state.h"

#include <errno.h>
#include <tickwheel/timeout.h>

/* Results of steps inside this file. The public functions never return them. */
enum {
	/* A bit: the timeout was accepted, and the caller must report a slow run. */
	REPORT = 1 << 16,
	/*
	 * The timeout was accepted, and the thread must slow down. An enum twi_throttle is added to
	 * this value.
	 */
	THROTTLED = 2,
};

static bool flags_right(const struct tw_kind *kind)
{
	uint32_t known = TW_KIND_FLAG_OWNER_ONLY | TW_KIND_FLAG_INLINE;

	if (kind->context == &twi_kind_own)
		known |= TWI_KIND_FLAG_OWN;
	return (kind->flags & ~known) == 0;
}

TWI_COLD int twi_kind_check(const struct tw_kind *kind)
{
	if (kind == NULL || kind->size < sizeof *kind || kind->callback == NULL ||
	    !flags_right(kind) || kind->slack_ns > (uint64_t)INT64_MAX)
		return -EINVAL;
	if (kind->size > TWI_STRUCT_BYTES_MAX || !twi_tail_zero(kind, sizeof *kind, kind->size))
		return -E2BIG;
	return 0;
}

/* Returns whether timeouts of this kind are owner-only. */
static inline bool kind_owned(const struct tw_kind *kind)
{
	return (kind->flags & TW_KIND_FLAG_OWNER_ONLY) != 0;
}

/*
 * Returns whether the kind is valid and needs no special path: it has this version's size, no
 * slack, and no flag besides owner-only.
 */
static inline bool kind_quick(const struct tw_kind *kind)
{
	return kind != NULL && kind->size == sizeof *kind &&
	       kind->flags <= TW_KIND_FLAG_OWNER_ONLY && kind->callback != NULL &&
	       kind->slack_ns == 0;
}

/*
 * Adds a unit (64 pushed timeouts) to those that wait for the worker, and checks whether the worker
 * keeps up. Called once per unit.
 */
static TWI_COLD int unit_end(struct twi_worker *worker, const struct twi_thread *thread,
			     uint64_t count, struct twi_report *ret_report)
{
	unsigned way = TWI_THROTTLE_FREE;
	int result;

	twi_units_add(worker, 1);
	if (count % TWI_THROTTLE_UNIT == 0)
		way = twi_throttle_level(worker, thread);
	result = way == TWI_THROTTLE_FREE ? 0 : THROTTLED + (int)way;
	if (TWI_UNLIKELY(worker->watch != NULL) && twi_watch_claim(worker, ret_report))
		result |= REPORT;
	return result;
}

/*
 * Reports and waits as unit_end has decided. May block, so it must be called outside of the RCU
 * section.
 */
static TWI_COLD void unit_report(int result, const struct twi_report *report)
{
	if ((result & REPORT) != 0)
		twi_report_deliver(report);
	result &= ~REPORT;
	if (result != 0)
		twi_throttle_wait((unsigned)(result - THROTTLED));
}

/*
 * Pushes a producer's timeout. Must be called inside the RCU section in which this thread saw that
 * the engine accepts, after every check that could reject the timeout. `marks`: bits of the
 * timeout's state word in addition to the state. `quick`: the lane is the thread's own, and its
 * ring has a free entry. Returns how many timeouts the lane has accepted so far.
 */
static TWI_ALWAYS_INLINE uint64_t lane_put(struct twi_worker *worker, struct twi_lane *lane,
					   struct tw_handle handle, uint64_t marks,
					   int64_t deadline_ns, const struct tw_kind *kind,
					   struct tw_handle *ret_handle, bool quick)
{
	struct twi_node *node = twi_node_of_handle(handle);
	uint64_t count;

	/*
	 * Must come before the push, because after the push the callback may run and read the
	 * handle.
	 */
	if (ret_handle != NULL)
		*ret_handle = handle;
	TWI_PROBE5(schedule, worker, node, handle.generation, deadline_ns, kind->callback);
	if (quick) {
		count = twi_half_count(&lane->scheduled_count, 1);
		twi_node_offer(node, handle.generation | marks, TWI_WORD_INIT);
		/*
		 * E163: needs no push if the worker will still read an older entry that names the
		 * node.
		 */
		if (!twi_lane_reads_again(lane, node))
			twi_ring_push(&lane->ring, (uintptr_t)node, twi_lane_unfenced(lane));
	} else {
		count = twi_lane_begin_count(lane);
		twi_lane_push(worker, lane, node, handle.generation | marks);
	}
	TWI_TEST_POINT("schedule:pushed");
	return count;
}

/*
 * Does the work that only few pushes need: wakes the worker if `earlier`, and ends a unit if the
 * push has completed one. Leaves the RCU section. If the thread's mark is set (`presence`), first
 * enters a section and clears the mark: a wake may make a system call, which is forbidden while the
 * mark is set.
 */
static TWI_NOINLINE int lane_report(struct twi_worker *worker, bool earlier, uint64_t count,
				    struct twi_presence *presence)
{
	struct twi_report report;
	int result = 0;

	if (presence != NULL) {
		twi_rcu_enter(); /* E10: stop keeps the engine until we leave. */
		twi_presence_leave(presence);
	}
	if (earlier)
		twi_park_wake(&worker->park);
	if (count % TWI_UNIT_TIMEOUTS == 0)
		result = unit_end(worker, &twi_thread_self, count, &report);
	twi_rcu_leave();
	if (result != 0)
		unit_report(result, &report);
	return 0;
}

/*
 * Wakes the worker or ends a unit if necessary, after each push. `presence`: the thread's mark
 * (thread/presence.h), which this function clears. If it is NULL, the thread is in an RCU section,
 * which this function leaves.
 */
static TWI_ALWAYS_INLINE int lane_leave(struct twi_worker *worker, int64_t deadline_ns,
					uint64_t count, struct twi_presence *presence)
{
	/*
	 * E8: must come after the push, so that either the worker sees the push before it sleeps,
	 * or we wake it.
	 */
	bool earlier = deadline_ns < twi_load_seq_cst(&worker->wake_before_ns);

	if (TWI_UNLIKELY(earlier || count % TWI_UNIT_TIMEOUTS == 0))
		return lane_report(worker, earlier, count, presence);
	if (presence != NULL)
		twi_presence_leave(presence);
	else
		twi_rcu_leave();
	return 0;
}

/*
 * Enters an RCU section in which the engine accepts, and takes one slot of its pending limit.
 * Starts the engine if necessary. Returns 0, and the caller is inside the section; or an error, and
 * the caller is not.
 */
static TWI_NOINLINE int lane_enter(struct tw_engine *engine, struct twi_thread *thread)
{
	struct twi_worker *worker = &engine->worker;
	int error;

	for (;;) {
		/*
		 * E10: the RCU section lasts from the look at the engine's state to the end of the
		 * push. If the engine stops accepting after this look, stop still waits for our
		 * push.
		 */
		twi_rcu_enter();
		/* RELAXED: no other data is read because of the state. */
		if (TWI_LIKELY(twi_state_accepts(twi_load_relaxed(&worker->state))))
			break;
		twi_rcu_leave();
		error = twi_engine_start(engine);
		if (error != 0)
			return error;
	}
	TWI_TEST_POINT("schedule:open");
	if (TWI_LIKELY(worker->pending_limit == 0) || twi_limit_take(worker, thread))
		return 0;
	twi_rcu_leave();
	return -EAGAIN;
}

TWI_COLD int twi_schedule_reject(struct tw_engine *engine, struct twi_thread *thread,
				 struct twi_node *node, int error)
{
	struct twi_lane *lane;

	if (node != NULL)
		twi_pool_give(&thread->stock, node);
	lane = twi_lane_made_of(&engine->worker, thread);
	twi_lane_count(lane, &lane->rejected_count);
	return error;
}

/*
 * Returns the state in which a timeout of this kind begins if the worker's own thread schedules it.
 */
static inline uint64_t local_state(const struct tw_kind *kind)
{
	return kind_owned(kind) ? TWI_WORD_OWNED : TWI_WORD_WHEELED;
}

/*
 * Inserts a timeout that the worker's own thread schedules, after every check that could reject it.
 * Needs no RCU section, because only this thread can complete a stop of the engine. `bits`: the
 * timeout's state, and other bits of its state word. `fresh`: the timeout joins the fresh list,
 * which has space.
 */
static TWI_ALWAYS_INLINE TWI_WORKER_UNCHECKED int
local_put(struct tw_engine *engine, struct twi_node *node, uint64_t bits, int64_t deadline_ns,
	  const struct tw_kind *kind, void *arg, struct tw_handle *ret_handle, bool fresh)
{
	struct twi_worker *worker = &engine->worker;
	struct tw_handle handle =
		twi_node_begin_here(node, bits, engine, kind, arg, deadline_ns, ret_handle);

	TWI_PROBE5(schedule, worker, node, handle.generation, deadline_ns, kind->callback);
	if (!fresh) {
		twi_direct_insert(worker, node, deadline_ns);
		return 0;
	}
	twi_fresh_put(worker, node);
	(void)twi_half_count(&worker->direct_scheduled_count, 1);
	return 0;
}

/* Schedules by the general path, on the worker's own thread. `bits`: as in local_put. */
static TWI_ALWAYS_INLINE TWI_WORKER_UNCHECKED int
local_schedule_as(struct tw_engine *engine, struct twi_thread *thread, uint64_t bits,
		  int64_t deadline_ns, const struct tw_kind *kind, void *arg,
		  struct tw_handle *ret_handle)
{
	struct twi_worker *worker = &engine->worker;
	struct twi_node *node;

	/* RELAXED: as in lane_enter. */
	if (TWI_UNLIKELY(!twi_state_accepts(twi_load_relaxed(&worker->state))))
		return twi_schedule_reject(engine, thread, NULL, -ESHUTDOWN);
	if (TWI_UNLIKELY(worker->pending_limit != 0) && !twi_limit_take(worker, thread))
		return twi_schedule_reject(engine, thread, NULL, -EAGAIN);
	node = twi_pool_take_warm(&thread->stock);
	if (TWI_UNLIKELY(node == NULL)) {
		if (worker->pending_limit != 0)
			twi_limit_give(worker);
		return twi_schedule_reject(engine, thread, NULL, -ENOMEM);
	}
	thread->wheel_of = worker;
	return local_put(engine, node, bits, deadline_ns, kind, arg, ret_handle, false);
}

static TWI_NOINLINE int local_schedule(struct tw_engine *engine, struct twi_thread *thread,
				       int64_t deadline_ns, const struct tw_kind *kind, void *arg,
				       struct tw_handle *ret_handle)
{
	return local_schedule_as(engine, thread, local_state(kind), deadline_ns, kind, arg,
				 ret_handle);
}

/*
 * Returns whether local_put alone can schedule the timeout. The engine must accept, the stock must
 * have a block, and the fresh list must have space. The deadline must be after fresh_after_ns
 * (turn/fresh.h), so that the loop need not wake up earlier for it.
 */
static inline TWI_WORKER_ONLY bool local_is_short(const struct twi_worker *worker,
						  const struct twi_thread *thread,
						  int64_t deadline_ns)
{
	/* RELAXED: as in lane_enter. */
	return deadline_ns > worker->fresh_after_ns && worker->fresh_count < TWI_FRESH_MAX &&
	       thread->stock.warm_count > 0 && twi_state_accepts(twi_load_relaxed(&worker->state));
}

/* Rejects an owner-only kind, because the calling thread is not the engine's owner. */
static TWI_COLD int owner_reject(struct tw_engine *engine, struct twi_thread *thread)
{
	/* RELAXED: as in lane_enter. */
	uint32_t state = twi_load_relaxed(&engine->worker.state);

	if (engine->worker.loop && state != TW_ENGINE_NEW && !twi_state_accepts(state))
		return twi_schedule_reject(engine, thread, NULL, -ESHUTDOWN);
	return twi_misuse(engine, TWI_MISUSE_OWNER_ONLY,
			  twi_schedule_reject(engine, thread, NULL, -EPERM));
}

/*
 * Schedules by the general path, on a producer. `marks`: bits of the state word in addition to the
 * state.
 */
static TWI_ALWAYS_INLINE int lane_schedule(struct tw_engine *engine, struct twi_thread *thread,
					   int64_t deadline_ns, const struct tw_kind *kind,
					   void *arg, uint64_t marks, struct tw_handle *ret_handle)
{
	struct twi_worker *worker = &engine->worker;
	struct twi_node *node = twi_pool_take_warm(&thread->stock);
	struct tw_handle handle;
	int error;

	if (TWI_UNLIKELY(node == NULL))
		return twi_schedule_reject(engine, thread, NULL, -ENOMEM);
	handle = twi_node_begin(node, engine, kind, arg, deadline_ns);
	error = lane_enter(engine, thread);
	if (TWI_UNLIKELY(error != 0))
		return twi_schedule_reject(engine, thread, node, error);
	return lane_leave(worker, deadline_ns,
			  lane_put(worker, twi_lane_of(worker, thread), handle, marks, deadline_ns,
				   kind, ret_handle, false),
			  NULL);
}

/* Returns whether the calling thread is the worker's own, and may touch the wheel. */
static inline bool wheel_ours(const struct tw_engine *engine, const struct twi_thread *thread)
{
	/*
	 * RELAXED: only this thread writes its own address to `owner`. So this thread finds that
	 * address there only while it is the owner.
	 */
	return twi_load_relaxed(&engine->worker.owner) == thread;
}

static TWI_NOINLINE TWI_WORKER_UNCHECKED int any_schedule(struct tw_engine *engine,
							  int64_t deadline_ns,
							  const struct tw_kind *kind, void *arg,
							  struct tw_handle *ret_handle)
{
	struct twi_thread *thread = twi_thread();
	bool ours = wheel_ours(engine, thread);

	if (TWI_UNLIKELY(!ours && kind_owned(kind)))
		return owner_reject(engine, thread);
	if (ours)
		return local_schedule(engine, thread, deadline_ns, kind, arg, ret_handle);
	return lane_schedule(engine, thread, deadline_ns, kind, arg, 0, ret_handle);
}

int twi_chain_schedule(struct tw_engine *engine, struct twi_thread *thread, int64_t deadline_ns,
		       const struct tw_kind *kind, struct twi_chain *chain,
		       struct tw_handle *ret_handle)
{
	if (wheel_ours(engine, thread))
		return local_schedule_as(engine, thread, TWI_WORD_WHEELED | TWI_WORD_PERIODIC,
					 deadline_ns, kind, chain, ret_handle);
	return lane_schedule(engine, thread, deadline_ns, kind, chain, TWI_WORD_PERIODIC,
			     ret_handle);
}

/*
 * Returns whether the thread may take the quick path. It must not have a wheel that it touches
 * directly (wheel_of). It must have a mark (thread/presence.h), which only a thread with a near
 * lane has, and its stock must have a free block.
 */
static inline bool quick_thread(const struct twi_thread *thread)
{
	return thread->wheel_of == NULL && twi_pool_ready(&thread->stock) &&
	       thread->presence != NULL;
}

/*
 * Returns whether the quick path may push to this lane's ring. The calling thread must be present
 * (thread/presence.h).
 */
static inline bool quick_open(const struct twi_worker *worker, const struct twi_lane *lane)
{
	/* RELAXED: as in lane_enter. */
	return twi_state_accepts(twi_load_relaxed(&worker->state)) && worker->quick &&
	       twi_ring_knows_room(&lane->ring);
}

/*
 * Returns whether the quick path may push to this lane's link queue. Must be called inside an RCU
 * section.
 */
static inline bool linked_open(const struct twi_worker *worker, const struct twi_lane *lane)
{
	/* RELAXED: as in lane_enter. E15: as in push.c. */
	return worker->ordered && twi_state_accepts(twi_load_relaxed(&worker->state)) &&
	       worker->pending_limit == 0 && twi_load_acquire(&lane->known);
}

/*
 * Continues quick_schedule if quick_open is false. The thread's mark must be clear. This path
 * serves engines whose timeouts run in order, because their lanes use only link queues.
 */
static TWI_NOINLINE int linked_schedule(struct tw_engine *engine, int64_t deadline_ns,
					const struct tw_kind *kind, void *arg,
					struct tw_handle *ret_handle)
{
	struct twi_thread *thread = &twi_thread_self;
	struct twi_worker *worker = &engine->worker;
	struct twi_lane *lane = twi_lane_of(worker, thread);
	struct tw_handle handle;
	struct twi_node *node;

	twi_rcu_enter(); /* E10: stop keeps the engine until we leave. */
	if (TWI_UNLIKELY(!linked_open(worker, lane))) {
		twi_rcu_leave();
		return any_schedule(engine, deadline_ns, kind, arg, ret_handle);
	}
	TWI_TEST_POINT("schedule:open");
	node = twi_pool_take_ready(&thread->stock);
	handle = twi_node_begin(node, engine, kind, arg, deadline_ns);
	return lane_leave(worker, deadline_ns,
			  lane_put(worker, lane, handle, 0, deadline_ns, kind, ret_handle, false),
			  NULL);
}

/* Schedules by the fast path, on a producer. Makes only tail calls, so it needs no stack frame. */
static TWI_ALWAYS_INLINE int quick_schedule(struct tw_engine *engine, int64_t deadline_ns,
					    const struct tw_kind *kind, void *arg,
					    struct tw_handle *ret_handle)
{
	struct twi_thread *thread = &twi_thread_self;
	struct twi_worker *worker = &engine->worker;
	/* The thread has a mark, and so a near lane of its own. */
	struct twi_lane *lane = &worker->near.lane[thread->lane];
	struct twi_presence *presence = thread->presence;
	struct tw_handle handle;
	struct twi_node *node;

	TWI_KEEP_ADDRESS(lane);
	twi_presence_enter(presence); /* E162: until we leave, stop keeps the engine. */
	if (TWI_UNLIKELY(!quick_open(worker, lane))) {
		twi_presence_leave(presence); /* E162 */
		return linked_schedule(engine, deadline_ns, kind, arg, ret_handle);
	}
	TWI_TEST_POINT("schedule:open");
	node = twi_pool_take_ready(&thread->stock);
	handle = twi_node_begin(node, engine, kind, arg, deadline_ns);
	return lane_leave(worker, deadline_ns,
			  lane_put(worker, lane, handle, 0, deadline_ns, kind, ret_handle, true),
			  presence);
}

static TWI_COLD int arguments_check(const struct tw_engine *engine, int64_t time_ns,
				    const struct tw_kind *kind)
{
	if (TWI_UNLIKELY(engine == NULL))
		return -EINVAL;
	if (TWI_UNLIKELY(twi_engine_of_parent(engine)))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	if (TWI_UNLIKELY(time_ns == INT64_MIN))
		return -ERANGE;
	return twi_kind_check(kind);
}

/* Takes the quick path for producers if possible, otherwise the general path. */
static TWI_ALWAYS_INLINE int quick_or_schedule(struct tw_engine *engine, int64_t deadline_ns,
					       const struct tw_kind *kind, void *arg,
					       struct tw_handle *ret_handle)
{
	if (TWI_LIKELY(kind->flags == 0 && quick_thread(&twi_thread_self)))
		return quick_schedule(engine, deadline_ns, kind, arg, ret_handle);
	return any_schedule(engine, deadline_ns, kind, arg, ret_handle);
}

/* Takes the short path for the engine's owner if possible, otherwise a path for producers. */
static TWI_ALWAYS_INLINE TWI_WORKER_UNCHECKED int
own_or_schedule(struct tw_engine *engine, int64_t deadline_ns, const struct tw_kind *kind,
		void *arg, struct tw_handle *ret_handle)
{
	if (twi_thread_self.wheel_of == &engine->worker &&
	    local_is_short(&engine->worker, &twi_thread_self, deadline_ns))
		return local_put(engine, twi_pool_get_warm(&twi_thread_self.stock),
				 local_state(kind), deadline_ns, kind, arg, ret_handle, true);
	return quick_or_schedule(engine, deadline_ns, kind, arg, ret_handle);
}

/* Schedules if the engine's clock can only be read by a function call. */
static TWI_NOINLINE int clock_schedule(struct tw_engine *engine, int64_t delay_ns,
				       const struct tw_kind *kind, void *arg,
				       struct tw_handle *ret_handle)
{
	return own_or_schedule(engine, twi_clock_after_ns(engine->worker.clock, delay_ns), kind,
			       arg, ret_handle);
}

static TWI_COLD int special_schedule_to(struct tw_engine *engine, int64_t deadline_ns,
					const struct tw_kind *kind, void *arg,
					struct tw_handle *ret_handle)
{
	if (kind->slack_ns != 0)
		deadline_ns = twi_slacken(&engine->worker, deadline_ns, kind->slack_ns);
	return any_schedule(engine, deadline_ns, kind, arg, ret_handle);
}

/*
 * Serves the calls that the paths above do not serve: kind_quick is false for the kind, the
 * deadline is negative, or an argument is invalid.
 */
static TWI_COLD int special_schedule_at(struct tw_engine *engine, int64_t deadline_ns,
					const struct tw_kind *kind, void *arg,
					struct tw_handle *ret_handle)
{
	int error = arguments_check(engine, deadline_ns, kind);

	if (error != 0)
		return error;
	return special_schedule_to(engine, deadline_ns < 0 ? TWI_LONG_PAST_NS : deadline_ns, kind,
				   arg, ret_handle);
}

static TWI_COLD int special_schedule(struct tw_engine *engine, int64_t delay_ns,
				     const struct tw_kind *kind, void *arg,
				     struct tw_handle *ret_handle)
{
	int error = arguments_check(engine, delay_ns, kind);

	if (error != 0)
		return error;
	return special_schedule_to(engine, twi_deadline_ns(&engine->worker, delay_ns), kind, arg,
				   ret_handle);
}

int tw_schedule(struct tw_engine *engine, int64_t delay_ns, const struct tw_kind *kind, void *arg,
		struct tw_handle *ret_handle)
{
	int64_t deadline_ns;

	if (TWI_UNLIKELY(engine == NULL || twi_engine_of_parent(engine) || !kind_quick(kind) ||
			 delay_ns <= 0))
		return special_schedule(engine, delay_ns, kind, arg, ret_handle);
	if (TWI_UNLIKELY(!twi_clock_quick_after_ns(engine->worker.clock, delay_ns, &deadline_ns)))
		return clock_schedule(engine, delay_ns, kind, arg, ret_handle);
	return own_or_schedule(engine, deadline_ns, kind, arg, ret_handle);
}

/* Continues tw_schedule_at if the short path for the engine's owner is not possible. */
static TWI_NOINLINE int other_schedule_at(struct tw_engine *engine, int64_t deadline_ns,
					  const struct tw_kind *kind, void *arg,
					  struct tw_handle *ret_handle)
{
	if (TWI_UNLIKELY(twi_engine_of_parent(engine) || deadline_ns < 0))
		return special_schedule_at(engine, deadline_ns, kind, arg, ret_handle);
	return quick_or_schedule(engine, deadline_ns, kind, arg, ret_handle);
}

TWI_WORKER_UNCHECKED int tw_schedule_at(struct tw_engine *engine, int64_t deadline_ns,
					const struct tw_kind *kind, void *arg,
					struct tw_handle *ret_handle)
{
	if (TWI_UNLIKELY(engine == NULL || !kind_quick(kind)))
		return special_schedule_at(engine, deadline_ns, kind, arg, ret_handle);
	/*
	 * A thread whose wheel_of is set is attached and not in a forked child. So this path needs
	 * no check for either.
	 */
	if (twi_thread_self.wheel_of == &engine->worker &&
	    local_is_short(&engine->worker, &twi_thread_self, deadline_ns))
		return local_put(engine, twi_pool_get_warm(&twi_thread_self.stock),
				 local_state(kind), deadline_ns, kind, arg, ret_handle, true);
	return other_schedule_at(engine, deadline_ns, kind, arg, ret_handle);
}
