/* SPDX-License-Identifier: MIT */
/*
 * tw_cancel and tw_cancel_wait.
 *
 * In a ring (INIT), nothing has to be told to anybody: the ring has the node's address, and no more,
 * so the node is the canceller's at once, and serves its next timeout while the entry still names it.
 * In a link queue (LINKED) nothing has to be told either, but the queue holds the node: transfer
 * frees it. In the wheel, the worker is told by a push, unless a reschedule pushes the node anyway.
 * The engine is reached only inside a section in which the timeout was seen alive, which keeps the
 * engine from being freed (E10). The worker's own thread goes a shorter way (turn/direct.h).
 *
 * A periodic timeout that waits is cancelled like all others, and its canceller gives back what it has
 * besides its node. One that runs is told so by a bit of its word, and all else is left to who runs it
 * (expiry/periodic.c); if it waits again by then, it is cancelled there.
 *
 * Progress. Lock-free: a swap fails where transfer, an end, or a reschedule has succeeded.
 */
#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "engine/misuse.h"
#include "expiry/limit.h"
#include "expiry/periodic.h"
#include "expiry/run.h"
#include "ingress/push.h"
#include "thread/futex.h"
#include "thread/rcu.h"
#include "timeout/heritage.h"
#include "turn/direct.h"
#include "turn/fresh.h"
#include "worker/role.h"

#include <errno.h>
#include <tickwheel/timeout.h>

/* What is needed of a timeout after its node is no longer ours to read. */
struct victim {
	struct twi_node *node;
	struct twi_worker *worker;
	const struct tw_kind *kind;
	void *arg;
	uint64_t count; /* by the lane of the thread that cancelled it; 0: nobody waits for it */
};

static inline void victim_account(struct victim *victim, const struct twi_thread *thread)
{
	struct twi_worker *worker = victim->worker;
	struct twi_lane *lane = &worker->lane[thread->lane];

	TWI_TEST_POINT("cancel:swapped");
	victim->count = twi_lane_end_count_as(thread, lane, &lane->cancelled_count, 1);
	if (TWI_UNLIKELY(worker->pending_limit != 0))
		twi_limit_give(worker);
}

/* In a ring, whose entry says nothing any more: the node is ours. */
static inline void victim_free(struct victim *victim, struct twi_thread *thread)
{
	struct twi_worker *worker = victim->worker;

	TWI_TEST_POINT("cancel:swapped");
	twi_lane_end_count(thread, &worker->lane[thread->lane], 1);
	if (TWI_UNLIKELY(worker->pending_limit != 0))
		twi_limit_give(worker);
	twi_pool_give_warm(&thread->stock, victim->node);
}

/* In the wheel. Inside a section; true when this call cancelled it. */
static bool wheeled_cancel(struct victim *victim, const struct twi_thread *thread, uint64_t *word)
{
	struct twi_worker *worker = victim->worker;
	/*
	 * Once raised, the sweep frees what it finds cancelled, and nobody reads the queue. RELAXED:
	 * who raises it waits for this section, or raised it before (E10).
	 */
	bool sweeping = twi_load_relaxed(&worker->sweeping);

	TWI_TEST_POINT("cancel:wheeled");
	/* E4: to who sees CANCELLED; from an end, if it fails. LIN of cancel. */
	if (!twi_cas_acq_rel(&victim->node->word, word, twi_word_to(*word, TWI_WORD_CANCELLED)))
		return false;
	TWI_PROBE4(cancel, worker, victim->node, twi_word_birth(*word), TWI_PROBE_IN_WHEEL);
	victim_account(victim, thread);
	TWI_TEST_POINT("cancel:won");
	/* Queued, it comes to the worker by a reschedule's push. */
	if (sweeping || (*word & TWI_WORD_QUEUED) != 0)
		return true;
	twi_lane_push_cancelled(worker, thread, victim->node);
	return true;
}

/* In a ring or a link queue. Inside a section; true when this call cancelled it. */
static inline bool ingress_cancel(struct victim *victim, struct twi_thread *thread, uint64_t *word)
{
	/* E4: to who sees CANCELLED; from an end, if it fails. LIN of cancel. */
	if (!twi_cas_acq_rel(&victim->node->word, word, twi_word_to(*word, TWI_WORD_CANCELLED)))
		return false;
	TWI_PROBE4(cancel, victim->worker, victim->node, twi_word_birth(*word),
		   TWI_PROBE_ON_ITS_WAY);
	if (TWI_LIKELY(twi_word_state(*word) == TWI_WORD_INIT))
		victim_free(victim, thread);
	else
		victim_account(victim, thread);
	return true;
}

/* Until it is cancelled, or has ended: a swap fails where transfer or a reschedule came between. */
static bool pending_cancel(struct victim *victim, struct tw_handle handle,
			   struct twi_thread *thread, uint64_t *word)
{
	while (twi_word_same(*word, handle.birth) && twi_word_pending(*word)) {
		bool wheeled = twi_word_state(*word) == TWI_WORD_WHEELED;

		if (wheeled ? wheeled_cancel(victim, thread, word)
			    : ingress_cancel(victim, thread, word))
			return true;
	}
	return false;
}

/* True when this call cancelled it; else `*word` is what the node had instead. */
static bool victim_cancel(struct tw_handle handle, struct twi_thread *thread,
			  struct victim *ret_victim, uint64_t *word)
{
	struct twi_node *node = twi_node_of_handle(handle);
	bool won;

	/* For writing at once: the reads below would fetch the line, and the swap fetch it again.
	 */
	TWI_PREFETCH_WRITE(node);
	/* E10: until it ends, stop keeps the engine. */
	twi_rcu_enter();
	/* E4: of our timeout if a compare-and-swap below succeeds, else worthless. */
	*ret_victim = (struct victim){
		.node = node,
		.worker = twi_node_worker(node),
		.kind = twi_node_kind(node),
		.arg = twi_node_arg(node),
	};
	TWI_TEST_POINT("cancel:read");
	/* E4. In the wheel or not: guessed wrong, the swap below would be wasted. */
	*word = twi_load_acquire(&node->word);
	TWI_TEST_POINT("cancel:seen");
	won = pending_cancel(ret_victim, handle, thread, word);
	/* What is cancelled waits for the worker, like what is scheduled; unless it was in a ring. */
	if (TWI_UNLIKELY(ret_victim->count % TWI_UNSEEN_UNIT == 1))
		twi_unseen_note(ret_victim->worker, 1);
	twi_rcu_leave();
	return won;
}

static int outcome_of(struct tw_handle handle, uint64_t word)
{
	if (twi_owned_word(word, handle.birth))
		return twi_misuse(NULL, TWI_MISUSE_OWNER_ONLY_HANDLE, -EPERM);
	if (!twi_word_same(word, handle.birth))
		return TW_CANCEL_STALE;
	if (twi_word_running(word))
		return TW_CANCEL_RUNNING;
	return twi_word_state(word) == TWI_WORD_EXPIRED && !twi_word_stopped(word)
		       ? TW_CANCEL_EXPIRED
		       : TW_CANCEL_CANCELLED;
}

/* In the wheel of `worker`, which is the calling thread's own. True when this call cancelled it. */
static inline TWI_WORKER_UNCHECKED bool
own_cancel(struct tw_handle handle, struct twi_thread *thread, struct victim *ret_victim)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker = thread->wheel_of;
	/* RELAXED: of an owner's timeout this thread has written it; else the swap decides. */
	uint64_t word = twi_load_relaxed(&node->word);
	uint64_t cancelled = twi_word_to(word, TWI_WORD_CANCELLED);

	/* RELAXED: only this thread raises it, since it would finish the engine. */
	bool sweeping = twi_load_relaxed(&worker->sweeping);

	if (twi_node_worker(node) != worker)
		return false;
	*ret_victim = (struct victim){
		.node = node,
		.kind = twi_node_kind(node),
		.arg = twi_node_arg(node),
	};
	TWI_TEST_POINT("cancel:own");
	if (twi_owned_word(word, handle.birth))
		/* RELAXED: nobody else changes it, and nobody may learn from it. */
		twi_store_relaxed(&node->word, cancelled);
	/* Where it is queued too, the worker gets it by the queue: the long way. */
	else if (sweeping ||
		 (word & ~TWI_WORD_RESCHEDULED) != twi_word_to(handle.birth, TWI_WORD_WHEELED) ||
		 /*
		  * E4: to who sees it. Acquired from a reschedule, so that the finisher sees its pin
		  * (thread/pin.h). Failed: the long way looks anew. LIN of cancel.
		  */
		 !twi_cas_acq_rel(&node->word, &word, cancelled))
		return false;
	TWI_PROBE4(cancel, worker, node, handle.birth, TWI_PROBE_IN_WHEEL);
	if (TWI_UNLIKELY(sweeping))
		twi_direct_sweep(worker, thread);
	else
		twi_direct_remove(worker, thread, node);
	return true;
}

/* A run of a chain is under way that was not cancelled before. */
static bool chain_runs(struct tw_handle handle, uint64_t word)
{
	return twi_word_same(word, handle.birth) && twi_word_running(word) &&
	       (word & TWI_WORD_CHAIN) == TWI_WORD_PERIODIC;
}

/* Where that is a run of ours, it is the last one. */
static void own_run_note(const struct twi_node *node, struct twi_run *run)
{
	while (run != NULL && run->node != node)
		run = run->outer;
	if (run != NULL)
		twi_chain_place_offer(TWI_CONTAINER_OF(run, struct twi_chain_run, run));
}

/* True: no further run begins. False: it does not run any more, or another was first. */
static TWI_COLD bool run_cancel(struct tw_handle handle, const struct twi_thread *thread,
				uint64_t *ret_word)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	bool won = false;

	twi_rcu_enter(); /* E10 */
	/* E4: of our timeout if the swap succeeds, as in victim_cancel. */
	worker = twi_node_worker(node);
	*ret_word = twi_load_acquire(&node->word); /* E4 */
	TWI_TEST_POINT("cancel:running");
	/* E4: to who runs it; from an end, if it fails. LIN of cancel. */
	while (!won && chain_runs(handle, *ret_word))
		won = twi_cas_acq_rel(&node->word, ret_word, *ret_word | TWI_WORD_OVER);
	if (won) {
		TWI_PROBE4(cancel, worker, node, handle.birth, TWI_PROBE_RUNNING);
		struct twi_lane *lane = &worker->lane[thread->lane];

		/* Nothing waits for the worker. */
		(void)twi_lane_end_count_as(thread, lane, &lane->stopped_count, 1);
	}
	twi_rcu_leave();
	if (won)
		own_run_note(node, thread->run);
	return won;
}

/* The user's argument of a chain that was cancelled while it waited; what it had is free again. */
static void *chain_release(struct twi_thread *thread, struct twi_chain *chain)
{
	void *arg = twi_chain_arg(chain);

	twi_pool_give(&thread->stock, chain);
	return arg;
}

static bool any_cancel(struct tw_handle handle, struct twi_thread *thread,
		       struct victim *ret_victim, uint64_t *word)
{
	if (thread->wheel_of != NULL && own_cancel(handle, thread, ret_victim))
		return true;
	if (victim_cancel(handle, thread, ret_victim, word))
		return true;
	return twi_owned_word(*word, handle.birth) && twi_owner_again(handle, thread) &&
	       own_cancel(handle, thread, ret_victim);
}

/* An owner-only timeout in the wheel of the calling thread's worker, where nothing can go wrong. */
static TWI_APART TWI_WORKER_UNCHECKED int
owned_cancel(struct twi_node *node, struct twi_thread *thread, uint64_t cancelled)
{
	struct twi_worker *worker = thread->wheel_of;
	const struct tw_kind *kind = twi_node_kind(node);
	void *arg = twi_node_arg(node);

	/* RELAXED: nobody else changes it, and nobody may learn from it. */
	twi_store_relaxed(&node->word, cancelled);
	TWI_PROBE4(cancel, worker, node, twi_word_birth(cancelled), TWI_PROBE_IN_WHEEL);
	twi_direct_remove(worker, thread, node);
	if (TWI_UNLIKELY(kind->finaliser != NULL))
		kind->finaliser(arg, TW_END_CANCELLED);
	return TW_CANCEL_DONE;
}

/* It has not reached the wheel, and there is nobody to be told. */
static inline TWI_WORKER_ONLY bool cancel_is_short(const struct twi_worker *worker,
						   const struct twi_thread *thread,
						   struct twi_node *node)
{
	return twi_place_is_fresh(node->place) && twi_pool_warm_room(&thread->stock) &&
	       worker->pending_limit == 0 && twi_node_kind(node)->finaliser == NULL;
}

/* As owned_cancel, which has a call for everything. */
static TWI_TOGETHER TWI_WORKER_UNCHECKED int fresh_cancel(struct twi_node *node, uint64_t cancelled)
{
	struct twi_thread *thread = &twi_thread_self;
	struct twi_worker *worker = thread->wheel_of;

	if (TWI_UNLIKELY(!cancel_is_short(worker, thread, node)))
		return owned_cancel(node, thread, cancelled);
	/* RELAXED: as in owned_cancel. */
	twi_store_relaxed(&node->word, cancelled);
	TWI_PROBE4(cancel, worker, node, twi_word_birth(cancelled), TWI_PROBE_IN_WHEEL);
	(void)twi_half_count(&worker->direct_cancelled_count, 1);
	twi_fresh_remove(worker, node);
	twi_pool_put_warm(&thread->stock, node);
	return TW_CANCEL_DONE;
}

static TWI_APART int cancel(struct tw_handle handle)
{
	struct twi_thread *thread = twi_thread();
	struct victim victim;
	uint64_t word = 0;

	while (!any_cancel(handle, thread, &victim, &word)) {
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

/* The end of a quick cancel that leaves something to be done. Inside a section. */
static TWI_APART int quick_free(struct twi_node *node)
{
	struct victim victim = {
		.node = node,
		.worker = twi_node_worker(node),
		.kind = twi_node_kind(node),
		.arg = twi_node_arg(node),
	};

	victim_free(&victim, &twi_thread_self);
	twi_rcu_leave();
	if (victim.kind->finaliser != NULL)
		victim.kind->finaliser(victim.arg, TW_END_CANCELLED);
	return TW_CANCEL_DONE;
}

/* By a thread that is attached, to a timeout that seems to be in a ring, unchanged since its birth. */
static TWI_TOGETHER int quick_cancel(struct tw_handle handle)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_thread *thread = &twi_thread_self;
	struct twi_worker *worker;
	uint64_t word = handle.birth;

	twi_rcu_enter(); /* E10 */
	TWI_TEST_POINT("cancel:read");
	TWI_TEST_POINT("cancel:seen");
	/* E4: as in ingress_cancel; if it fails, the long way looks again. LIN of cancel. */
	if (TWI_UNLIKELY(
		    !twi_cas_release(&node->word, &word, twi_word_to(word, TWI_WORD_CANCELLED)))) {
		twi_rcu_leave();
		return cancel(handle);
	}
	TWI_TEST_POINT("cancel:swapped");
	/* The node is ours. */
	worker = twi_node_worker(node);
	TWI_PROBE4(cancel, worker, node, handle.birth, TWI_PROBE_ON_ITS_WAY);
	if (TWI_UNLIKELY(twi_node_kind(node)->finaliser != NULL || worker->pending_limit != 0 ||
			 thread->lane == TWI_LANE_SHARED || !twi_pool_warm_room(&thread->stock)))
		return quick_free(node);
	(void)twi_half_count(&worker->lane[thread->lane].ended_count, 1);
	twi_pool_put_warm(&thread->stock, node);
	twi_rcu_leave();
	return TW_CANCEL_DONE;
}

/* In a process that was forked, or with ThreadSanitizer (base/tsan.h). */
static TWI_APART int forked_cancel(struct tw_handle handle)
{
	int outcome;

	if (twi_handle_inherited_release(handle))
		return -ECHILD;
	outcome = cancel(handle);
	/* What a callback that still runs has done is not published. */
	if (outcome != TW_CANCEL_RUNNING && outcome != TW_CANCEL_STOPPED)
		twi_handle_acquire(handle);
	return outcome;
}

int tw_cancel(struct tw_handle handle)
{
	if (TWI_UNLIKELY(!twi_handle_sane(handle)))
		return twi_misuse_handle(handle);
	/* A thread that knows a wheel is attached, and not a forked child's. */
	if (twi_owned_here(handle, &twi_thread_self))
		return fresh_cancel(twi_node_of_handle(handle),
				    twi_word_to(handle.birth, TWI_WORD_CANCELLED));
	if (TWI_UNLIKELY(twi_fork_epoch != 0))
		return forked_cancel(handle);
	/* RELAXED: the swap decides. */
	if (twi_load_relaxed(&twi_node_of_handle(handle)->word) == handle.birth &&
	    TWI_LIKELY(twi_thread_self.attached && twi_rcu_ready()))
		return quick_cancel(handle);
	return cancel(handle);
}

/* Waiting would be for ourselves: our own timeout, or one that waits for the worker we are. */
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

/* Until the word is no longer `word`, or the time has come. */
static int word_wait(struct twi_node *node, uint64_t word, int64_t until_ns)
{
	uint64_t waited = word | TWI_WORD_WAITER;

	TWI_TEST_POINT("cancel_wait:seen");
	/* RELAXED: one word; the end of the run takes it as it is then, and wakes the waiter. */
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
		/* E4, pairs with the end of the run. */
		word = twi_load_acquire(&node->word);
		outcome = outcome_of(handle, word);
		/* Refused by an executor, it is pending again. */
		if (TWI_UNLIKELY(twi_word_same(word, handle.birth) && twi_word_pending(word)))
			outcome = tw_cancel(handle);
		if (outcome != TW_CANCEL_RUNNING) {
			twi_handle_acquire(handle);
			return stopped ? TW_CANCEL_DONE : outcome;
		}
		if (word_wait(node, word, until_ns) == -ETIMEDOUT)
			return -ETIMEDOUT;
	}
}
