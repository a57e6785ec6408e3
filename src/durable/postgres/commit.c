/* SPDX-License-Identifier: MIT */
/*
 * A batch: one transaction of PostgreSQL, sent in one go (libpq's pipeline mode).
 *
 * Rounds. The server does operations of one type together, in the order of their serials, so a
 * batch is cut into rounds where its order matters. Operations on the same timer are in different
 * rounds. An end may free the key that a new timer needs. So a new timer with a key is never in an
 * earlier round than the ends before it in the batch, and the ends after it are in later rounds. In
 * a round, timers are removed before others are made. Almost all batches have one round.
 */
#include "durable/postgres/store.h"

#include <errno.h>
#include <stdlib.h>

struct place {
	uint32_t op, round;
};

struct batch {
	struct twi_postgres *store;
	struct tw_durable_op *ops;
	size_t count;
	struct place *order; /* sorted by serial; operations on one timer keep their order */
	uint32_t *rounds;    /* the round of each operation */
	uint32_t round_count;
};

static int by_serial(const void *a, const void *b, void *ops_of)
{
	const struct tw_durable_op *ops = ops_of;
	uint32_t left = ((const struct place *)a)->op, right = ((const struct place *)b)->op;
	uint64_t first = ops[left].row.id.serial, second = ops[right].row.id.serial;

	if (first != second)
		return first < second ? -1 : 1;
	return left < right ? -1 : left > right;
}

/*
 * Sets `rounds` of each operation to 1 + the index of the latest earlier operation on the same
 * timer. Leaves 0 if there is none. rounds_set() replaces these numbers by the rounds.
 */
static void chains_note(struct batch *batch)
{
	for (size_t i = 1; i < batch->count; i++) {
		uint32_t before = batch->order[i - 1].op, op = batch->order[i].op;

		if (batch->ops[before].row.id.serial == batch->ops[op].row.id.serial)
			batch->rounds[op] = before + 1;
	}
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void rounds_set(struct batch *batch)
{
	uint32_t freed = 0, keyed = 0; /* latest round of an end; 1 + latest of a PUT with a key */

	chains_note(batch);
	for (size_t i = 0; i < batch->count; i++) {
		const struct tw_durable_op *op = &batch->ops[i];
		uint32_t before = batch->rounds[i];
		uint32_t round = before == 0 ? 0 : batch->rounds[before - 1] + 1;

		if (op->type == TW_DURABLE_OP_PUT && op->row.key_bytes != 0) {
			round = most(round, freed);
			keyed = most(keyed, round + 1);
		} else if (op->type == TW_DURABLE_OP_DELETE || op->type == TW_DURABLE_OP_BURY) {
			round = most(round, keyed);
			freed = most(freed, round);
		}
		batch->rounds[i] = round;
		batch->round_count = most(batch->round_count, round + 1);
	}
}

static bool batch_begin(struct batch *batch)
{
	batch->order = calloc(batch->count, sizeof *batch->order);
	batch->rounds = calloc(batch->count, sizeof *batch->rounds);
	if (batch->order == NULL || batch->rounds == NULL)
		return false;
	for (size_t i = 0; i < batch->count; i++)
		batch->order[i].op = (uint32_t)i;
	qsort_r(batch->order, batch->count, sizeof *batch->order, by_serial, batch->ops);
	rounds_set(batch);
	return true;
}

static void batch_end(struct batch *batch)
{
	free(batch->order);
	free(batch->rounds);
}

/* The values of an operation. Each one is an element of an array of its own. */
enum part {
	PART_END,
	PART_NUMBER,
	PART_PLACE,
	PART_SERIAL,
	PART_DUE,
	PART_ATTEMPT,
	PART_VERSION,
	PART_KIND,
	PART_MINE,
	PART_STARTED,
	PART_KEY,
	PART_PAYLOAD,
	PART_FENCE,
	PART_OWN,
};

enum {
	PARTS_MAX = 12,
	FENCE = -1, /* the number of the row that has the fence, not an outcome */
};

/* The types, in the order in which a round does them. */
static const struct type {
	enum tw_durable_op_type type;
	enum twi_postgres_sql sql;
	enum part parts[PARTS_MAX];
} types[] = {
	{TW_DURABLE_OP_DELETE,
	 TWI_POSTGRES_DELETE,
	 {PART_NUMBER, PART_PLACE, PART_SERIAL, PART_FENCE, PART_OWN}},
	{TW_DURABLE_OP_BURY,
	 TWI_POSTGRES_BURY,
	 {PART_NUMBER, PART_PLACE, PART_SERIAL, PART_ATTEMPT, PART_FENCE}},
	{TW_DURABLE_OP_MOVE,
	 TWI_POSTGRES_MOVE,
	 {PART_NUMBER, PART_PLACE, PART_SERIAL, PART_DUE, PART_ATTEMPT, PART_MINE, PART_FENCE,
	  PART_OWN}},
	{TW_DURABLE_OP_START,
	 TWI_POSTGRES_START,
	 {PART_NUMBER, PART_PLACE, PART_SERIAL, PART_ATTEMPT, PART_FENCE}},
	{TW_DURABLE_OP_PUT,
	 TWI_POSTGRES_PUT,
	 {PART_NUMBER, PART_PLACE, PART_SERIAL, PART_DUE, PART_ATTEMPT, PART_VERSION, PART_KIND,
	  PART_MINE, PART_STARTED, PART_KEY, PART_PAYLOAD}},
	{TW_DURABLE_OP_REVIVE,
	 TWI_POSTGRES_REVIVE,
	 {PART_NUMBER, PART_PLACE, PART_SERIAL, PART_DUE, PART_MINE}},
	{TW_DURABLE_OP_DROP, TWI_POSTGRES_DROP, {PART_NUMBER, PART_PLACE, PART_SERIAL}},
};

static unsigned array_of(enum part part)
{
	switch (part) {
	case PART_NUMBER:
	case PART_KIND:
		return TWI_TYPE_ARRAY_INT4;
	case PART_MINE:
	case PART_STARTED:
	case PART_OWN:
		return TWI_TYPE_ARRAY_BOOL;
	case PART_KEY:
	case PART_PAYLOAD:
		return TWI_TYPE_ARRAY_BYTEA;
	default:
		return TWI_TYPE_ARRAY_INT8;
	}
}

static uint64_t fence_of(const struct twi_postgres *store, const struct tw_durable_op *op)
{
	return op->fence == TW_DURABLE_FENCE_OF_BATCH ? store->link.session : op->fence;
}

static int64_t number_of(const struct twi_postgres *store, const struct tw_durable_op *op,
			 enum part part)
{
	const struct tw_durable_row *row = &op->row;

	switch (part) {
	case PART_PLACE:
		return (int64_t)row->id.place;
	case PART_SERIAL:
		return (int64_t)row->id.serial;
	case PART_DUE:
		return row->due_ns;
	case PART_ATTEMPT:
		return (int64_t)row->attempt;
	case PART_VERSION:
		return row->version;
	default:
		return (int64_t)fence_of(store, op);
	}
}

static bool truth_of(const struct tw_durable_op *op, enum part part)
{
	if (part == PART_MINE)
		return op->row.session != 0;
	return part == PART_STARTED ? op->row.started != 0 : (op->flags & TW_DURABLE_OP_OWN) != 0;
}

static void part_add(const struct batch *batch, uint32_t number, int array, enum part part)
{
	struct twi_postgres *store = batch->store;
	struct twi_values *values = &store->link.values;
	const struct tw_durable_op *op = &batch->ops[number];

	switch (part) {
	case PART_NUMBER:
		twi_array_int4(values, array, (int32_t)number);
		break;
	case PART_KIND:
		twi_array_int4(values, array, store->to_server[op->row.kind]);
		break;
	case PART_KEY:
		twi_array_bytes(values, array, op->row.key, op->row.key_bytes);
		break;
	case PART_PAYLOAD:
		twi_array_bytes(values, array, op->row.payload, op->row.payload_bytes);
		break;
	case PART_MINE:
	case PART_STARTED:
	case PART_OWN:
		twi_array_bool(values, array, truth_of(op, part));
		break;
	default:
		twi_array_int8(values, array, number_of(store, op, part));
		break;
	}
}

static bool in_round(const struct batch *batch, uint32_t op, const struct type *type,
		     uint32_t round)
{
	return batch->ops[op].type == (uint32_t)type->type && batch->rounds[op] == round;
}

/* Sends the operations of one type in one round, if there are any. */
static int type_send(const struct batch *batch, const struct type *type, uint32_t round)
{
	struct twi_postgres *store = batch->store;
	struct twi_values *values = &store->link.values;
	bool any = false;

	twi_values_begin(values);
	twi_values_int8(values, (int64_t)store->link.session);
	for (int i = 0; i < PARTS_MAX && type->parts[i] != PART_END; i++) {
		int array = twi_values_array(values, array_of(type->parts[i]));

		for (size_t j = 0; j < batch->count; j++) {
			if (!in_round(batch, batch->order[j].op, type, round))
				continue;
			part_add(batch, batch->order[j].op, array, type->parts[i]);
			any = true;
		}
		if (!any)
			return 0;
	}
	return twi_link_pipe_send(&store->link, store->texts[type->sql]);
}

static int batch_send(const struct batch *batch)
{
	struct twi_postgres *store = batch->store;
	struct twi_values *values = &store->link.values;
	int error;

	twi_values_begin(values);
	twi_values_int8(values, (int64_t)store->link.session);
	twi_values_int8(values, store->batch + 1);
	error = twi_link_pipe_send(&store->link, store->texts[TWI_POSTGRES_BATCH_BEGIN]);
	for (uint32_t round = 0; round < batch->round_count; round++)
		for (size_t i = 0; i < sizeof types / sizeof types[0] && error == 0; i++)
			error = type_send(batch, &types[i], round);
	return error;
}

/* Sets the fence of all starts of a batch. They have the same one. */
static void fence_note(const struct batch *batch, uint64_t fence)
{
	for (size_t i = 0; i < batch->count; i++)
		if (batch->ops[i].type == TW_DURABLE_OP_START)
			batch->ops[i].row.fence = fence;
}

static void outcome_note(const struct batch *batch, int64_t number, int32_t outcome,
			 struct tw_durable_id id)
{
	struct tw_durable_op *op;

	if (number == FENCE)
		fence_note(batch, id.serial);
	if (number < 0 || (uint64_t)number >= batch->count)
		return;
	op = &batch->ops[number];
	op->outcome = outcome;
	if (op->type == TW_DURABLE_OP_PUT && id.serial != 0)
		op->row.id = id;
}

static void outcomes_take(void *to, const PGresult *result)
{
	const struct batch *batch = to;

	/* The reply to batch_begin() is the server's time. */
	if (PQnfields(result) == 1 && PQntuples(result) == 1)
		twi_link_time(&batch->store->link, twi_value_int8(result, 0, 0));
	for (int i = 0; i < PQntuples(result) && PQnfields(result) == 4; i++)
		outcome_note(batch, twi_value_int4(result, i, 0), twi_value_int4(result, i, 1),
			     (struct tw_durable_id){(uint64_t)twi_value_int8(result, i, 2),
						    (uint64_t)twi_value_int8(result, i, 3)});
}

/* Reads the outcomes that the session's row has kept: number, outcome, place, serial. */
static void outcomes_read(const struct batch *batch, const unsigned char *at, int bytes)
{
	enum { EACH = 24 };

	for (; bytes >= EACH; at += EACH, bytes -= EACH)
		outcome_note(batch, (int32_t)twi_get4(at), (int32_t)twi_get4(at + 4),
			     (struct tw_durable_id){twi_get8(at + 8), twi_get8(at + 16)});
}

/* Sets the usual outcomes, which the replies leave out. */
static void outcomes_begin(const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		batch->ops[i].outcome = TW_DURABLE_DONE;
		if (batch->ops[i].row.session != 0)
			batch->ops[i].row.session = batch->store->link.session;
	}
}

static int batch_do(const struct batch *batch)
{
	struct twi_postgres *store = batch->store;
	int error = twi_link_pipe_begin(&store->link), sent;

	if (error != 0)
		return error == -ECONNRESET ? -EAGAIN : error;
	outcomes_begin(batch);
	sent = batch_send(batch);
	/* The pipeline was not ended, so nothing is committed. */
	if (sent == -ECONNRESET || sent == -ENOMEM)
		return -EAGAIN;
	error = twi_link_pipe_end(&store->link, outcomes_take, (void *)(uintptr_t)batch);
	store->sent = error == -ECONNRESET || (store->sent && error != 0);
	if (error != 0)
		return twi_postgres_refused(store, error);
	store->batch++;
	store->unsettled = false;
	return 0;
}

/* Returns 0 if an earlier copy of the batch is committed, 1 if it must be sent, or an error. */
static int batch_settle(const struct batch *batch)
{
	struct twi_postgres *store = batch->store;
	PGresult *result = NULL;
	bool claim = false;
	int committed = twi_postgres_settle(store, &claim, &result);

	if (committed == 1 && !claim) {
		outcomes_begin(batch);
		outcomes_read(batch, (const unsigned char *)PQgetvalue(result, 0, 1),
			      PQgetlength(result, 0, 1));
	}
	PQclear(result);
	/* This batch was never sent, so it can be tried again in a new session. */
	if (committed == -ESTALE && !store->sent)
		return -EAGAIN;
	if (committed < 0)
		return committed;
	/* The committed batch was a claim, whose reply was lost. Its rows are read later. */
	store->unread = store->unread || (committed == 1 && claim);
	return committed == 0 || claim;
}

static int batch_commit(const struct batch *batch)
{
	struct twi_postgres *store = batch->store;
	int again = store->unsettled ? batch_settle(batch) : 1;

	if (again == 0 || again == -ESTALE)
		store->sent = false;
	if (again != 1)
		return again;
	return store->link.over ? -EAGAIN : batch_do(batch);
}

int twi_postgres_commit(void *to, struct tw_durable_op *ops, size_t count, int64_t now_ns)
{
	struct batch batch = {.store = to, .ops = ops, .count = count};
	int error;

	(void)now_ns;
	if (batch.store->link.statements == NULL || batch.store->link.session == 0)
		return -EAGAIN;
	error = batch_begin(&batch) ? batch_commit(&batch) : -EAGAIN;
	batch_end(&batch);
	return error;
}
