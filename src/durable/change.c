/* SPDX-License-Identifier: MIT */
/*
 * The calls that change a timer: cancel, reschedule, complete; and those for dead letters and
 * kinds.
 *
 * A cancel of a timer in memory is one swap of its word. If the timer was STAGED, the swap is
 * enough: the I/O thread will find the timer ended, and the store never gets it. Otherwise a
 * request follows, which deletes the timer from the store. The memory of the request is allocated
 * before the swap, so the call cannot fail after the swap.
 */
#include "durable/fresh/table.h"
#include "durable/request.h"
#include "durable/run.h"
#include "durable/stage.h"
#include "thread/rcu.h"

#include <errno.h>
#include <stdlib.h>

static int send_new(struct tw_durable *set, enum twi_item_type type, struct tw_durable_id id,
		    int64_t due_ns, void *context)
{
	struct twi_request *request = twi_request_make(type, id, NULL, 0, 0);

	if (request == NULL)
		return -ENOMEM;
	request->due_ns = due_ns;
	request->context = context;
	twi_request_send(set, request, false);
	return -EINPROGRESS;
}

/* The result of a try to cancel a timer in memory. */
struct revoked {
	/* The timer is in memory, and this call may decide about it without the I/O thread. */
	bool found;
	bool ended; /* this call has ended it */
	uint64_t word, attempt;
};

/*
 * Cancels a timer in memory if it is WAITING (and STAGED, if `staged_only`). If the timer has a key
 * or was resent, leaves it alone until the store has answered, because the store may refuse the
 * timer.
 */
static struct revoked end_it(struct tw_durable *set, struct tw_durable_id id, bool staged_only)
{
	struct revoked ret = {false, false, 0, 0};
	struct twi_durable_timer *timer;

	twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
	timer = twi_timer_find(set, id);
	if (timer != NULL) {
		uint64_t word = twi_durable_look(&timer->word); /* E101: acquires its last step */

		ret.found = (timer->key_bytes == 0 && !timer->resend) ||
			    twi_durable_place(word) == TWI_DURABLE_KEPT;
		ret.word = word;
		if (ret.found)
			ret.ended = staged_only ? twi_durable_absorb(&timer->word, &ret.word)
						: twi_durable_revoke(&timer->word, &ret.word);
		/*
		 * RELAXED: if this call has ended the timer, no thread changes the attempt any
		 * more.
		 */
		ret.attempt = twi_load_relaxed(&timer->attempt);
	}
	twi_rcu_leave(); /* E105: from here on, timers may be freed. */
	return ret;
}

/*
 * Returns the outcome of a cancel that has not ended the timer, or -EINPROGRESS if the I/O thread
 * must decide.
 */
static int late_outcome(const struct revoked *revoked)
{
	enum twi_durable_state state = twi_durable_state(revoked->word);

	if (!revoked->found || state == TWI_DURABLE_HELD || state == TWI_DURABLE_WAITING)
		return -EINPROGRESS;
	if (state != TWI_DURABLE_ENDED)
		return TW_DURABLE_RUNNING;
	switch (twi_durable_result(revoked->word)) {
	case TWI_RESULT_AGAIN:
	case TWI_RESULT_NEXT:
		return TW_DURABLE_RUNNING;
	default:
		return TW_DURABLE_ABSENT;
	}
}

/* Cancels a timer that tw_durable_cancel could not end as a STAGED one. */
static int cancel_stored(struct tw_durable *set, struct tw_durable_id id, void *context)
{
	struct twi_request *request = twi_request_make(TWI_ITEM_CANCEL, id, NULL, 0, 0);
	struct revoked revoked;
	int outcome;

	if (request == NULL)
		return -ENOMEM;
	revoked = end_it(set, id, false);
	outcome = late_outcome(&revoked);
	if (!revoked.ended && outcome >= 0) {
		twi_request_free(request);
		return outcome;
	}
	if (revoked.ended && twi_durable_place(revoked.word) == TWI_DURABLE_STAGED) {
		twi_request_free(request);
		return TW_DURABLE_ABSORBED;
	}
	request->context = context;
	request->revoked = revoked.ended;
	twi_request_send(set, request, false);
	if (!revoked.ended)
		return -EINPROGRESS;
	return revoked.attempt == 0 ? TW_DURABLE_DONE : TW_DURABLE_ATTEMPTED;
}

int tw_durable_cancel(struct tw_durable *durable, struct tw_durable_id id, void *context)
{
	int error = twi_durable_check_open(durable);
	struct revoked revoked;

	if (error != 0)
		return error;
	if (id.serial == 0)
		return -EINVAL;
	if (twi_fresh_timer_absorb(durable, id))
		return TW_DURABLE_ABSORBED;
	revoked = end_it(durable, id, true);
	return revoked.ended ? TW_DURABLE_ABSORBED : cancel_stored(durable, id, context);
}

int tw_durable_cancel_key(struct tw_durable *durable, const void *key, size_t bytes, void *context)
{
	struct tw_durable_id none = {0, 0};
	struct twi_request *request;
	int error = twi_durable_check_open(durable);

	if (error != 0)
		return error;
	if (key == NULL || bytes == 0)
		return -EINVAL;
	if (bytes > TWI_DURABLE_KEY_MAX)
		return -EMSGSIZE;
	request = twi_request_make(TWI_ITEM_CANCEL_KEY, none, key, bytes, 0);
	if (request == NULL)
		return -ENOMEM;
	request->context = context;
	twi_request_send(durable, request, false);
	return -EINPROGRESS;
}

static int change(struct tw_durable *set, enum twi_item_type type, struct tw_durable_id id,
		  int64_t due_ns, void *context)
{
	int error = twi_durable_check_open(set);

	if (error != 0)
		return error;
	if (id.serial == 0 || due_ns == TW_NEVER)
		return -EINVAL;
	return send_new(set, type, id, due_ns, context);
}

int tw_durable_reschedule(struct tw_durable *durable, struct tw_durable_id id, int64_t due_ns,
			  void *context)
{
	return change(durable, TWI_ITEM_MOVE, id, due_ns, context);
}

int tw_durable_dead_revive(struct tw_durable *durable, struct tw_durable_id id, int64_t due_ns,
			   void *context)
{
	return change(durable, TWI_ITEM_REVIVE, id, due_ns, context);
}

int tw_durable_dead_drop(struct tw_durable *durable, struct tw_durable_id id, void *context)
{
	return change(durable, TWI_ITEM_DROP, id, 0, context);
}

static int complete(struct tw_durable *set, struct tw_durable_id id, uint64_t attempt,
		    enum twi_durable_result result)
{
	enum twi_durable_completed completed = TWI_COMPLETED_STALE;
	struct twi_durable_timer *timer;
	bool push = false;

	twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
	timer = twi_timer_find(set, id);
	if (timer != NULL) {
		uint64_t word = twi_durable_look(&timer->word); /* E101: acquires its last step */

		/*
		 * RELAXED: the attempt counts only if the hold count of the word is still the same
		 * at the swap.
		 */
		if ((twi_durable_state(word) == TWI_DURABLE_RUNNING ||
		     twi_durable_state(word) == TWI_DURABLE_PENDING) &&
		    twi_load_relaxed(&timer->attempt) + 1 == attempt)
			completed = twi_durable_complete(&timer->word, word, result, &push);
		if (completed == TWI_COMPLETED_PENDING)
			twi_run_leave(timer->kind);
		if (push)
			twi_stage(set, &timer->item, TWI_DURABLE_CALL_BYTES,
				  timer->kind->user->running_max != 0);
	}
	twi_rcu_leave(); /* E105: from here on, timers may be freed. */
	return completed == TWI_COMPLETED_STALE ? -ESTALE : 0;
}

int tw_durable_complete(struct tw_durable *durable, struct tw_durable_id id, uint64_t attempt,
			enum tw_retry_result result)
{
	int error = twi_durable_check(durable);

	if (error != 0)
		return error;
	if (id.serial == 0)
		return -EINVAL;
	/*
	 * A run may also be completed while the set closes, so only a failure counts. RELAXED: a
	 * call that misses a failure counts as made before the failure.
	 */
	if (twi_load_relaxed(&durable->state) == TW_DURABLE_STATE_FAILED)
		return -EIO;
	switch (result) {
	case TW_RETRY_DONE:
		return complete(durable, id, attempt, TWI_RESULT_DONE);
	case TW_RETRY_AGAIN:
		return complete(durable, id, attempt, TWI_RESULT_AGAIN);
	case TW_RETRY_GIVE_UP:
		return complete(durable, id, attempt, TWI_RESULT_GIVE_UP);
	default:
		return -EINVAL;
	}
}

int tw_durable_pause(struct tw_durable *durable, const struct tw_durable_kind *kind)
{
	int error = twi_durable_check(durable);
	struct twi_durable_kind *found = error == 0 ? twi_kind_find(durable, kind) : NULL;

	if (error != 0)
		return error;
	if (found == NULL)
		return -EINVAL;
	/* RELAXED: a run that begins at this moment may come before the pause or after it. */
	twi_store_relaxed(&found->paused, 1);
	return 0;
}

int tw_durable_resume(struct tw_durable *durable, const struct tw_durable_kind *kind)
{
	struct tw_durable_id none = {0, 0};
	int error = twi_durable_check(durable);
	struct twi_request *request;
	struct twi_durable_kind *found;

	if (error != 0)
		return error;
	found = twi_kind_find(durable, kind);
	if (kind != NULL && found == NULL)
		return -EINVAL;
	request = twi_request_make(TWI_ITEM_RESUME, none, NULL, 0, 0);
	if (request == NULL)
		return -ENOMEM;
	/* RELAXED: the I/O thread acquires the request, and with it this store. */
	if (found != NULL)
		twi_store_relaxed(&found->paused, 0);
	request->kind = found;
	twi_request_send(durable, request, true);
	return 0;
}
