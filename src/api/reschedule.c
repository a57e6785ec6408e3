/* SPDX-License-Identifier: MIT */
/*
 * tw_reschedule and tw_reschedule_at.
 *
 * Protocol. State word and deadline change in one swap of 128 bits, which is the linearization
 * point. The swap fails if the timeout has ended, if the node serves another timeout, or if the
 * deadline has changed. So a swap that succeeds replaces exactly the deadline that was read. In the
 * same way, the worker's expiry fails if the deadline was rescheduled after the worker read it.
 *
 * If the deadline becomes later, no thread is notified: the wheel reaches the node at the old time,
 * and files it again. If the deadline becomes earlier while the timeout is in a ring or link queue,
 * no thread is notified either, because transfer reads the deadline only after it has changed the
 * state word. If the deadline becomes earlier while the timeout is in the wheel, the worker must
 * receive the node. The swap sets the queued bit, and the thread that set it pushes the node to its
 * ring or cancel queue. While the bit is set, no other thread pushes the node. The worker clears
 * the bit before it reads the deadline.
 *
 * Wake-up (E8). As in schedule, a thread first changes the deadline and pushes the node, and then
 * checks whether it must wake a sleeping worker. Suppose that thread A sets the queued bit. If
 * thread B then finds the bit set, B pushes nothing, and may make its check for a sleeping worker
 * before A has pushed. Therefore A reads the deadline once more after its push, by a
 * read-modify-write. Either this read returns B's deadline, and A wakes the worker for it. Or B's
 * swap follows A's read, and B sees the wake-up time that the sleeping worker has published. In a
 * busy lane a push is a plain store, and the sleeper's barrier provides the missing order
 * (turn/sleep.c).
 *
 * The worker's own thread, in a callback or as the owner of a loop, moves the node itself. It makes
 * the same swap without the queued bit. Then it moves the node to another slot, or gives it a new
 * number among equal deadlines (turn/direct.h). The result is the same as after a push and its
 * reclaim. No wake-up is needed, because this thread is the worker. In loop mode this thread also
 * sets the loop's timer descriptor. If the queued bit is already set, another thread is about to
 * push the node, and the reschedule takes the general path.
 *
 * Between the owner's swap and its move, other threads can change only state word and deadline.
 * They do not touch the wheel, and do not free the node: only the worker frees a timeout that ends
 * in the wheel, and this thread, which is the worker, does so later. If another thread cancels, it
 * pushes the node, and reclaim finds the node in its new slot. If another thread sets a later
 * deadline, the owner files the node by that deadline or by its own. An entry that is filed too
 * early is harmless. If another thread sets a still earlier deadline, it sets the queued bit, and
 * reclaim files the node once more. So while the bit is clear and the worker is not between swap
 * and move, no entry is in a slot that is later than its deadline.
 *
 * The counter. The count of reschedules is a field of the engine. After a swap the timeout may end
 * at once, and the engine may be stopped and freed before the rescheduler has counted. Therefore
 * tw_reschedule_at pins the engine, if its thread has a pin, before a swap that makes the deadline
 * later. It clears the pin after it has counted (thread/pin.h, E100). Every other reschedule counts
 * inside an RCU section (E10), unless the engine's owner makes it.
 *
 * An owner-only timeout needs no swap, because no other thread changes it.
 *
 * Progress. Lock-free: a swap fails only if another thread has changed the same timeout first.
 */
#include "base/atomic.h"
#include "base/tick.h"
#include "engine/misuse.h"
#include "ingress/push.h"
#include "thread/pin.h"
#include "thread/rcu.h"
#include "timeout/recovery.h"
#include "turn/direct.h"
#include "worker/at_once.h"
#include "worker/role.h"

#include <errno.h>
#include <tickwheel/timeout.h>

/* Results that users never see. */
enum {
	/* The new deadline is earlier than the present one, so hasten must make the change. */
	EARLIER = INT32_MAX,
	/*
	 * The short path has done nothing. The general path must reschedule, or find the reason why
	 * it cannot.
	 */
	UNDONE = INT32_MAX - 1,
};

static int outcome_of(struct tw_handle handle, uint64_t word)
{
	if (!twi_word_same(word, handle.generation))
		return -ESTALE;
	if (twi_owned_word(word, handle.generation))
		return -EPERM;
	if (twi_word_running(word))
		return TW_RESCHEDULE_RUNNING;
	return twi_word_state(word) == TWI_WORD_EXPIRED && !twi_word_stopped(word)
		       ? TW_RESCHEDULE_EXPIRED
		       : TW_RESCHEDULE_CANCELLED;
}

static inline bool handle_pending(struct tw_handle handle, uint64_t word)
{
	return twi_word_same(word, handle.generation) && twi_word_pending(word);
}

static inline struct twi_pair pair_of(uint64_t word, int64_t deadline_ns)
{
	return (struct twi_pair){.half = {word, (uint64_t)deadline_ns}};
}

static inline bool pair_swap(struct twi_node *node, struct twi_pair seen, struct twi_pair next)
{
	TWI_TEST_POINT("reschedule:seen");
	/*
	 * E4: after a thread has read this deadline, it reads no state word of an earlier
	 * generation. The callback sees the writes that the caller made before the call. E8:
	 * acquires from a thread that reads the deadline again after its push (see above).
	 * Linearization point of reschedule.
	 */
	return twi_cas_pair_acq_rel(&node->word, seen, next);
}

/*
 * Counts a reschedule. Must be called inside the RCU section in which the timeout was pending, or
 * by the owner of its engine. Otherwise the engine may be freed already. RELAXED: as in
 * worker/lane.h. A thread that is not attached has no lane of its own, so it counts in the shared
 * lane.
 */
static inline int done_count(struct twi_worker *worker)
{
	const struct twi_thread *thread = &twi_thread_self;
	struct twi_lane *lane = &worker->near.lane[TWI_LANE_SHARED];

	if (TWI_LIKELY(thread->attached))
		lane = twi_lane_made_of(worker, thread);
	twi_lane_count(lane, &lane->rescheduled_count);
	return TW_RESCHEDULE_DONE;
}

/* Sets a deadline that is not before the present one. Must be called inside an RCU section. */
static inline int postpone(struct tw_handle handle, int64_t deadline_ns)
{
	struct twi_node *node = twi_node_of_handle(handle);
	/*
	 * E4: this worker belongs to our timeout only if the state word that is read below has the
	 * handle's generation. Otherwise it must not be used.
	 */
	struct twi_worker *worker = twi_node_worker(node);

	for (;;) {
		/* E4: if the timeout has ended, acquires the writes of the thread that ended it. */
		uint64_t word = twi_load_acquire(&node->word);
		int64_t seen_ns;

		if (TWI_UNLIKELY(!handle_pending(handle, word)))
			return outcome_of(handle, word);
		/*
		 * RELAXED: if deadline and state word were not read at the same moment, the swap
		 * fails.
		 */
		seen_ns = twi_load_relaxed(&node->deadline_ns);
		if (TWI_UNLIKELY(deadline_ns < seen_ns))
			return EARLIER;
		if (TWI_LIKELY(pair_swap(node, pair_of(word, seen_ns),
					 pair_of(word | TWI_WORD_RESCHEDULED, deadline_ns))))
			return done_count(worker);
	}
}

/*
 * Sets this deadline, earlier or later than the present one. Must be called inside an RCU section.
 */
static int node_refile(struct tw_handle handle, const struct twi_thread *thread,
		       int64_t deadline_ns)
{
	struct twi_node *node = twi_node_of_handle(handle);
	/* E4: as in postpone. */
	struct twi_worker *worker = twi_node_worker(node);
	uint64_t word, next;
	int64_t seen_ns;

	do {
		/* E4: as in postpone. */
		word = twi_load_acquire(&node->word);
		if (!handle_pending(handle, word))
			return outcome_of(handle, word);
		/* RELAXED: as in postpone. */
		seen_ns = twi_load_relaxed(&node->deadline_ns);
		next = word | TWI_WORD_RESCHEDULED;
		/*
		 * If `sweeping` is set, stop's sweep ends the timeout, and no thread reads the
		 * queue. RELAXED: E10, as in cancel.
		 */
		if (deadline_ns < seen_ns && twi_word_state(word) == TWI_WORD_WHEELED &&
		    !twi_load_relaxed(&worker->sweeping))
			next |= TWI_WORD_QUEUED;
	} while (!pair_swap(node, pair_of(word, seen_ns), pair_of(next, deadline_ns)));
	if (((word ^ next) & TWI_WORD_QUEUED) != 0)
		deadline_ns = twi_lane_push_queued(worker, twi_lane_of(worker, thread), node);
	/*
	 * E8: must come after the swap, so that either the worker sees the new deadline before it
	 * sleeps, or we wake it.
	 */
	if (deadline_ns < twi_load_seq_cst(&worker->wake_before_ns))
		twi_park_wake(&worker->park);
	return done_count(worker);
}

/*
 * Sets a deadline in the wheel of the calling thread's own worker. Returns false if the timeout is
 * not in that wheel, or must take another path.
 */
static TWI_WORKER_UNCHECKED bool own_change(struct tw_handle handle,
					    const struct twi_thread *thread, int64_t deadline_ns)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker = thread->wheel_of;
	uint64_t word;
	int64_t seen_ns;

	/* RELAXED: only the thread that owns the wheel sets `sweeping`, and that is this thread. */
	if (worker == NULL || twi_node_worker(node) != worker ||
	    twi_load_relaxed(&worker->sweeping))
		return false;
	do {
		/*
		 * RELAXED: the swap decides. It fails if state word and deadline were not read at
		 * the same moment.
		 */
		word = twi_load_relaxed(&node->word);
		/* RELAXED: as above. */
		seen_ns = twi_load_relaxed(&node->deadline_ns);
		if ((word & ~(TWI_WORD_RESCHEDULED | TWI_WORD_PERIODIC)) !=
		    twi_word_to(handle.generation, TWI_WORD_WHEELED))
			return false;
	} while (!pair_swap(node, pair_of(word, seen_ns),
			    pair_of(word | TWI_WORD_RESCHEDULED, deadline_ns)));
	TWI_TEST_POINT("reschedule:own");
	if (deadline_ns < seen_ns)
		twi_direct_refile(worker, node, deadline_ns);
	else
		twi_direct_postponed(worker, node, deadline_ns);
	(void)done_count(worker);
	return true;
}

static TWI_COLD int hasten(struct tw_handle handle, int64_t deadline_ns)
{
	const struct twi_thread *thread = twi_thread();
	int outcome;

	if (own_change(handle, thread, deadline_ns))
		return TW_RESCHEDULE_DONE;
	/*
	 * E10: until the RCU section ends, stop waits for our push and does not let the engine be
	 * freed.
	 */
	twi_rcu_enter();
	outcome = node_refile(handle, thread, deadline_ns);
	twi_rcu_leave();
	return outcome;
}

static inline int arguments_check(struct tw_handle handle, int64_t time_ns)
{
	if (TWI_UNLIKELY(!twi_handle_sane(handle)))
		return twi_misuse_handle(handle);
	if (TWI_UNLIKELY(time_ns == INT64_MIN))
		return -ERANGE;
	return twi_handle_of_parent_release(handle) ? -ECHILD : 0;
}

/*
 * Calls postpone with the deadline `delay_ns` from now, and stores this deadline in
 * *ret_deadline_ns. Must be called inside an RCU section. If the timeout is pending there, its
 * engine exists until the section ends, so the engine's clock can be read.
 */
static inline int postpone_by(struct tw_handle handle, int64_t delay_ns, int64_t *ret_deadline_ns)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker = twi_node_worker(node);
	/* E4: must come after the load of the worker, as in postpone. */
	uint64_t word = twi_load_acquire(&node->word);

	if (TWI_UNLIKELY(!handle_pending(handle, word) && !twi_owned_word(word, handle.generation)))
		return outcome_of(handle, word);
	*ret_deadline_ns = twi_deadline_ns(worker, delay_ns);
	return postpone(handle, *ret_deadline_ns);
}

/* Reschedules an owner-only timeout in the calling thread's wheel (wheel_of). */
static TWI_NOINLINE TWI_WORKER_UNCHECKED int owned_reschedule(struct tw_handle handle,
							      int64_t deadline_ns)
{
	struct twi_worker *worker = twi_thread_self.wheel_of;
	struct twi_node *node = twi_node_of_handle(handle);

	twi_direct_move(worker, node, deadline_ns);
	return done_count(worker);
}

/*
 * Reschedules an owner-only timeout while stop hands back timeouts. The node is not moved: stop's
 * sweep takes it from its present place, and computes the time left from the new deadline.
 */
static int swept_reschedule(struct tw_handle handle, int64_t deadline_ns)
{
	struct twi_node *node = twi_node_of_handle(handle);
	/* RELAXED: only the owner changes an owner-only timeout, so the swap succeeds. */
	uint64_t word = twi_load_relaxed(&node->word);
	/* RELAXED: as above. */
	int64_t seen_ns = twi_load_relaxed(&node->deadline_ns);

	(void)pair_swap(node, pair_of(word, seen_ns),
			pair_of(word | TWI_WORD_RESCHEDULED, deadline_ns));
	return done_count(twi_node_worker(node));
}

/*
 * Continues a reschedule in which the short path has changed nothing. Either the deadline is
 * earlier, or the timeout belongs to another engine that the caller owns (wheel_of names only one),
 * or the reschedule has failed.
 */
static TWI_COLD int other_way(struct tw_handle handle, int64_t deadline_ns, int outcome)
{
	if (outcome == EARLIER)
		return hasten(handle, deadline_ns);
	if (outcome != -EPERM)
		return outcome;
	if (!twi_owner_again(handle, twi_thread()))
		return twi_misuse(NULL, TWI_MISUSE_OWNER_ONLY_HANDLE, outcome);
	return twi_owned_here(handle, &twi_thread_self) ? owned_reschedule(handle, deadline_ns)
							: swept_reschedule(handle, deadline_ns);
}

/* Does the same as own_change, with a delay instead of a deadline. */
static TWI_WORKER_UNCHECKED bool own_reschedule(struct tw_handle handle, int64_t delay_ns)
{
	const struct twi_worker *worker = twi_thread_self.wheel_of;

	return own_change(handle, &twi_thread_self, twi_deadline_ns(worker, delay_ns));
}

int tw_reschedule(struct tw_handle handle, int64_t delay_ns)
{
	int outcome = arguments_check(handle, delay_ns);
	int64_t deadline_ns = 0;

	if (TWI_UNLIKELY(outcome != 0))
		return outcome;
	/* A thread whose wheel_of is set is attached, so this path does not attach it. */
	if (twi_owned_here(handle, &twi_thread_self)) {
		const struct twi_worker *worker = twi_thread_self.wheel_of;

		return owned_reschedule(handle, twi_deadline_ns(worker, delay_ns));
	}
	if (twi_thread_self.wheel_of != NULL && own_reschedule(handle, delay_ns))
		return TW_RESCHEDULE_DONE;
	twi_rcu_enter(); /* E10: until we leave, stop does not let the engine be freed. */
	outcome = postpone_by(handle, delay_ns, &deadline_ns);
	twi_rcu_leave();
	if (TWI_LIKELY(outcome == TW_RESCHEDULE_DONE))
		return outcome;
	return other_way(handle, deadline_ns, outcome);
}

/*
 * Sets a later deadline by the short path of postpone. The thread must have a pin, which replaces
 * the RCU section.
 */
static TWI_ALWAYS_INLINE int quick_postpone(struct tw_handle handle, int64_t deadline_ns)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_pin *pin = twi_thread_self.pin;
	/* E4: as in postpone. */
	struct twi_worker *worker = twi_node_worker(node);
	/*
	 * RELAXED: the swap decides. If this path makes no swap, the general path reads the state
	 * word again.
	 */
	uint64_t word = twi_load_relaxed(&node->word);
	/* RELAXED: as in postpone. */
	int64_t seen_ns = twi_load_relaxed(&node->deadline_ns);

	if (TWI_UNLIKELY(!handle_pending(handle, word)))
		return UNDONE;
	if (TWI_UNLIKELY(deadline_ns < seen_ns))
		return EARLIER;
	twi_pin_set(pin, worker);
	if (TWI_UNLIKELY(!pair_swap(node, pair_of(word, seen_ns),
				    pair_of(word | TWI_WORD_RESCHEDULED, deadline_ns)))) {
		twi_pin_clear(pin);
		return UNDONE;
	}
	TWI_TEST_POINT("reschedule:swapped");
	/* RELAXED: as in worker/lane.h. */
	twi_count_add(&worker->near.lane[twi_thread_self.lane].rescheduled_count, 1);
	twi_pin_clear(pin);
	return TW_RESCHEDULE_DONE;
}

/* Reschedules by the general path. It serves every case that the short path does not. */
static TWI_NOINLINE int any_reschedule_at(struct tw_handle handle, int64_t deadline_ns)
{
	int outcome = arguments_check(handle, deadline_ns);

	if (TWI_UNLIKELY(outcome != 0))
		return outcome;
	if (deadline_ns < 0)
		deadline_ns = TWI_LONG_PAST_NS;
	if (twi_owned_here(handle, &twi_thread_self))
		return owned_reschedule(handle, deadline_ns);
	if (own_change(handle, &twi_thread_self, deadline_ns))
		return TW_RESCHEDULE_DONE;
	twi_rcu_enter(); /* E10: until we leave, stop does not let the engine be freed. */
	outcome = postpone(handle, deadline_ns);
	twi_rcu_leave();
	if (TWI_LIKELY(outcome == TW_RESCHEDULE_DONE))
		return outcome;
	return other_way(handle, deadline_ns, outcome);
}

/* Reschedules on a thread whose wheel_of is NULL, or whose wheel does not hold this timeout. */
static TWI_ALWAYS_INLINE int quick_reschedule_at(struct tw_handle handle, int64_t deadline_ns)
{
	int outcome = quick_postpone(handle, deadline_ns);

	if (TWI_LIKELY(outcome == TW_RESCHEDULE_DONE))
		return outcome;
	return outcome == EARLIER ? hasten(handle, deadline_ns)
				  : any_reschedule_at(handle, deadline_ns);
}

/* Reschedules on a thread whose wheel_of is set. */
static TWI_NOINLINE int worker_reschedule_at(struct tw_handle handle, int64_t deadline_ns)
{
	if (twi_owned_here(handle, &twi_thread_self))
		return owned_reschedule(handle, deadline_ns);
	if (own_change(handle, &twi_thread_self, deadline_ns))
		return TW_RESCHEDULE_DONE;
	return quick_reschedule_at(handle, deadline_ns);
}

int tw_reschedule_at(struct tw_handle handle, int64_t deadline_ns)
{
	if (TWI_UNLIKELY(!twi_handle_sane(handle) || deadline_ns < 0 || twi_fork_epoch != 0 ||
			 twi_thread_self.pin == NULL))
		return any_reschedule_at(handle, deadline_ns);
	if (TWI_UNLIKELY(twi_thread_self.wheel_of != NULL))
		return worker_reschedule_at(handle, deadline_ns);
	return quick_reschedule_at(handle, deadline_ns);
}
