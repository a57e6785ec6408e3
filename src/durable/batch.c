/* SPDX-License-Identifier: MIT */
/*
 * [io] One transaction. The acknowledgements follow the commit, in the order of the operations.
 *
 * If the store has no space, the new timers are taken out of the batch and refused. The rest is
 * committed, so that timers can still end. After other failures the store may or may not have the
 * batch. If the reason is that the session of a shared set has ended, only this batch is lost. After
 * any other failure the set fails, because the store could lose every later batch, too.
 */
#include "durable/batch.h"

#include "base/probe.h"
#include "durable/settle.h"
#include "durable/shared/session.h"
#include "thread/futex.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/*
	 * If the store is busy, the commit is tried again each millisecond, for ten seconds.
	 * BUSY_FOR_NS bounds the time as well, because a try may itself wait.
	 */
	BUSY_TRIES = 10000,
	BUSY_WAIT_NS = 1000000,
	ITEM_OPS_MAX = 2,
	ABSORBED_AT_ONCE = 256,
	/*
	 * A batch for a server is committed when its keys and payloads have this many bytes. The
	 * last timer may make it larger. The bound is low, because the server must store a batch
	 * within a quarter of a session's time.
	 */
	SHARED_BYTES = 4 << 20,
};

#define NO_OP SIZE_MAX
#define FULL_FOR_NS INT64_C(1000000000)
#define BUSY_FOR_NS INT64_C(10000000000)

struct pending {
	struct tw_durable_ack ack;
	size_t op; /* index of the operation, or NO_OP */
	int outcome;
};

struct twi_batch {
	size_t op_count, ack_count, most;
	/* the keys and payloads of the first `bytes_of` operations have `bytes` bytes */
	size_t bytes, bytes_of;
	struct tw_durable_op *ops;
	struct twi_durable_timer **timers;
	struct pending *pending;
	struct tw_durable_ack *acks;
	size_t absorbed_count;
	struct tw_durable_ack absorbed[ABSORBED_AT_ONCE];
};

struct twi_batch *twi_batch_create(uint32_t most)
{
	struct twi_batch *batch = calloc(1, sizeof *batch);

	if (batch == NULL)
		return NULL;
	batch->most = (size_t)most + ITEM_OPS_MAX;
	batch->ops = calloc(batch->most, sizeof *batch->ops);
	batch->timers = calloc(batch->most, sizeof *batch->timers);
	batch->pending = calloc(batch->most, sizeof *batch->pending);
	batch->acks = calloc(batch->most, sizeof *batch->acks);
	if (batch->ops != NULL && batch->timers != NULL && batch->pending != NULL &&
	    batch->acks != NULL)
		return batch;
	twi_batch_destroy(batch);
	return NULL;
}

void twi_batch_destroy(struct twi_batch *batch)
{
	if (batch == NULL)
		return;
	free(batch->ops);
	free(batch->timers);
	free(batch->pending);
	free(batch->acks);
	free(batch);
}

static bool bytes_full(struct twi_batch *batch)
{
	for (; batch->bytes_of < batch->op_count; batch->bytes_of++) {
		const struct tw_durable_row *row = &batch->ops[batch->bytes_of].row;

		batch->bytes += (size_t)row->key_bytes + row->payload_bytes;
	}
	return batch->bytes >= SHARED_BYTES;
}

bool twi_batch_full(const struct tw_durable *set)
{
	struct twi_batch *batch = set->batch;

	return batch->op_count + ITEM_OPS_MAX > batch->most || batch->ack_count == batch->most ||
	       (set->shared && bytes_full(batch));
}

struct tw_durable_row *twi_batch_op(struct tw_durable *set, enum tw_durable_op_type type,
				    struct tw_durable_id id, struct twi_durable_timer *timer)
{
	struct twi_batch *batch = set->batch;
	size_t at = batch->op_count++;

	batch->ops[at] = (struct tw_durable_op){.type = (uint32_t)type, .row = {.id = id}};
	batch->timers[at] = timer;
	return &batch->ops[at].row;
}

/*
 * RELAXED: only this thread changes the session. If a run ends whose timer no session has claimed
 * yet, this batch puts the timer into the store and claims it.
 */
void twi_batch_fence(struct tw_durable *set, struct twi_durable_timer *timer, bool own)
{
	struct tw_durable_op *op = &set->batch->ops[set->batch->op_count - 1];

	if (!set->shared)
		return;
	op->fence = twi_load_relaxed(&timer->session);
	op->flags = own ? TW_DURABLE_OP_OWN : 0;
	if (own && op->fence == 0)
		op->fence = TW_DURABLE_FENCE_OF_BATCH;
}

static void pending_add(struct twi_batch *batch, struct tw_durable_ack ack, size_t op, int outcome)
{
	batch->pending[batch->ack_count++] = (struct pending){ack, op, outcome};
}

void twi_batch_ack(struct tw_durable *set, struct tw_durable_id id, void *context, int outcome)
{
	struct tw_durable_ack ack = {.id = id, .context = context};

	pending_add(set->batch, ack, set->batch->op_count - 1, outcome);
}

void twi_batch_ack_only(struct tw_durable *set, struct tw_durable_id id, void *context, int outcome,
			int status)
{
	struct tw_durable_ack ack = {.id = id, .context = context, .status = status};

	pending_add(set->batch, ack, NO_OP, outcome);
}

void twi_batch_absorbed(struct tw_durable *set, struct tw_durable_id id, void *context)
{
	struct twi_batch *batch = set->batch;
	/* RELAXED: only this thread changes the state. */
	bool failed = twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED;

	set->counters[failed ? TWI_SHOWN_UNKNOWN : TWI_SHOWN_ABSORBED]++;
	if (set->options.acked == NULL)
		return;
	batch->absorbed[batch->absorbed_count++] = (struct tw_durable_ack){
		.id = id,
		.context = context,
		.outcome = failed ? TW_DURABLE_UNKNOWN : TW_DURABLE_ABSORBED,
		.status = failed ? -EIO : 0,
	};
	if (batch->absorbed_count == ABSORBED_AT_ONCE)
		twi_batch_absorbed_tell(set);
}

void twi_batch_absorbed_tell(struct tw_durable *set)
{
	struct twi_batch *batch = set->batch;

	if (batch->absorbed_count != 0)
		set->options.acked(set->options.context, batch->absorbed, batch->absorbed_count);
	batch->absorbed_count = 0;
}

/* Returns the state for the most restrictive of the conditions. */
static enum tw_durable_state state_of(uint32_t conditions)
{
	if ((conditions & TWI_CONDITION_FAILED) != 0)
		return TW_DURABLE_STATE_FAILED;
	if ((conditions & TWI_CONDITION_STEPPED) != 0)
		return TW_DURABLE_STATE_CLOCK_STEPPED;
	if ((conditions & TWI_CONDITION_CUT) != 0)
		return TW_DURABLE_STATE_CUT;
	if ((conditions & TWI_CONDITION_FULL) != 0)
		return TW_DURABLE_STATE_FULL;
	return (conditions & TWI_CONDITION_SLOW) != 0 ? TW_DURABLE_STATE_SLOW
						      : TW_DURABLE_STATE_OPEN;
}

static int error_of(const struct tw_durable *set, enum tw_durable_state state)
{
	if (state == TW_DURABLE_STATE_FAILED)
		return set->error;
	return state == TW_DURABLE_STATE_FULL ? -ENOSPC : 0;
}

/*
 * RELAXED, all: only the I/O thread changes the state and the conditions; other threads may act on
 * them later.
 */
void twi_set_condition(struct tw_durable *set, enum twi_condition condition, bool holds)
{
	uint32_t old = twi_load_relaxed(&set->conditions), bit = (uint32_t)condition;
	uint32_t conditions = holds ? old | bit : old & ~bit;
	enum tw_durable_state state = state_of(conditions);

	twi_store_relaxed(&set->conditions, conditions);
	if (state == state_of(old))
		return;
	twi_store_relaxed(&set->state, (uint32_t)state);
	TWI_PROBE3(durable_state, set, (uint32_t)state, error_of(set, state));
	if (set->options.state != NULL)
		set->options.state(set->options.context, (int)state, error_of(set, state));
}

void twi_set_fail(struct tw_durable *set, int error)
{
	if (set->error == 0)
		set->error = error;
	twi_set_condition(set, TWI_CONDITION_FAILED, true);
}

void twi_batch_pause(struct tw_durable *set)
{
	if (set->hooks.wait != NULL)
		set->hooks.wait(set->hooks.context);
	else if (!set->hooks.driven)
		twi_futex_rest(BUSY_WAIT_NS);
}

/*
 * Returns whether to try again. A set that closes tries only for about the length of one more
 * session. RELAXED: a later call looks at the flag again.
 */
static bool go_on(struct tw_durable *set, int64_t *until_ns)
{
	int64_t now_ns = set->hooks.boot_ns(set->hooks.context);

	if (twi_load_relaxed(&set->closing) == 0)
		return true;
	if (*until_ns == INT64_MAX)
		*until_ns = now_ns + 2 * set->session.ahead_ns;
	return now_ns < *until_ns;
}

/*
 * Repeats a commit while the server cannot be reached, or until go_on() ends the tries. Meanwhile
 * callers can still stage timers.
 */
static int commit_shared(struct tw_durable *set, struct tw_durable_op *ops, size_t count)
{
	const struct tw_durable_store *store = &set->options.store;
	int64_t until_ns = INT64_MAX;
	int error;

	while ((error = store->ops->commit(store->store, ops, count, set->accepted_now_ns)) ==
	       -EAGAIN) {
		error = twi_session_beat(set);
		if (error != 0)
			return error;
		twi_set_condition(set, TWI_CONDITION_CUT, set->session.cut != 0);
		if (!go_on(set, &until_ns))
			return -EIO;
		twi_batch_pause(set);
	}
	return error;
}

static int commit_try(struct tw_durable *set, struct tw_durable_op *ops, size_t count)
{
	const struct tw_durable_store *store = &set->options.store;
	int64_t until_ns = twi_until_ns(BUSY_FOR_NS);
	int error;

	if (set->shared)
		return commit_shared(set, ops, count);
	error = store->ops->commit(store->store, ops, count, set->accepted_now_ns);
	for (int i = 0; error == -EAGAIN && i < BUSY_TRIES && twi_monotonic_ns() < until_ns; i++) {
		twi_batch_pause(set);
		error = store->ops->commit(store->store, ops, count, set->accepted_now_ns);
	}
	return error;
}

/* Commits all but the new timers, which get the outcome ABSENT. */
static int commit_ends(struct tw_durable *set)
{
	struct twi_batch *batch = set->batch;
	struct tw_durable_op *ends = calloc(batch->op_count, sizeof *ends);
	size_t count = 0;
	int error = 0;

	if (ends == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < batch->op_count; i++) {
		if (batch->ops[i].type != TW_DURABLE_OP_PUT)
			ends[count++] = batch->ops[i];
	}
	if (count != 0)
		error = commit_try(set, ends, count);
	count = 0;
	for (size_t i = 0; i < batch->op_count; i++) {
		batch->ops[i].outcome = batch->ops[i].type == TW_DURABLE_OP_PUT
						? TW_DURABLE_ABSENT
						: ends[count++].outcome;
	}
	free(ends);
	return error;
}

static bool has_put(const struct twi_batch *batch)
{
	for (size_t i = 0; i < batch->op_count; i++) {
		if (batch->ops[i].type == TW_DURABLE_OP_PUT)
			return true;
	}
	return false;
}

static int commit_all(struct tw_durable *set)
{
	int error = commit_try(set, set->batch->ops, set->batch->op_count);

	if (error != -ENOSPC || !has_put(set->batch))
		return error;
	set->full_until_ns = set->engine_ns + FULL_FOR_NS;
	error = commit_ends(set);
	if (error == 0)
		twi_set_condition(set, TWI_CONDITION_FULL, true);
	return error;
}

/* Records how long a commit took, and when it ended. */
static void stored_note(struct tw_durable *set, int64_t begin_ns)
{
	int64_t took_ns = twi_monotonic_ns() - begin_ns;

	twi_measured_count(&set->measured[TW_DURABLE_MEASUREMENT_COMMIT], (uint64_t)took_ns);
	TWI_PROBE3(durable_commit, set, set->batch->op_count, took_ns);
	set->axes[TWI_AXIS_WALL].stored_ns = twi_durable_wall_ns(set);
	set->axes[TWI_AXIS_ELAPSED].stored_ns = twi_durable_elapsed_ns(set);
}

/* Handles a commit during which the session ended: the store may or may not have the batch. */
static void lose_all(struct tw_durable *set)
{
	struct twi_batch *batch = set->batch;

	for (size_t i = 0; i < batch->op_count; i++)
		twi_settle_lost(set, &batch->ops[i], batch->timers[i]);
}

static void settle_all(struct tw_durable *set)
{
	struct twi_batch *batch = set->batch;

	for (size_t i = 0; i < batch->op_count; i++)
		twi_settle(set, &batch->ops[i], batch->timers[i]);
	set->counters[TWI_SHOWN_COMMITS]++;
	set->counters[TWI_SHOWN_OPERATIONS] += batch->op_count;
}

/*
 * Returns whether a shared store contradicts the cancel of a timer in memory, because the timer has
 * ended, runs or has run in another set. Then the store's outcome counts.
 */
static bool elsewhere(const struct tw_durable_op *op)
{
	return op->type == TW_DURABLE_OP_DELETE && op->fence != 0 && op->outcome != TW_DURABLE_DONE;
}

static struct tw_durable_ack ack_of(const struct twi_batch *batch, const struct pending *pending,
				    bool failed)
{
	struct tw_durable_ack ack = pending->ack;
	const struct tw_durable_op *op = pending->op == NO_OP ? NULL : &batch->ops[pending->op];

	ack.outcome = pending->outcome;
	if (op == NULL)
		return ack;
	if (failed) {
		ack.outcome = TW_DURABLE_UNKNOWN;
		ack.status = -EIO;
		return ack;
	}
	if (ack.outcome == TWI_OUTCOME_OF_STORE || elsewhere(op))
		ack.outcome = op->outcome;
	if (op->type == TW_DURABLE_OP_PUT && op->outcome == TW_DURABLE_PRESENT)
		ack.id = op->row.id;
	if (op->type == TW_DURABLE_OP_PUT && op->outcome == TW_DURABLE_ABSENT)
		ack.status = -ENOSPC;
	return ack;
}

static void acknowledge(struct tw_durable *set, bool failed)
{
	struct twi_batch *batch = set->batch;

	for (size_t i = 0; i < batch->ack_count; i++) {
		batch->acks[i] = ack_of(batch, &batch->pending[i], failed);
		set->counters[TWI_SHOWN_UNKNOWN] += batch->acks[i].outcome == TW_DURABLE_UNKNOWN;
	}
	if (batch->ack_count != 0 && set->options.acked != NULL)
		set->options.acked(set->options.context, batch->acks, batch->ack_count);
}

void twi_batch_commit(struct tw_durable *set)
{
	struct twi_batch *batch = set->batch;
	/* RELAXED: only this thread changes the state. */
	bool failed = twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED;

	if (batch->op_count != 0 && !failed) {
		int64_t begin_ns = twi_monotonic_ns();
		int error = commit_all(set);

		failed = error != 0;
		if (error == -ESTALE && set->shared) {
			lose_all(set);
		} else if (failed) {
			twi_set_fail(set, error);
		} else {
			stored_note(set, begin_ns);
			settle_all(set);
		}
	}
	acknowledge(set, failed);
	batch->op_count = batch->ack_count = 0;
	batch->bytes = batch->bytes_of = 0;
}
