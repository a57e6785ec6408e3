/* SPDX-License-Identifier: MIT */
/*
 * [io] Applies a commit to the timers in memory. A new timer becomes KEPT. It stays in memory only
 * if it is due soon, or if this thread must act on it at once. A moved timer waits again. A timer
 * that has left the store leaves the memory, too.
 */
#include "durable/settle.h"

#include "durable/keep.h"
#include "durable/stage.h"

#include <errno.h>

/*
 * Refuses a timer that the store did not take. If the timer waits, it ends now. If it runs, it ends
 * when its run has ended.
 */
static void refuse(struct tw_durable *set, struct twi_durable_timer *timer)
{
	uint64_t word;

	timer->refused = true;
	if (twi_durable_revoke(&timer->word, &word) ||
	    twi_durable_state(word) == TWI_DURABLE_ENDED) {
		twi_keep_release(set, timer);
		return;
	}
	twi_keep_add(set, timer);
	twi_slot_clear(set, timer);
	word = twi_durable_place_set(&timer->word, TWI_DURABLE_KEPT);
	if (twi_durable_state(word) == TWI_DURABLE_ENDED || (word & TWI_DURABLE_DUE) != 0)
		twi_stage(set, &timer->item, TWI_DURABLE_CALL_BYTES, false);
}

/*
 * Counts the time from the schedule to the acknowledgement, as 0 if the clock was set back in
 * between.
 */
static void ack_count(struct tw_durable *set, const struct twi_durable_timer *timer)
{
	int64_t waited_ns =
		twi_durable_until_ns(set->axes[timer->kind->axis].stored_ns, timer->scheduled_ns);

	twi_measured_count(&set->measured[TW_DURABLE_MEASUREMENT_ACK],
			   waited_ns > 0 ? (uint64_t)waited_ns : 0);
}

/*
 * Returns whether a waiting timer stays in memory: in a shared set if this session has claimed it,
 * otherwise if it is in the near window.
 */
static bool stays(const struct tw_durable *set, const struct tw_durable_op *op,
		  const struct twi_durable_timer *timer)
{
	return set->shared ? op->row.session != 0
			   : twi_keep_near(set, timer->kind, timer->id, timer->due_ns);
}

static void settle_put(struct tw_durable *set, const struct tw_durable_op *op,
		       struct twi_durable_timer *timer)
{
	uint64_t word = twi_durable_look(&timer->word); /* E101: acquires its last step */
	bool push;

	if (op->outcome != TW_DURABLE_DONE) {
		refuse(set, timer);
		return;
	}
	set->counters[TWI_SHOWN_STORED]++;
	ack_count(set, timer);
	/* RELAXED: only a number, which publishes nothing. */
	twi_store_relaxed(&timer->session, op->row.session);
	if (twi_durable_state(word) == TWI_DURABLE_WAITING && !timer->armed &&
	    !stays(set, op, timer) && twi_durable_hold(&timer->word)) {
		/*
		 * The timer stays HELD, so a canceller that still finds it sends a request to this
		 * thread, which then asks the store.
		 */
		twi_keep_release(set, timer);
		return;
	}
	twi_keep_add(set, timer);
	twi_slot_clear(set, timer);
	word = twi_durable_keep(&timer->word, timer->started, &push);
	if (push)
		twi_stage(set, &timer->item, TWI_DURABLE_CALL_BYTES, false);
	else if (twi_durable_state(word) == TWI_DURABLE_WAITING && !timer->armed)
		twi_keep_arm(set, timer);
}

/*
 * Handles a start that a shared store has refused: there the timer is not due yet, or was
 * cancelled, moved or claimed by another set.
 */
static void start_refused(struct tw_durable *set, const struct tw_durable_op *op,
			  struct twi_durable_timer *timer)
{
	set->counters[TWI_SHOWN_REFUSED]++;
	/* If the timer runs already, its end will be refused, too. */
	if (!twi_durable_hold(&timer->word))
		return;
	if (op->outcome != TW_DURABLE_PRESENT) {
		twi_keep_release(set, timer);
		return;
	}
	(void)twi_durable_let_go(&timer->word, TWI_DURABLE_WAITING, 0, false);
	twi_keep_arm_soon(set, timer);
}

static void settle_start(struct tw_durable *set, const struct tw_durable_op *op,
			 struct twi_durable_timer *timer)
{
	if (set->shared && op->outcome != TW_DURABLE_DONE) {
		start_refused(set, op, timer);
		return;
	}
	timer->started = true;
	/* RELAXED: the step of the state word below publishes the fence. */
	twi_store_relaxed(&timer->fence, op->row.fence);
	if ((!timer->confirm && !set->shared) || !twi_durable_hold(&timer->word))
		return;
	/*
	 * The confirmation is valid until the end of the session. If the timer waits longer, the
	 * store is asked again.
	 */
	timer->until_ns = set->session.until_ns;
	(void)twi_durable_let_go(&timer->word, TWI_DURABLE_WAITING, TWI_DURABLE_CONFIRMED, false);
	twi_keep_arm_now(set, timer);
}

static void settle_move(struct tw_durable *set, const struct tw_durable_op *op,
			struct twi_durable_timer *timer)
{
	/* The batch moves the timer once more, or cancels it after this move. */
	if (timer->moving == 0 || --timer->moving != 0)
		return;
	timer->started = false;
	/*
	 * Not DONE: the timer's PUT in the same batch was refused, because of its key or for lack
	 * of space. Or, in a shared store, the timer has ended or runs in another set.
	 */
	if (op->outcome != TW_DURABLE_DONE || !stays(set, op, timer)) {
		twi_keep_release(set, timer);
		return;
	}
	/* RELAXED: only a number, which publishes nothing. */
	twi_store_relaxed(&timer->session, op->row.session);
	(void)twi_durable_let_go(&timer->word, TWI_DURABLE_WAITING, 0, false);
	twi_keep_arm(set, timer);
}

/*
 * Loads a timer that is not in memory, if it was moved or revived into the near window. The timer's
 * kind matters only if the set is shared or has kinds that count elapsed time. In both cases the
 * request has read the kind from the store.
 */
static void settle_unseen(struct tw_durable *set, const struct tw_durable_op *op)
{
	const struct tw_durable_store *store = &set->options.store;
	const struct twi_durable_kind *kind;
	int error;

	if (op->outcome != TW_DURABLE_DONE || op->row.kind >= set->kind_count ||
	    (op->type != TW_DURABLE_OP_MOVE && op->type != TW_DURABLE_OP_REVIVE))
		return;
	kind = &set->kinds[op->row.kind];
	if (set->shared ? op->row.session == 0
			: !twi_keep_near(set, kind, op->row.id, op->row.due_ns))
		return;
	error = store->ops->find(store->store, op->row.id, twi_keep_load, set);
	/*
	 * If there was no memory, for example, a later load tries again. -ENOENT: this set does not
	 * know the kind.
	 */
	if (error != 0 && error != -ENOENT)
		twi_keep_return(set, kind, op->row.id, op->row.due_ns);
}

void twi_settle(struct tw_durable *set, const struct tw_durable_op *op,
		struct twi_durable_timer *timer)
{
	bool stale = (op->flags & TW_DURABLE_OP_OWN) != 0 && op->outcome == TW_DURABLE_ABSENT;

	set->counters[TWI_SHOWN_STALE] += stale;
	set->counters[TWI_SHOWN_DEAD] += op->type == TW_DURABLE_OP_BURY && !stale;
	if (timer == NULL) {
		settle_unseen(set, op);
		return;
	}
	if (timer->gone)
		return;
	switch (op->type) {
	case TW_DURABLE_OP_PUT:
		settle_put(set, op, timer);
		break;
	case TW_DURABLE_OP_START:
		settle_start(set, op, timer);
		break;
	case TW_DURABLE_OP_MOVE:
		settle_move(set, op, timer);
		break;
	default:
		twi_keep_release(set, timer);
		break;
	}
}

void twi_settle_lost(struct tw_durable *set, const struct tw_durable_op *op,
		     struct twi_durable_timer *timer)
{
	if (timer == NULL || timer->gone)
		return;
	timer->moving = 0;
	if (op->type == TW_DURABLE_OP_PUT)
		refuse(set, timer);
	else if (op->type != TW_DURABLE_OP_START || twi_durable_hold(&timer->word))
		twi_keep_release(set, timer);
}
