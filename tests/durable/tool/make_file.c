/* SPDX-License-Identifier: MIT */
/*
 * usage: make_file PATH
 *
 * Creates a file with timers of each state, for test_tool.py, which has the same constants. Keeps
 * the file open until its input ends, then closes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_file.h>

enum {
	TIMERS = 300,
	/* every tenth timer has a key; it has not ended, and is in none of the groups below */
	KEYED = 10,
	MOVED = 7,   /* every seventh has moved to a later bucket */
	ENDED = 11,  /* every eleventh has ended */
	BURIED = 13, /* every thirteenth is a dead letter */
	RUNS = 17,   /* every seventeenth has started */
	BYTES = 20,  /* the key of this timer is not text */
	/*
	 * This many more timers are put by one commit, so they do not go to the inbox. They are due
	 * within a minute of the first deadline. Every third has ended: its end is stored, and its
	 * row is still there.
	 */
	BULK = 600,
	THIRD = 3,
};

#define SECOND INT64_C(1000000000)
#define BEGIN_NS (INT64_C(27600000) * 64 * SECOND)

static struct tw_durable_store store;
static uint64_t serial;

static void fail(const char *what, int error)
{
	fprintf(stderr, "make_file: %s: %s\n", what, strerror(-error));
	exit(1);
}

static void commit_all(struct tw_durable_op *ops, size_t count)
{
	int error = store.ops->commit(store.store, ops, count, BEGIN_NS);

	for (size_t i = 0; i < count && error == 0; i++)
		if (ops[i].outcome != TW_DURABLE_DONE)
			error = -EPROTO;
	if (error == 0)
		error = store.ops->upkeep(store.store);
	if (error != 0)
		fail("commit", error);
}

static void commit(const struct tw_durable_op *op)
{
	struct tw_durable_op one = *op;

	commit_all(&one, 1);
}

static void bulk_put(void)
{
	static struct tw_durable_op ops[BULK];

	for (uint64_t i = 0; i < BULK; i++) {
		int64_t due_ns = BEGIN_NS + (int64_t)i * (SECOND / 10);

		ops[i] = (struct tw_durable_op){
			.type = TW_DURABLE_OP_PUT,
			.row = {.id = {(uint64_t)(due_ns / (64 * SECOND)), serial + TIMERS + i},
				.due_ns = due_ns},
		};
	}
	commit_all(ops, BULK);
	for (uint64_t i = 0; i < BULK; i += THIRD) {
		struct tw_durable_op op = {.type = TW_DURABLE_OP_DELETE, .row = ops[i].row};

		commit(&op);
	}
}

/* Returns the deadline of timer i, which is due 100 s after timer i - 1. */
static int64_t due_of(int i)
{
	return BEGIN_NS + i * 100 * SECOND;
}

static struct tw_durable_id id_of(int i)
{
	return (struct tw_durable_id){(uint64_t)(due_of(i) / (64 * SECOND)), serial + (uint64_t)i};
}

static void put(int i)
{
	static const char bytes[] = "\1\2\"\\\377";
	char key[16], payload[16];
	struct tw_durable_op op = {
		.type = TW_DURABLE_OP_PUT,
		.row = {.id = id_of(i), .due_ns = due_of(i), .kind = (uint32_t)i % 2, .version = 3},
	};

	op.row.payload_bytes = (uint32_t)snprintf(payload, sizeof payload, "order \"%d\"", i);
	op.row.payload = payload;
	if (i == 1) {
		op.row.payload = bytes;
		op.row.payload_bytes = sizeof bytes - 1;
	}
	if (i % KEYED == 0) {
		op.row.key_bytes = (uint32_t)snprintf(key, sizeof key, "k%d", i);
		op.row.key = i == BYTES ? bytes : key;
	}
	commit(&op);
}

static void change(int i)
{
	struct tw_durable_op op = {.row = {.id = id_of(i), .due_ns = due_of(i) + 1000 * SECOND}};

	if (i % KEYED == 0)
		return;
	if (i % ENDED == 0)
		op.type = TW_DURABLE_OP_DELETE;
	else if (i % BURIED == 0)
		op.type = TW_DURABLE_OP_BURY;
	else if (i % MOVED == 0)
		op.type = TW_DURABLE_OP_MOVE;
	else if (i % RUNS == 0)
		op.type = TW_DURABLE_OP_START;
	else
		return;
	op.row.attempt = 2;
	commit(&op);
}

int main(int count, char **texts)
{
	static const char *const kinds[] = {"mail", "call"};
	static const struct tw_durable_clock clock = {"a \"boot\"", -5, 7};
	struct tw_durable_opened opened;
	int error;

	if (count != 2)
		return 2;
	error = tw_durable_store_file(texts[1], &store);
	if (error == 0)
		error = store.ops->open(store.store, kinds, 2, &opened);
	if (error == 0)
		error = store.ops->reserve(store.store, TIMERS + BULK, &serial);
	if (error == 0)
		error = store.ops->clock_set(store.store, &clock);
	if (error != 0)
		fail(texts[1], error);
	for (int i = 0; i < TIMERS; i++)
		put(i);
	for (int i = 0; i < TIMERS; i++)
		change(i);
	bulk_put();
	printf("made %llu\n", (unsigned long long)serial);
	fflush(stdout);
	while (getchar() != EOF)
		;
	store.ops->close(store.store, 1);
	return 0;
}
