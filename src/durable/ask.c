/* SPDX-License-Identifier: MIT */
/*
 * [io] Requests. A change becomes an operation of the batch, with its acknowledgement. The answer
 * to a question, and a cancel by key, must include all earlier changes, so the batch is committed
 * first.
 *
 * While a callback holds a timer, the timer can be neither moved nor cancelled. Then the request,
 * and all items behind it, wait for the next step. So the items keep their order, and no flush
 * overtakes them. If an earlier request of the same batch moves a timer, this thread holds the
 * timer, and may move it again or cancel it. A request that needs a server waits in the same way if
 * the server cannot be reached.
 */
#include "durable/ask.h"

#include "durable/batch.h"
#include "durable/keep.h"
#include "durable/request.h"
#include "durable/stage.h"
#include "thread/rcu.h"

#include <errno.h>

enum { TRIES = 3 };

static struct twi_durable_timer *memory_find(struct tw_durable *set, struct tw_durable_id id)
{
	struct twi_durable_timer *timer;

	twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
	timer = twi_timer_find(set, id);
	twi_rcu_leave(); /* E105: from here on, timers may be freed. */
	return timer;
}

/* Returns the outcome of a change of a timer that is not WAITING, or -EAGAIN if it is HELD. */
static int outcome_of(uint64_t word)
{
	enum twi_durable_result result = twi_durable_result(word);

	switch (twi_durable_state(word)) {
	case TWI_DURABLE_RUNNING:
	case TWI_DURABLE_PENDING:
		return TW_DURABLE_RUNNING;
	case TWI_DURABLE_ENDED:
		return result == TWI_RESULT_AGAIN || result == TWI_RESULT_NEXT ? TW_DURABLE_RUNNING
									       : TW_DURABLE_ABSENT;
	default:
		return -EAGAIN;
	}
}

static void done(struct tw_durable *set, struct twi_request *request, int outcome)
{
	twi_batch_ack_only(set, request->id, request->context, outcome, 0);
	twi_request_free(request);
}

/*
 * Ends a timer that this batch moves, so that the settling of the MOVE does not arm it. An armed
 * timer could run before its DELETE is settled, although the store no longer has it. Returns false
 * if the batch does not move the timer.
 */
static bool moving_revoke(struct twi_durable_timer *timer)
{
	if (timer->moving == 0)
		return false;
	timer->moving = 0;
	(void)twi_durable_let_go(&timer->word, TWI_DURABLE_ENDED, 0, false);
	return true;
}

static void delete (struct tw_durable *set, struct twi_request *request,
		    struct twi_durable_timer *timer)
{
	int outcome = TWI_OUTCOME_OF_STORE;

	if (timer != NULL) {
		/* RELAXED: only this thread changes the attempt. */
		outcome = twi_load_relaxed(&timer->attempt) == 0 ? TW_DURABLE_DONE
								 : TW_DURABLE_ATTEMPTED;
		if (timer->refused) {
			twi_keep_release(set, timer);
			done(set, request, TW_DURABLE_DONE);
			return;
		}
	}
	(void)twi_batch_op(set, TW_DURABLE_OP_DELETE, request->id, timer);
	if (timer != NULL)
		twi_batch_fence(set, timer, false);
	twi_batch_ack(set, request->id, request->context, outcome);
	twi_request_free(request);
}

/*
 * Cancels a timer for a request. This function and those below return false if the request must
 * wait for the next step.
 */
static bool ask_cancel(struct tw_durable *set, struct twi_request *request)
{
	struct twi_durable_timer *timer = memory_find(set, request->id);
	uint64_t word;
	int outcome;

	if (timer == NULL || request->revoked || moving_revoke(timer) ||
	    twi_durable_revoke(&timer->word, &word)) {
		delete (set, request, timer);
		return true;
	}
	outcome = outcome_of(word);
	if (outcome >= 0)
		done(set, request, outcome);
	return outcome >= 0;
}

/*
 * The facts that a request needs of a row. found_take() copies them, because the row is valid only
 * during that call.
 */
struct found {
	struct tw_durable *set;
	struct twi_request *request;
	uint64_t attempt;
	uint32_t kind;
	bool dead;
};

static int found_take(void *to, const struct tw_durable_row *row)
{
	struct found *found = to;
	struct twi_request *request = found->request;
	int64_t due_ns = row->due_ns;

	if (row->kind < found->set->kind_count)
		due_ns = twi_durable_to_wall(found->set, &found->set->kinds[row->kind], due_ns);
	found->attempt = row->attempt;
	found->kind = row->kind;
	found->dead = row->dead != 0;
	request->id = row->id;
	if (request->count == request->max)
		return 0;
	request->infos[request->count++] = (struct tw_durable_info){
		.id = row->id,
		.due_ns = due_ns,
		.kind = row->kind < found->set->kind_count ? found->set->kinds[row->kind].user
							   : NULL,
		.attempt = row->attempt,
		.version = row->version,
		.payload_bytes = row->payload_bytes,
	};
	return 0;
}

/*
 * Returns whether a request must wait because the server of a shared store cannot be reached. If
 * there is a session, the request waits only for TRIES steps, because the server may be unable to
 * execute this one request. No request waits if the set closes, or if the request's caller has
 * left. RELAXED, both: a later step looks at these flags again.
 */
static bool later(struct tw_durable *set, struct twi_request *request, int error)
{
	if (error != -EAGAIN || !set->shared || twi_load_relaxed(&set->closing) != 0 ||
	    twi_load_relaxed(&request->answered) == TWI_ANSWER_LEFT)
		return false;
	if (set->session.cut == 0 && request->tries++ >= TRIES)
		return false;
	twi_batch_pause(set);
	return true;
}

static bool ask_cancel_key(struct tw_durable *set, struct twi_request *request)
{
	const struct tw_durable_store *store = &set->options.store;
	struct found found = {.set = set, .request = request, .kind = UINT32_MAX};
	int error;

	twi_batch_commit(set);
	error = store->ops->find_key(store->store, request->key, request->key_bytes, found_take,
				     &found);
	if (later(set, request, error))
		return false;
	if (error == 0) {
		request->item.type = TWI_ITEM_CANCEL;
		return ask_cancel(set, request);
	}
	twi_batch_ack_only(set, request->id, request->context,
			   error == -ENOENT ? TW_DURABLE_ABSENT : TW_DURABLE_UNKNOWN,
			   error == -ENOENT ? 0 : -EIO);
	twi_request_free(request);
	return true;
}

/* Ends a request with an error, after the store has failed or could not answer it. */
static void lost(struct tw_durable *set, struct twi_request *request)
{
	switch ((enum twi_item_type)request->item.type) {
	case TWI_ITEM_FLUSH:
	case TWI_ITEM_FIND:
	case TWI_ITEM_FIND_KEY:
	case TWI_ITEM_DEAD:
	case TWI_ITEM_LIST:
		twi_request_answer(request, -EIO);
		return;
	case TWI_ITEM_RESUME:
		twi_request_free(request);
		return;
	default:
		twi_batch_ack_only(set, request->id, request->context, TW_DURABLE_UNKNOWN, -EIO);
		twi_request_free(request);
	}
}

/* Returns the deadline of a request on the clock of the kind with this number. */
static int64_t due_of(struct tw_durable *set, const struct twi_request *request, uint32_t kind)
{
	return kind < set->kind_count
		       ? twi_durable_from_wall(set, &set->kinds[kind], request->due_ns)
		       : request->due_ns;
}

/*
 * Returns whether this session must claim a changed timer of a shared store, because it is due
 * soon.
 */
static bool claims(const struct tw_durable *set, const struct tw_durable_row *row)
{
	return set->shared && row->kind < set->kind_count &&
	       twi_keep_near(set, &set->kinds[row->kind], row->id, row->due_ns);
}

static void move(struct tw_durable *set, struct twi_request *request,
		 struct twi_durable_timer *timer, uint32_t kind, uint64_t attempt)
{
	struct tw_durable_row *row = twi_batch_op(set, TW_DURABLE_OP_MOVE, request->id, timer);

	row->due_ns = due_of(set, request, kind);
	row->kind = kind;
	row->attempt = attempt;
	row->session = claims(set, row);
	if (timer != NULL) {
		timer->due_ns = row->due_ns;
		twi_batch_fence(set, timer, false);
	}
	twi_batch_ack(set, request->id, request->context, TWI_OUTCOME_OF_STORE);
	twi_request_free(request);
}

/* Moves a timer that is not in memory. Only the store knows its kind and its attempts. */
static bool move_far(struct tw_durable *set, struct twi_request *request)
{
	const struct tw_durable_store *store = &set->options.store;
	struct found found = {.set = set, .request = request, .kind = UINT32_MAX};
	int error = store->ops->find(store->store, request->id, found_take, &found);

	if (later(set, request, error))
		return false;
	if (error == 0 && !found.dead)
		move(set, request, NULL, found.kind, found.attempt);
	else if (error == 0 || error == -ENOENT)
		done(set, request, TW_DURABLE_ABSENT);
	else
		lost(set, request);
	return true;
}

static bool ask_move(struct tw_durable *set, struct twi_request *request)
{
	struct twi_durable_timer *timer = memory_find(set, request->id);
	int outcome;

	if (timer == NULL)
		return move_far(set, request);
	if (timer->moving != 0 || twi_durable_hold(&timer->word)) {
		timer->moving++;
		/* RELAXED: only this thread changes the attempt. */
		move(set, request, timer, (uint32_t)(timer->kind - set->kinds),
		     twi_load_relaxed(&timer->attempt));
		return true;
	}
	outcome = outcome_of(twi_durable_look(&timer->word)); /* E101: acquires its last step */
	if (outcome >= 0)
		done(set, request, outcome);
	return outcome >= 0;
}

/*
 * Revives or drops a dead letter. If the set counts elapsed time or is shared, a revive needs the
 * kind, and only the store knows it. Then the batch is committed first, because one of its
 * operations may have made the timer a dead letter.
 */
static bool ask_dead(struct tw_durable *set, struct twi_request *request,
		     enum tw_durable_op_type type)
{
	const struct tw_durable_store *store = &set->options.store;
	struct found found = {.set = set, .request = request};
	struct tw_durable_row *row;
	int error = 0;

	if ((set->elapsed || set->shared) && type == TW_DURABLE_OP_REVIVE) {
		twi_batch_commit(set);
		found.kind = UINT32_MAX;
		/* RELAXED: only this thread changes the state. */
		error = twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED
				? -EIO
				: store->ops->find(store->store, request->id, found_take, &found);
	}
	if (later(set, request, error))
		return false;
	if (error != 0 && error != -ENOENT) {
		lost(set, request);
		return true;
	}
	row = twi_batch_op(set, type, request->id, NULL);
	row->due_ns = due_of(set, request, found.kind);
	row->kind = found.kind;
	row->session = claims(set, row);
	twi_batch_ack(set, request->id, request->context, TWI_OUTCOME_OF_STORE);
	twi_request_free(request);
	return true;
}

static void ask_resume(struct tw_durable *set, struct twi_request *request)
{
	if (request->kind != NULL)
		twi_keep_unpark(set, request->kind);
	else
		set->accepted_ns = set->axes[TWI_AXIS_WALL].offset_ns;
	twi_request_free(request);
}

static bool ask_question(struct tw_durable *set, struct twi_request *request)
{
	const struct tw_durable_store *store = &set->options.store;
	struct found found = {.set = set, .request = request, .kind = UINT32_MAX};
	struct tw_durable_id after = request->id;
	const struct tw_durable_row position = {
		.id = after,
		.due_ns = request->kind == NULL
				  ? request->due_ns
				  : twi_durable_from_wall(set, request->kind, request->due_ns),
	};
	int error;

	twi_batch_commit(set);
	if (request->item.type == TWI_ITEM_LIST)
		error = store->ops->near(store->store, request->behind ? &position : NULL,
					 INT64_MAX, request->max, found_take, &found);
	else if (request->item.type == TWI_ITEM_FIND)
		error = store->ops->find(store->store, request->id, found_take, &found);
	else if (request->item.type == TWI_ITEM_FIND_KEY)
		error = store->ops->find_key(store->store, request->key, request->key_bytes,
					     found_take, &found);
	else
		error = store->ops->dead(store->store, after, request->max, found_take, &found);
	if (later(set, request, error))
		return false;
	twi_request_answer(request, error == 0 && found.dead && request->item.type != TWI_ITEM_DEAD
					    ? -ENOENT
					    : error);
	return true;
}

static bool ask_one(struct tw_durable *set, struct twi_request *request)
{
	switch ((enum twi_item_type)request->item.type) {
	case TWI_ITEM_REVIVE:
		return ask_dead(set, request, TW_DURABLE_OP_REVIVE);
	case TWI_ITEM_DROP:
		return ask_dead(set, request, TW_DURABLE_OP_DROP);
	case TWI_ITEM_RESUME:
		ask_resume(set, request);
		return true;
	case TWI_ITEM_FLUSH:
		request->next = set->flushes;
		set->flushes = request;
		return true;
	default:
		return ask_question(set, request);
	}
}

bool twi_ask(struct tw_durable *set, struct twi_request *request, bool failed)
{
	int64_t bytes = (int64_t)twi_request_bytes(request);
	bool done_now = true;

	if (failed)
		lost(set, request);
	else if (request->item.type == TWI_ITEM_CANCEL)
		done_now = ask_cancel(set, request);
	else if (request->item.type == TWI_ITEM_CANCEL_KEY)
		done_now = ask_cancel_key(set, request);
	else if (request->item.type == TWI_ITEM_MOVE)
		done_now = ask_move(set, request);
	else
		done_now = ask_one(set, request);
	if (done_now)
		set->taken_bytes += bytes;
	return done_now;
}

void twi_ask_flushed(struct tw_durable *set)
{
	struct twi_request *request = set->flushes, *next;
	/* RELAXED: only this thread changes the state. */
	bool failed = twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED;

	set->flushes = NULL;
	for (; request != NULL; request = next) {
		next = request->next;
		twi_request_answer(request, failed ? -EIO : 0);
	}
}
