/* SPDX-License-Identifier: MIT */
/*
 * tw_cancel and tw_cancel_wait.
 *
 * If the timeout is in a ring (INIT), the canceller notifies no thread. The ring holds only the
 * node's address, so the canceller owns the node at once. The node may already serve another
 * timeout while the stale ring entry still names it. If the timeout is in a link queue (LINKED),
 * the canceller notifies no thread either. But the queue links the node itself, so only transfer
 * can free it. If the timeout is in the wheel, the canceller notifies the worker by a push, unless
 * a reschedule pushes the node anyway.
 *
 * The canceller touches the engine only inside an RCU section, or while its mark is set
 * (thread/presence.h), and only if it saw the timeout alive there. Stop waits for the sections
 * (E10) and for the marks (E162) before it lets the engine be freed. The worker's own thread takes
 * a shorter path (turn/direct.h).
 *
 * If a periodic timeout waits, it is cancelled like all others, and the canceller also frees its
 * chain's block. If its callback runs, the canceller sets the bit `over` in the state word, and the
 * thread that runs the callback does the rest (expiry/periodic.c). If the timeout has returned to
 * the wheel before the canceller's swap, the canceller cancels it there.
 *
 * Progress. Lock-free: a swap fails only if transfer, the timeout's end, or a reschedule has
 * changed the state word first.
 */
#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "engine/misuse.h"
#include "expiry/limit.h"
#include "expiry/periodic.h"
#include "expiry/run.h"
#include "ingress/pressure.h"
#include "ingress/push.h"
#include "thread/futex.h"
#include "thread/presence.h"
#include "thread/rcu.h"
#include "timeout/recovery.h"
#include "turn/direct.h"
#include "turn/fresh.h"
#include "worker/role.h"

#include <errno.h>
#include <tickwheel/timeout.h>

/*
 * The fields that a cancel needs after its swap. The canceller copies them before the swap, because
 * after the swap the node may serve another timeout.
 */
struct victim {
	struct twi_node *node;
	struct twi_worker *worker;
	const struct tw_kind *kind;
	void *arg;
	uint64_t count; /* number of this cancel in its lane; 0: the worker has no work */
};

/*
 * Does the work that follows a successful swap, unless the timeout was in the calling thread's own
 * wheel. `state`: the state before the swap. `quick`: the timeout was in a ring, the lane is the
 * thread's own, the stock has space, and the engine has no limit. Returns the number of this cancel
 * in its lane, or 0 if the cancel leaves the worker no work.
 */
static TWI_ALWAYS_INLINE uint64_t lane_cancelled(struct twi_worker *worker, struct twi_lane *lane,
						 struct twi_thread *thread, struct tw_handle handle,
						 uint64_t state, bool quick)
{
	struct twi_node *node = twi_node_of_handle(handle);
	uint64_t count = 0;

	TWI_TEST_POINT("cancel:swapped");
	TWI_PROBE4(cancel, worker, node, handle.generation,
		   state == TWI_WORD_WHEELED ? TWI_PROBE_IN_WHEEL : TWI_PROBE_ON_ITS_WAY);
	if (quick) {
		(void)twi_half_count(&lane->ended_count, 1);
		twi_pool_put_warm(&thread->stock, node);
		return 0;
	}
	if (state == TWI_WORD_INIT)
		twi_lane_end_count(lane, 1);
	else
		count = twi_lane_end_count_as(lane, &lane->cancelled_count, 1);
	if (TWI_UNLIKELY(worker->pending_limit != 0))
		twi_limit_give(worker);
	/*
	 * If the timeout was in a ring, only a stale entry still names the node, so this thread
	 * owns it.
	 */
	if (state == TWI_WORD_INIT)
		twi_pool_give_warm(&thread->stock, node);
	return count;
}

/*
 * Cancels a timeout in a ring, a link queue or the wheel. Must be called inside an RCU section.
 * Repeats the swap if transfer or a reschedule changed the state word, until the timeout is
 * cancelled or has ended. Returns true if this call cancelled it.
 */
static bool pending_cancel(struct victim *victim, struct tw_handle handle,
			   struct twi_thread *thread, uint64_t *word)
{
	struct twi_worker *worker = victim->worker;
	struct twi_lane *lane;

	while (twi_word_same(*word, handle.generation) && twi_word_pending(*word)) {
		/*
		 * If `sweeping` is true, stop's sweep has begun: the sweep frees the cancelled
		 * nodes that it finds, and no thread reads the queue any more. RELAXED: the
		 * finisher (the thread that completes stop) either set the flag before this RCU
		 * section, or sets it and then waits until the section ends (E10).
		 */
		bool sweeping = twi_load_relaxed(&worker->sweeping);

		TWI_TEST_POINT("cancel:wheeled");
		/*
		 * E4: releases our writes to a thread that sees CANCELLED. If the swap fails
		 * because the timeout has ended, acquires the writes of the thread that ended it.
		 * Linearization point of cancel.
		 */
		if (!twi_cas_acq_rel(&victim->node->word, word,
				     twi_word_to(*word, TWI_WORD_CANCELLED)))
			continue;
		lane = twi_lane_of(worker, thread);
		if (TWI_UNLIKELY(twi_word_state(*word) != TWI_WORD_WHEELED)) {
			victim->count = lane_cancelled(worker, lane, thread, handle,
						       twi_word_state(*word), false);
			return true;
		}
		victim->count =
			lane_cancelled(worker, lane, thread, handle, TWI_WORD_WHEELED, false);
		TWI_TEST_POINT("cancel:won");
		/*
		 * If QUEUED is set, the thread that set it by a reschedule pushes the node to the
		 * worker. A second push would link the node twice.
		 */
		if (!sweeping && (*word & TWI_WORD_QUEUED) == 0)
			twi_lane_push_cancelled(worker, lane, victim->node);
		return true;
	}
	return false;
}

/*
 * Returns true if this call cancelled the timeout. Otherwise `*word` is the state word that this
 * call found in the node.
 */
static bool victim_cancel(struct tw_handle handle, struct twi_thread *thread,
			  struct victim *ret_victim, uint64_t *word)
{
	struct twi_node *node = twi_node_of_handle(handle);
	bool won;

	/*
	 * Fetches the node's cache line for writing. Otherwise the reads below would fetch it for
	 * reading only, and the swap would fetch it again.
	 */
	TWI_PREFETCH_WRITE(node);
	/* E10: stop does not let the engine be freed until the RCU section ends. */
	twi_rcu_enter();
	/*
	 * E4: these fields belong to our timeout only if a compare-and-swap below succeeds.
	 * Otherwise they must not be used.
	 */
	*ret_victim = (struct victim){
		.node = node,
		.worker = twi_node_worker(node),
		.kind = twi_node_kind(node),
		.arg = twi_node_arg(node),
	};
	TWI_TEST_POINT("cancel:read");
	/*
	 * E4: if the timeout has ended, acquires what its callback wrote. The state is read before
	 * the swap, because a swap that expects the wrong state would fail.
	 */
	*word = twi_load_acquire(&node->word);
	TWI_TEST_POINT("cancel:seen");
	won = pending_cancel(ret_victim, handle, thread, word);
	/*
	 * The worker must take a cancelled timeout out of the wheel or the link queue. So such a
	 * cancel counts towards a unit (64 pushed timeouts), as a scheduled timeout does.
	 */
	if (TWI_UNLIKELY(ret_victim->count % TWI_UNIT_TIMEOUTS == 1))
		twi_cancelled_units_add(ret_victim->worker, twi_lane_of(ret_victim->worker, thread),
					1);
	twi_rcu_leave();
	return won;
}

static int outcome_of(struct tw_handle handle, uint64_t word)
{
	if (twi_owned_word(word, handle.generation))
		return twi_misuse(NULL, TWI_MISUSE_OWNER_ONLY_HANDLE, -EPERM);
	if (!twi_word_same(word, handle.generation))
		return TW_CANCEL_STALE;
	if (twi_word_running(word))
		return TW_CANCEL_RUNNING;
	return twi_word_state(word) == TWI_WORD_EXPIRED && !twi_word_stopped(word)
		       ? TW_CANCEL_EXPIRED
		       : TW_CANCEL_CANCELLED;
}

/*
 * Does the work that follows when the worker's own thread has cancelled a timeout in its wheel.
 * `sweeping`: the engine is being stopped. Then this function only counts the cancel, and stop's
 * sweep frees the node. `fresh`: cancel_is_short was true.
 */
static TWI_ALWAYS_INLINE TWI_WORKER_UNCHECKED void
local_cancelled(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		uint64_t generation, bool sweeping, bool fresh)
{
	TWI_PROBE4(cancel, worker, node, generation, TWI_PROBE_IN_WHEEL);
	if (fresh) {
		(void)twi_half_count(&worker->direct_cancelled_count, 1);
		twi_fresh_remove(worker, node);
		twi_pool_put_warm(&thread->stock, node);
	} else if (TWI_UNLIKELY(sweeping)) {
		twi_direct_sweep(worker, thread);
	} else {
		twi_direct_remove(worker, thread, node);
	}
}

/* Cancels a timeout in the calling thread's own wheel. Returns true if this call cancelled it. */
static inline TWI_WORKER_UNCHECKED bool
own_cancel(struct tw_handle handle, struct twi_thread *thread, struct victim *ret_victim)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker = thread->wheel_of;
	/*
	 * RELAXED: only this thread writes the state word of an owner-only timeout. For all other
	 * timeouts the swap decides.
	 */
	uint64_t word = twi_load_relaxed(&node->word);
	uint64_t cancelled = twi_word_to(word, TWI_WORD_CANCELLED);

	/* RELAXED: only the thread that owns the wheel sets `sweeping`, and that is this thread. */
	bool sweeping = twi_load_relaxed(&worker->sweeping);

	if (twi_node_worker(node) != worker)
		return false;
	*ret_victim = (struct victim){
		.node = node,
		.kind = twi_node_kind(node),
		.arg = twi_node_arg(node),
	};
	TWI_TEST_POINT("cancel:own");
	if (twi_owned_word(word, handle.generation))
		/*
		 * RELAXED: no other thread changes the state word of an owner-only timeout, or
		 * relies on it.
		 */
		twi_store_relaxed(&node->word, cancelled);
	/*
	 * If the node is also in the cancel queue (QUEUED), the worker will find it there. Only the
	 * general path handles that case.
	 */
	else if (sweeping ||
		 (word & ~TWI_WORD_RESCHEDULED) !=
			 twi_word_to(handle.generation, TWI_WORD_WHEELED) ||
		 /*
		  * E4: releases our writes to a thread that sees CANCELLED. Acquires from a
		  * reschedule, so that the thread that completes stop sees the rescheduler's pin
		  * (thread/pin.h). If the swap fails, the general path looks again. Linearization
		  * point of cancel.
		  */
		 !twi_cas_acq_rel(&node->word, &word, cancelled))
		return false;
	local_cancelled(worker, thread, node, handle.generation, sweeping, false);
	return true;
}

/* Returns true if the chain's callback runs and no cancel has stopped the chain yet. */
static bool chain_runs(struct tw_handle handle, uint64_t word)
{
	return twi_word_same(word, handle.generation) && twi_word_running(word) &&
	       (word & TWI_WORD_CHAIN) == TWI_WORD_PERIODIC;
}

/*
 * Offers the chain's slot of the pending limit to the first timeout that this run schedules. Does
 * so only if the calling thread runs the chain that it has cancelled, because this run is then the
 * chain's last one.
 */
static void own_run_note(const struct twi_node *node, struct twi_run *run)
{
	while (run != NULL && run->node != node)
		run = run->outer;
	if (run != NULL)
		twi_chain_place_offer(TWI_CONTAINER_OF(run, struct twi_chain_run, run));
}

/*
 * Cancels a chain during its run, so that no further run begins. Returns true if this call did so,
 * false if the chain no longer runs or another thread has cancelled it first.
 */
static TWI_COLD bool run_cancel(struct tw_handle handle, const struct twi_thread *thread,
				uint64_t *ret_word)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	bool won = false;

	twi_rcu_enter(); /* E10: until we leave, stop does not let the engine be freed. */
	/*
	 * E4: the worker that is read here belongs to our timeout only if the swap succeeds, as in
	 * victim_cancel.
	 */
	worker = twi_node_worker(node);
	/*
	 * RELAXED: the swap decides. If it fails, victim_cancel reads the state word again, with
	 * acquire.
	 */
	*ret_word = twi_load_relaxed(&node->word);
	TWI_TEST_POINT("cancel:running");
	/*
	 * E4: releases our writes to the thread that ends the run. Linearization point of cancel.
	 */
	while (!won && chain_runs(handle, *ret_word))
		won = twi_cas_release(&node->word, ret_word, *ret_word | TWI_WORD_OVER);
	if (won) {
		TWI_PROBE4(cancel, worker, node, handle.generation, TWI_PROBE_RUNNING);
		struct twi_lane *lane = twi_lane_made_of(worker, thread);

		/*
		 * The returned number is not needed, because this cancel leaves the worker no work.
		 */
		(void)twi_lane_end_count_as(lane, &lane->stopped_count, 1);
	}
	twi_rcu_leave();
	if (won)
		own_run_note(node, thread->run);
	return won;
}

/* Frees the block of a chain that was cancelled while it waited. Returns the user's argument. */
static void *chain_release(struct twi_thread *thread, struct twi_chain *chain)
{
	void *arg = twi_chain_arg(chain);

	twi_pool_give(&thread->stock, chain);
	return arg;
}

static int local_cancel(struct tw_handle handle, struct twi_thread *thread);

/*
 * Cancels a timeout by the general path, if own_cancel cannot cancel it or the thread's wheel_of is
 * NULL. If this function finds that the thread owns the timeout after all, it calls local_cancel.
 * local_cancel does not return to this path, because own_cancel handles every owner-only timeout.
 */
static TWI_NOINLINE int lane_cancel(struct tw_handle handle, struct twi_thread *thread)
{
	struct victim victim;
	uint64_t word = 0;

	while (!victim_cancel(handle, thread, &victim, &word)) {
		if (twi_owned_word(word, handle.generation) && twi_owner_again(handle, thread))
			return local_cancel(handle, thread);
		if (!chain_runs(handle, word))
			return outcome_of(handle, word);
		if (run_cancel(handle, thread, &word))
			return TW_CANCEL_STOPPED;
	}
	if (TWI_UNLIKELY((word & TWI_WORD_PERIODIC) != 0))
		victim.arg = chain_release(thread, victim.arg);
	if (victim.kind->finaliser != NULL) {
		twi_handle_acquire(handle);
		victim.kind->finaliser(victim.arg, TW_END_CANCELLED);
	}
	return TW_CANCEL_DONE;
}

/*
 * Cancels a timeout on a thread whose wheel_of is set: by own_cancel if possible, otherwise by
 * lane_cancel.
 */
static TWI_NOINLINE int local_cancel(struct tw_handle handle, struct twi_thread *thread)
{
	struct victim victim;

	if (!own_cancel(handle, thread, &victim))
		return lane_cancel(handle, thread);
	if (victim.kind->finaliser != NULL) {
		twi_handle_acquire(handle);
		victim.kind->finaliser(victim.arg, TW_END_CANCELLED);
	}
	return TW_CANCEL_DONE;
}

static TWI_NOINLINE int any_cancel(struct tw_handle handle)
{
	struct twi_thread *thread = twi_thread();

	return TWI_UNLIKELY(thread->wheel_of != NULL) ? local_cancel(handle, thread)
						      : lane_cancel(handle, thread);
}

/*
 * Returns whether the timeout is fresh (turn/fresh.h) and its cancel is short: the stock has space
 * for the node, the engine has no limit, and the kind has no finaliser.
 */
static inline TWI_WORKER_ONLY bool cancel_is_short(const struct twi_worker *worker,
						   const struct twi_thread *thread,
						   struct twi_node *node)
{
	return twi_place_is_fresh(node->place) && twi_pool_warm_room(&thread->stock) &&
	       worker->pending_limit == 0 && twi_node_kind(node)->finaliser == NULL;
}

/* Cancels an owner-only timeout in the wheel of the calling thread. */
static TWI_ALWAYS_INLINE TWI_WORKER_UNCHECKED int owned_cancel(struct tw_handle handle)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_thread *thread = &twi_thread_self;
	struct twi_worker *worker = thread->wheel_of;

	if (TWI_UNLIKELY(!cancel_is_short(worker, thread, node)))
		return local_cancel(handle, thread);
	/* RELAXED: as in own_cancel. */
	twi_store_relaxed(&node->word, twi_word_to(handle.generation, TWI_WORD_CANCELLED));
	local_cancelled(worker, thread, node, handle.generation, false, true);
	return TW_CANCEL_DONE;
}

/*
 * Finishes a quick cancel that has more work to do, such as a finaliser. The thread's mark must be
 * set. Clears it.
 */
static TWI_NOINLINE int quick_end(struct tw_handle handle)
{
	struct twi_node *node = twi_node_of_handle(handle);
	const struct tw_kind *kind = twi_node_kind(node);
	struct twi_worker *worker = twi_node_worker(node);
	void *arg = twi_node_arg(node);

	(void)lane_cancelled(worker, twi_lane_of(worker, &twi_thread_self), &twi_thread_self,
			     handle, TWI_WORD_INIT, false);
	twi_presence_leave(twi_thread_self.presence); /* E162 */
	if (kind->finaliser != NULL)
		kind->finaliser(arg, TW_END_CANCELLED);
	return TW_CANCEL_DONE;
}

/*
 * Does the work of pending_cancel by a shorter path, for a thread with a mark (thread/presence.h)
 * and a timeout that is probably still in a ring. The state word of such a timeout has not changed
 * since the timeout was scheduled.
 */
static TWI_ALWAYS_INLINE int quick_cancel(struct tw_handle handle)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_thread *thread = &twi_thread_self;
	struct twi_presence *presence = thread->presence;
	struct twi_worker *worker;
	uint64_t word = handle.generation;

	twi_presence_enter(presence); /* E162: until we leave, stop keeps the engine. */
	TWI_TEST_POINT("cancel:read");
	TWI_TEST_POINT("cancel:seen");
	/*
	 * E4: releases our writes, as in pending_cancel. If the swap fails, the general path looks
	 * again. Linearization point of cancel.
	 */
	if (TWI_UNLIKELY(
		    !twi_cas_release(&node->word, &word, twi_word_to(word, TWI_WORD_CANCELLED)))) {
		twi_presence_leave(presence); /* E162 */
		return any_cancel(handle);
	}
	/* The swap has made this thread the node's owner. */
	worker = twi_node_worker(node);
	if (TWI_UNLIKELY(twi_node_kind(node)->finaliser != NULL || worker->pending_limit != 0 ||
			 !twi_pool_warm_room(&thread->stock)))
		return quick_end(handle);
	(void)lane_cancelled(worker, &worker->near.lane[thread->lane], thread, handle,
			     TWI_WORD_INIT, true);
	twi_presence_leave(presence); /* E162 */
	return TW_CANCEL_DONE;
}

/* Cancels a timeout in a forked child, or under ThreadSanitizer (base/tsan.h). */
static TWI_NOINLINE int forked_cancel(struct tw_handle handle)
{
	int outcome;

	if (twi_handle_inherited_release(handle))
		return -ECHILD;
	outcome = any_cancel(handle);
	/*
	 * Acquires nothing while the callback still runs, because it has not published its writes
	 * yet.
	 */
	if (outcome != TW_CANCEL_RUNNING && outcome != TW_CANCEL_STOPPED)
		twi_handle_acquire(handle);
	return outcome;
}

int tw_cancel(struct tw_handle handle)
{
	if (TWI_UNLIKELY(!twi_handle_sane(handle)))
		return twi_misuse_handle(handle);
	/*
	 * A thread whose wheel_of is set is attached and not in a forked child. So this path needs
	 * no check for either.
	 */
	if (twi_owned_here(handle, &twi_thread_self))
		return owned_cancel(handle);
	if (TWI_UNLIKELY(twi_fork_epoch != 0))
		return forked_cancel(handle);
	/* RELAXED: only selects a path. The swap decides. */
	if (twi_load_relaxed(&twi_node_of_handle(handle)->word) == handle.generation &&
	    TWI_LIKELY(twi_thread_self.presence != NULL))
		return quick_cancel(handle);
	return any_cancel(handle);
}

/*
 * Returns whether the caller would wait for itself, because it runs this timeout's callback or is
 * the worker.
 */
static bool wait_is_for_us(const struct twi_node *node, const struct twi_worker *worker)
{
	const struct twi_thread *thread = twi_thread();

	if (twi_worker_inside(worker))
		return true;
	for (const struct twi_run *run = thread->run; run != NULL; run = run->outer) {
		if (run->node == node)
			return true;
	}
	return false;
}

/* Waits until the state word is no longer `word`, or until the time `until_ns`. */
static int word_wait(struct twi_node *node, uint64_t word, int64_t until_ns)
{
	uint64_t waited = word | TWI_WORD_WAITER;

	TWI_TEST_POINT("cancel_wait:seen");
	/*
	 * RELAXED: the waiter sets its bit in the same state word that the end of the run changes,
	 * so one of the two comes first. If the bit comes first, the thread that ends the run sees
	 * it and wakes the waiter. Otherwise this swap fails.
	 */
	if (word != waited && !twi_cas_relaxed(&node->word, &word, waited))
		return 0;
	TWI_TEST_POINT("cancel_wait:waiting");
	return twi_futex_wait(twi_word_futex(&node->word), (uint32_t)waited, until_ns);
}

int tw_cancel_wait(struct tw_handle handle, int64_t timeout_ns)
{
	struct twi_node *node = twi_node_of_handle(handle);
	int outcome = tw_cancel(handle);
	bool stopped = outcome == TW_CANCEL_STOPPED;
	int64_t until_ns;
	uint64_t word;

	if ((outcome != TW_CANCEL_RUNNING && !stopped) ||
	    wait_is_for_us(node, twi_node_worker(node)))
		return outcome;
	until_ns = twi_until_ns(timeout_ns);
	for (;;) {
		/*
		 * E4: pairs with the end of the run. Without it the caller could free memory that
		 * the callback still writes.
		 */
		word = twi_load_acquire(&node->word);
		outcome = outcome_of(handle, word);
		/*
		 * If an executor has rejected the timeout, it is pending again and can be
		 * cancelled.
		 */
		if (TWI_UNLIKELY(twi_word_same(word, handle.generation) && twi_word_pending(word)))
			outcome = tw_cancel(handle);
		if (outcome != TW_CANCEL_RUNNING) {
			twi_handle_acquire(handle);
			return stopped ? TW_CANCEL_DONE : outcome;
		}
		if (word_wait(node, word, until_ns) == -ETIMEDOUT)
			return -ETIMEDOUT;
	}
}
