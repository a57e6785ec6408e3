/* SPDX-License-Identifier: MIT */
/*
 * [io] Takes all staged items, in their order, and makes operations of them.
 *
 * A new timer that was cancelled or done before it was taken is acknowledged as ABSORBED, and the
 * store never gets it. The link of an item is read before the item is handled, because the handling
 * may let another thread push the timer again. A timer whose kind has `linger_ns` may wait for a
 * later step, still STAGED (time/linger.h). If a request must wait for a callback, it and the items
 * behind it are the first of the next step.
 */
#include "durable/take.h"

#include "durable/ask.h"
#include "durable/batch.h"
#include "durable/fresh/table.h"
#include "durable/keep.h"
#include "durable/request.h"
#include "durable/run.h"
#include "durable/shared/session.h"
#include "durable/stage.h"
#include "durable/time/linger.h"
#include "thread/rcu.h"

#include <errno.h>

enum {
	STARTS_AT_ONCE = 256,
};

/* RELAXED: only this thread changes the state. */
static bool failed(const struct tw_durable *set)
{
	return twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED;
}

static struct tw_durable_row *timer_op(struct tw_durable *set, enum tw_durable_op_type type,
				       struct twi_durable_timer *timer, uint64_t attempt)
{
	struct tw_durable_row *row = twi_batch_op(set, type, timer->id, timer);

	row->due_ns = timer->due_ns;
	row->attempt = attempt;
	twi_batch_fence(set, timer, type != TW_DURABLE_OP_START);
	return row;
}

static bool near(const struct tw_durable *set, const struct twi_durable_timer *timer)
{
	return twi_keep_near(set, timer->kind, timer->id, timer->due_ns);
}

/*
 * Adds the PUT of a new timer. `started`: its run has begun. If `settled`, the timer stays in use,
 * and is settled after the commit.
 */
static void put(struct tw_durable *set, struct twi_durable_timer *timer, uint64_t attempt,
		bool started, bool settled)
{
	struct tw_durable_row *row =
		twi_batch_op(set, TW_DURABLE_OP_PUT, timer->id, settled ? timer : NULL);

	row->due_ns = timer->due_ns;
	row->attempt = attempt;
	row->kind = (uint32_t)(timer->kind - set->kinds);
	row->version = timer->version;
	row->started = started;
	/* In a shared set, claims the timer if it may run here. */
	row->session = set->shared && (started || timer->armed || !settled || near(set, timer));
	row->payload_bytes = timer->payload_bytes;
	row->key_bytes = timer->key_bytes;
	row->payload = timer->bytes;
	row->key = timer->bytes + timer->payload_bytes;
	timer->started = started;
	twi_batch_ack(set, timer->id, timer->context, TWI_OUTCOME_OF_STORE);
}

static uint64_t mixed(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/*
 * Returns the delay after `attempt` runs, with jitter. Returns a negative number if no run follows.
 */
static int64_t delay_of(const struct twi_durable_timer *timer, uint64_t attempt)
{
	const struct tw_retry_schedule *schedule = timer->kind->user->schedule;
	int64_t delay_ns = schedule == NULL ? -1 : tw_retry_delay(schedule, attempt - 1);
	uint64_t span;

	if (delay_ns <= 0 || delay_ns == TW_NEVER || schedule->jitter_percent == 0)
		return delay_ns;
	span = (uint64_t)delay_ns / 100 * schedule->jitter_percent;
	return delay_ns -
	       (int64_t)(mixed(timer->id.serial + attempt * UINT64_C(0x9e3779b97f4a7c15)) %
			 (span + 1));
}

/*
 * Sets the next deadline and the attempts of a timer whose run has ended. Returns false if the
 * timer does not run again. RELAXED: only this thread changes the attempts.
 */
static bool again(struct tw_durable *set, struct twi_durable_timer *timer,
		  enum twi_durable_result result)
{
	uint64_t attempt = twi_load_relaxed(&timer->attempt) + 1;
	uint64_t most = timer->kind->user->attempts_max;
	int64_t delay_ns;

	/*
	 * `confirm` may be set only because the timer was loaded after a crash. This run has ended,
	 * so the start of the next one is stored first only if the kind runs at most once.
	 */
	timer->confirm = (timer->kind->user->flags & TW_DURABLE_KIND_AT_MOST_ONCE) != 0;
	twi_store_relaxed(&timer->attempt, result == TWI_RESULT_NEXT ? 0 : attempt);
	if (result == TWI_RESULT_NEXT) {
		timer->due_ns = timer->next_ns == TW_NEVER ? TW_NEVER - 1 : timer->next_ns;
		return true;
	}
	if (result != TWI_RESULT_AGAIN || (most != 0 && attempt >= most))
		return false;
	delay_ns = delay_of(timer, attempt);
	if (delay_ns < 0)
		return false;
	if (__builtin_add_overflow(set->axes[timer->kind->axis].now_ns, delay_ns, &timer->due_ns) ||
	    timer->due_ns == TW_NEVER)
		timer->due_ns = TW_NEVER - 1;
	return true;
}

static void take_ended(struct tw_durable *set, struct twi_durable_timer *timer, uint64_t word)
{
	enum twi_durable_result result = twi_durable_result(word);

	timer->armed = timer->armed && result == TWI_RESULT_CANCELLED;
	if (result == TWI_RESULT_DONE || result == TWI_RESULT_CANCELLED) {
		set->counters[TWI_SHOWN_ABSORBED]++;
		twi_batch_ack_only(set, timer->id, timer->context, TW_DURABLE_ABSORBED, 0);
		twi_keep_release(set, timer);
		return;
	}
	if (again(set, timer, result)) {
		/* RELAXED: only this thread changes the attempt. */
		put(set, timer, twi_load_relaxed(&timer->attempt), false, true);
		(void)twi_durable_place_set(&timer->word, TWI_DURABLE_TAKEN);
		(void)twi_durable_let_go(&timer->word, TWI_DURABLE_WAITING, 0, false);
		return;
	}
	/*
	 * RELAXED: only this thread changes the attempt. The BURY that follows releases the timer.
	 */
	put(set, timer, twi_load_relaxed(&timer->attempt), false, false);
	(void)twi_durable_place_set(&timer->word, TWI_DURABLE_TAKEN);
	/* RELAXED: only this thread changes the attempt. */
	(void)timer_op(set, TW_DURABLE_OP_BURY, timer, twi_load_relaxed(&timer->attempt));
}

static bool begun(uint64_t word)
{
	enum twi_durable_state state = twi_durable_state(word);

	return state == TWI_DURABLE_RUNNING || state == TWI_DURABLE_PENDING;
}

static void take_staged(struct tw_durable *set, struct twi_durable_timer *timer)
{
	uint64_t word;

	if (!twi_durable_take(&timer->word, &word)) {
		take_ended(set, timer, word);
		return;
	}
	timer->armed = timer->armed && !begun(word) && (word & TWI_DURABLE_DUE) == 0;
	/* RELAXED: only this thread changes the attempt. */
	put(set, timer, twi_load_relaxed(&timer->attempt) + begun(word), begun(word), true);
}

/*
 * Decides about a due timer that its callback did not run. RELAXED, all loads: only this thread
 * changes the value, or a later step finds the change.
 */
static void admit(struct tw_durable *set, struct twi_durable_timer *timer)
{
	struct twi_durable_kind *kind = timer->kind;
	uint64_t attempt = twi_load_relaxed(&timer->attempt);
	uint32_t state = twi_load_relaxed(&set->state), most = kind->user->running_max;
	uint64_t word;

	timer->armed = false;
	if (timer->refused) {
		if (twi_durable_revoke(&timer->word, &word))
			twi_keep_release(set, timer);
		return;
	}
	if (twi_session_stale(set, timer)) {
		if (twi_durable_hold(&timer->word))
			twi_keep_release(set, timer);
		return;
	}
	if (timer->spent ||
	    (kind->user->attempts_max != 0 && attempt >= kind->user->attempts_max)) {
		if (twi_durable_revoke(&timer->word, &word))
			(void)timer_op(set, TW_DURABLE_OP_BURY, timer, attempt);
		return;
	}
	if (!twi_durable_hold(&timer->word))
		return;
	(void)twi_durable_let_go(&timer->word, TWI_DURABLE_WAITING, 0, false);
	if (twi_load_relaxed(&set->closing) != 0)
		return;
	if (state == TW_DURABLE_STATE_CLOCK_STEPPED && !twi_durable_elapsed(kind))
		twi_keep_park(set, timer, TWI_LIST_HELD);
	else if (twi_durable_now_ns(set, kind) < timer->due_ns)
		twi_keep_arm(set, timer);
	else if (twi_load_relaxed(&kind->paused) != 0 ||
		 (most != 0 && twi_load_relaxed(&kind->running) >= most))
		twi_keep_park(set, timer, TWI_LIST_PARKED);
	else if (!timer->confirm && !set->shared)
		twi_keep_arm_now(set, timer);
	else
		(void)timer_op(set, TW_DURABLE_OP_START, timer, attempt + 1);
}

static void attend_result(struct tw_durable *set, struct twi_durable_timer *timer,
			  enum twi_durable_result result)
{
	bool more = again(set, timer, result);

	struct tw_durable_row *row;

	timer->moving += more;
	/* RELAXED: only this thread changes the attempt. */
	row = timer_op(set, more ? TW_DURABLE_OP_MOVE : TW_DURABLE_OP_BURY, timer,
		       twi_load_relaxed(&timer->attempt));
	row->session = set->shared && near(set, timer);
}

static void attend_ended(struct tw_durable *set, struct twi_durable_timer *timer, uint64_t word)
{
	enum twi_durable_result result = twi_durable_result(word);

	/* The canceller has sent a request, which deletes the timer. */
	if (result == TWI_RESULT_CANCELLED)
		return;
	timer->armed = false;
	if (timer->refused)
		twi_keep_release(set, timer);
	else if (result == TWI_RESULT_DONE)
		(void)timer_op(set, TW_DURABLE_OP_DELETE, timer, 0);
	else
		attend_result(set, timer, result);
	if (timer->kind->user->running_max != 0)
		twi_keep_unpark(set, timer->kind);
}

/* Handles a stored timer that was pushed. */
static void attend(struct tw_durable *set, struct twi_durable_timer *timer)
{
	uint64_t word = twi_durable_place_set(&timer->word, TWI_DURABLE_KEPT);

	if (timer->gone) {
		twi_keep_release(set, timer);
		return;
	}
	if (twi_durable_state(word) == TWI_DURABLE_ENDED) {
		attend_ended(set, timer, word);
	} else if (begun(word)) {
		timer->armed = false;
		/* RELAXED: only this thread changes the attempt. */
		if (!timer->started && !timer->refused)
			(void)timer_op(set, TW_DURABLE_OP_START, timer,
				       twi_load_relaxed(&timer->attempt) + 1);
		timer->started = true;
	} else if ((word & TWI_DURABLE_DUE) != 0 &&
		   twi_durable_state(word) == TWI_DURABLE_WAITING) {
		admit(set, timer);
	}
}

/* Handles a timer after the set has failed. If it was staged, its outcome is unknown. */
static void timer_lost(struct tw_durable *set, struct twi_durable_timer *timer, bool staged)
{
	if (!staged) {
		(void)twi_durable_place_set(&timer->word, TWI_DURABLE_KEPT);
		if (timer->gone)
			twi_keep_release(set, timer);
		return;
	}
	(void)twi_durable_place_set(&timer->word, TWI_DURABLE_TAKEN);
	twi_batch_ack_only(set, timer->id, timer->context, TW_DURABLE_UNKNOWN, -EIO);
}

static int64_t until_due_ns(const struct tw_durable *set, const struct twi_durable_timer *timer)
{
	return twi_durable_until_ns(timer->due_ns, set->axes[timer->kind->axis].now_ns);
}

/*
 * Returns how long a new timer may linger before it is stored. It may linger until one commit
 * window after its deadline: if its run ends by then, it is never stored. If the kind runs at most
 * once, the start must be stored at the deadline. So the timer itself must be stored before its
 * deadline.
 */
static int64_t linger_of(const struct tw_durable *set, const struct twi_durable_timer *timer)
{
	int64_t due_in_ns = until_due_ns(set, timer);
	int64_t linger_ns = (int64_t)timer->kind->user->linger_ns;
	int64_t window_ns = (int64_t)set->options.window_ns;

	if (timer->key_bytes != 0 || timer->resend || due_in_ns <= 0)
		return 0;
	if (timer->confirm && due_in_ns - window_ns - TWI_DURABLE_MARGIN_NS < linger_ns)
		return due_in_ns - window_ns - TWI_DURABLE_MARGIN_NS;
	if (!timer->confirm && due_in_ns < linger_ns - window_ns)
		return due_in_ns + window_ns;
	return linger_ns;
}

/* Lets a new timer linger. Returns false if it must be stored now, or has ended. */
static bool linger(struct tw_durable *set, struct twi_durable_timer *timer)
{
	uint64_t word = twi_durable_look(&timer->word); /* E101: acquires its last step */
	int64_t linger_ns = linger_of(set, timer), soon_ns;

	/* RELAXED: a step that reads the flag later stores all timers that linger. */
	if (linger_ns <= (int64_t)set->options.window_ns || twi_load_relaxed(&set->closing) != 0 ||
	    twi_durable_state(word) == TWI_DURABLE_ENDED || begun(word) ||
	    (word & TWI_DURABLE_DUE) != 0 ||
	    !twi_linger_add(set, timer, set->engine_ns + linger_ns))
		return false;
	twi_keep_add(set, timer);
	twi_slot_clear(set, timer);
	soon_ns = linger_ns + (int64_t)set->options.window_ns + TWI_DURABLE_MARGIN_NS;
	if (!timer->armed && !timer->confirm && until_due_ns(set, timer) <= soon_ns)
		twi_keep_arm(set, timer);
	return true;
}

static void linger_end(struct tw_durable *set, struct twi_durable_timer *timer)
{
	twi_linger_remove(set, timer);
	if (failed(set))
		timer_lost(set, timer, true);
	else
		take_staged(set, timer);
	if (twi_batch_full(set))
		twi_batch_commit(set);
}

static bool lingers_end(struct tw_durable *set, int64_t until_ns)
{
	struct twi_durable_timer *timer;
	bool any = false;

	while ((timer = twi_linger_first(set, until_ns)) != NULL) {
		linger_end(set, timer);
		any = true;
	}
	return any;
}

/*
 * Frees the lingering timers that have ended. May miss a timer that the removal of another one
 * moves within the heap.
 */
static void lingers_drop(struct tw_durable *set)
{
	for (size_t i = set->linger_count; i-- > 0;) {
		struct twi_durable_timer *timer = set->lingers[i].timer;

		if (twi_durable_state(twi_durable_look(&timer->word)) ==
		    TWI_DURABLE_ENDED) /* E101: acquires its last step */
			linger_end(set, timer);
	}
}

/* RELAXED, all: only this thread changes the bytes, and a later step looks at `closing` again. */
static bool lingers_due(struct tw_durable *set)
{
	int64_t most = (int64_t)(set->options.staged_bytes_max / 2);
	bool all = set->linger_cut || twi_load_relaxed(&set->closing) != 0 || failed(set);

	set->linger_cut = false;
	if (!all && twi_load_relaxed(&set->linger_bytes) > most) {
		lingers_drop(set);
		all = twi_load_relaxed(&set->linger_bytes) > most / 2;
	}
	return lingers_end(set, all ? INT64_MAX : set->engine_ns);
}

/* Stores the lingering timers that a request must find in the store. */
static void lingers_before(struct tw_durable *set, const struct twi_request *request)
{
	struct twi_durable_timer *timer;

	switch ((enum twi_item_type)request->item.type) {
	case TWI_ITEM_FLUSH:
	case TWI_ITEM_LIST:
		(void)lingers_end(set, INT64_MAX);
		return;
	case TWI_ITEM_CANCEL:
	case TWI_ITEM_MOVE:
	case TWI_ITEM_FIND:
		twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
		timer = twi_timer_find(set, request->id);
		twi_rcu_leave(); /* E105: from here on, timers may be freed. */
		if (timer != NULL && timer->linger_at != 0)
			linger_end(set, timer);
		return;
	default:
		return;
	}
}

static void take_timer(struct tw_durable *set, struct twi_durable_timer *timer)
{
	uint64_t word = twi_durable_look(&timer->word); /* E101: acquires its last step */
	bool staged = twi_durable_place(word) == TWI_DURABLE_STAGED;

	set->taken_bytes += staged ? (int64_t)twi_timer_bytes(timer) : TWI_DURABLE_CALL_BYTES;
	if (failed(set))
		timer_lost(set, timer, staged);
	else if (!staged)
		attend(set, timer);
	else if (!linger(set, timer))
		take_staged(set, timer);
}

/* Takes a request. Returns false if it must wait. */
static bool take_request(struct tw_durable *set, struct twi_request *request)
{
	lingers_before(set, request);
	return twi_ask(set, request, failed(set));
}

/* Takes a list of items. Returns those that must wait, or NULL. */
static struct twi_handover_link *take_list(struct tw_durable *set, struct twi_handover_link *link)
{
	struct twi_handover_link *next;

	for (; link != NULL; link = next) {
		struct twi_item *item = (struct twi_item *)(void *)link;

		next = link->next;
		if (item->type == TWI_ITEM_TIMER)
			take_timer(set, (struct twi_durable_timer *)(void *)item);
		else if (!take_request(set, (struct twi_request *)(void *)item))
			return link;
		if (twi_batch_full(set))
			twi_batch_commit(set);
	}
	return NULL;
}

/* Takes a timer that was fresh. From here on callers find it in one of the two tables. */
static void take_fresh(struct tw_durable *set, struct twi_durable_timer *timer)
{
	if (!twi_slot_take(set, timer))
		twi_keep_add(set, timer);
	take_timer(set, timer);
	if (twi_batch_full(set))
		twi_batch_commit(set);
}

bool twi_take_all(struct tw_durable *set)
{
	struct twi_handover_link *link = NULL;
	bool any = set->back != NULL;

	set->back = take_list(set, set->back);
	if (set->back == NULL) {
		/*
		 * The queue must be taken before the fresh timers. If a fresh timer was scheduled
		 * before a request of the queue, the batch then gets the timer first and the
		 * request later.
		 */
		link = twi_handover_take(&set->staging);
		any |= twi_fresh_timers_collect(set, take_fresh);
		set->back = take_list(set, link);
	}
	any = lingers_due(set) || any || link != NULL;
	twi_batch_commit(set);
	twi_ask_flushed(set);
	twi_stage_took(set, set->taken_bytes);
	set->taken_bytes = 0;
	return any;
}

void twi_take_starts_back(struct tw_durable *set)
{
	struct twi_durable_timer *timers[STARTS_AT_ONCE];
	size_t count;

	while ((count = twi_keep_started(set, timers, STARTS_AT_ONCE)) != 0) {
		for (size_t i = 0; i < count; i++) {
			if (twi_batch_full(set))
				twi_batch_commit(set);
			timers[i]->moving++;
			/* RELAXED: only this thread changes the attempt. */
			(void)timer_op(set, TW_DURABLE_OP_MOVE, timers[i],
				       twi_load_relaxed(&timers[i]->attempt));
		}
		twi_batch_commit(set);
	}
}
