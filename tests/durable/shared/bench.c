/* SPDX-License-Identifier: MIT */
#include "bench.h"

struct bench bench;

void bench_make(void)
{
	memset(&bench, 0, sizeof bench);
	bench_server.make();
}

void bench_end(void)
{
	for (int i = 0; i < BENCH_STORES; i++)
		bench_close(i);
	bench_server.end();
}

int bench_try_open(int number, const char *const *kinds, size_t count)
{
	struct tw_durable_store *store = &bench.stores[number];
	struct tw_durable_opened opened = {.level = 0};

	bench_server.store(0, store);
	return store->ops->open(store->store, kinds, count, &opened);
}

void bench_beat(int number)
{
	struct tw_durable_store *store = &bench.stores[number];
	struct tw_durable_session *session = &bench.sessions[number];

	do
		check_int(store->ops->beat(store->store, session), 0);
	while (session->cut != 0 || session->wall_ns == 0);
}

void bench_open(int number)
{
	static const char *const kinds[] = {"mail", "call"};

	check_int(bench_try_open(number, kinds, 2), 0);
	bench_beat(number);
}

void bench_close(int number)
{
	struct tw_durable_store *store = &bench.stores[number];

	if (store->store != NULL)
		store->ops->close(store->store, 1);
	store->store = NULL;
}

int64_t bench_now(void)
{
	return bench_server.now(true);
}

void bench_pass(int64_t ns)
{
	(void)bench_now();
	bench_server.pass(ns);
}

struct tw_durable_op bench_op(enum tw_durable_op_type type, uint64_t serial, int64_t due_in_ns)
{
	return (struct tw_durable_op){
		.type = (uint32_t)type,
		.row = {.id = {7, serial}, .due_ns = bench_now() + due_in_ns, .version = 3},
	};
}

/* Sends a heartbeat, as the set does before it tries again. */
static void beat_once(int number)
{
	struct tw_durable_store *store = &bench.stores[number];

	check_int(store->ops->beat(store->store, &bench.sessions[number]), 0);
}

int bench_do(int number, struct tw_durable_op *op)
{
	struct tw_durable_store *store = &bench.stores[number];
	int error;

	while ((error = store->ops->commit(store->store, op, 1, 0)) == -EAGAIN)
		beat_once(number);
	return error != 0 ? error : op->outcome;
}

int bench_put(int number, uint64_t serial, int64_t due_in_ns)
{
	struct tw_durable_op op = bench_op(TW_DURABLE_OP_PUT, serial, due_in_ns);

	return bench_do(number, &op);
}

int bench_take(void *to, const struct tw_durable_row *row)
{
	struct bench_row *took = &bench.rows[bench.count++];

	(void)to;
	took->row = *row;
	if (row->key_bytes < sizeof took->key)
		memcpy(took->key, row->key, row->key_bytes);
	if (row->payload_bytes < sizeof took->payload)
		memcpy(took->payload, row->payload, row->payload_bytes);
	return bench.answer;
}

int bench_claim_most(int number, size_t most)
{
	struct tw_durable_store *store = &bench.stores[number];
	int count;

	bench.count = 0;
	while ((count = store->ops->claim(store->store, most, bench_take, NULL)) == -EAGAIN)
		beat_once(number);
	return count;
}

int bench_claim(int number)
{
	return bench_claim_most(number, BENCH_ROWS);
}

int bench_find(int number, uint64_t serial)
{
	struct tw_durable_store *store = &bench.stores[number];

	bench.count = 0;
	bench.answer = 0;
	return store->ops->find(store->store, (struct tw_durable_id){7, serial}, bench_take, NULL);
}

/* Puts a timer that store `number` has claimed. */
void bench_put_claimed(int number, uint64_t serial, int64_t due_in_ns)
{
	struct tw_durable_op op = bench_op(TW_DURABLE_OP_PUT, serial, due_in_ns);

	op.row.session = 1;
	check_int(bench_do(number, &op), TW_DURABLE_DONE);
	check_true(op.row.session == bench.sessions[number].number);
}

int bench_start(int number, uint64_t serial, uint64_t attempt)
{
	struct tw_durable_op op = bench_op(TW_DURABLE_OP_START, serial, 0);

	op.row.attempt = attempt;
	op.fence = bench.sessions[number].number;
	return bench_do(number, &op);
}

/* Ends a run, under the session of store `number`. */
int bench_end_run(int number, enum tw_durable_op_type type, uint64_t serial)
{
	struct tw_durable_op op = bench_op(type, serial, 100 * SECOND);

	op.row.attempt = 1;
	op.flags = TW_DURABLE_OP_OWN;
	op.fence = bench.sessions[number].number;
	return bench_do(number, &op);
}

int bench_cancel(int number, uint64_t serial)
{
	struct tw_durable_op op = bench_op(TW_DURABLE_OP_DELETE, serial, 0);

	return bench_do(number, &op);
}

/* Ends the session of store `number`: the store sends no heartbeat. */
void bench_session_ends(int number)
{
	void *store = bench.stores[number].store;

	bench_server.beats(store, false);
	bench_pass(11 * SECOND);
	bench_server.beats(store, true);
}
