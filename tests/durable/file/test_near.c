/* SPDX-License-Identifier: MIT */
/*
 * Two walks load timers in the order of their deadlines, one slice at a time, while timers are put,
 * moved and ended. The test compares each slice with the rows that a model has after the walk's
 * last row. The walks ask for different kinds. The buckets have more timers than a plan (plan.h)
 * can keep.
 *
 * Seen to fail with these defects:
 * - a new or moved timer is not added to the plan;
 * - a timer that moved away and came back is returned twice;
 * - a timer is returned at its old deadline;
 * - rows that were in the plan of a walk are lost when the walk is ended early;
 * - a plan that has dropped its later half, because it was full, counts as whole;
 * - a walk uses the other walk's plan, which begins after the walk's position;
 * - a slice ends early because timers of its plan have ended.
 */
#include "check.h"
#include "random.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_file.h>
#include <unistd.h>

enum {
	TIMERS = 600,
	BUCKETS = 3,
	ROUNDS = 4000,
	BATCH = 12,
	SLICE = 50,
	WALKS = 2,
	KINDS = 3, /* the file's kinds; the walks know the first KNOWN of them */
	KNOWN = 2,
	PAYLOAD = 100,
	STOP = -EXFULL,
};

#define SECOND INT64_C(1000000000)
#define BEGIN_NS (INT64_C(27600000) * 64 * SECOND)
#define SPAN_NS (INT64_C(64) * SECOND * BUCKETS)

struct timer {
	struct tw_durable_id id;
	int64_t due_ns, due_before_ns;
	uint32_t kind;
	bool pending;
};

/* The position of a walk, and the rows of its last slice. */
struct walk {
	unsigned char kinds[KNOWN];
	bool begun;
	struct tw_durable_row last;
	struct tw_durable_row given[SLICE];
	size_t count, stop_at;
};

static const char *const names[KINDS] = {"mail", "call", "forgotten"};
static char directory[64], path[80];
static struct tw_durable_store store;
static struct timer timers[TIMERS];
static struct walk walks[WALKS];
static struct random randomness;
static uint64_t serial;
static unsigned char payload[PAYLOAD];

static void store_open(size_t kinds)
{
	struct tw_durable_opened opened;

	check_int(tw_durable_store_file(path, &store), 0);
	check_int(store.ops->open(store.store, names, kinds, &opened), 0);
}

static void setup(void)
{
	/*
	 * Uses a file system in memory if possible, because this test commits often and does not
	 * test durability.
	 */
	snprintf(directory, sizeof directory, "%s/tickwheel-durable-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof path, "%s/timers", directory);
	for (int i = 0; i < PAYLOAD; i++)
		payload[i] = (unsigned char)i;
	walks[0].kinds[0] = walks[0].kinds[1] = 1;
	walks[1].kinds[1] = 1;
	store_open(KINDS);
}

static void teardown(void)
{
	char command[128];

	store.ops->close(store.store, 1);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	check_int(system(command), 0);
}

static uint64_t below(uint64_t limit)
{
	return random_below(&randomness, limit);
}

/* Returns a deadline. Deadlines are multiples of half a second, so some are equal. */
static int64_t due_random(void)
{
	return BEGIN_NS + (int64_t)below((uint64_t)(SPAN_NS / SECOND) * 2) * (SECOND / 2);
}

/*
 * Returns the length of a timer's payload. Some are too long for the store to copy while it reads
 * the slice.
 */
static uint32_t payload_of(struct tw_durable_id id)
{
	return (uint32_t)(id.serial * 7 % PAYLOAD);
}

static struct tw_durable_op put(struct timer *timer, uint32_t kind)
{
	int64_t due_ns = due_random();

	timer->id = (struct tw_durable_id){(uint64_t)(due_ns / (64 * SECOND)), serial++};
	timer->due_ns = timer->due_before_ns = due_ns;
	timer->kind = kind;
	timer->pending = true;
	return (struct tw_durable_op){
		.type = TW_DURABLE_OP_PUT,
		.row = {.id = timer->id,
			.due_ns = due_ns,
			.kind = kind,
			.payload = payload,
			.payload_bytes = payload_of(timer->id)},
	};
}

static struct tw_durable_op move(struct timer *timer)
{
	int64_t due_ns = below(2) == 0 ? timer->due_before_ns : due_random();

	timer->due_before_ns = timer->due_ns;
	timer->due_ns = due_ns;
	return (struct tw_durable_op){
		.type = TW_DURABLE_OP_MOVE,
		.row = {.id = timer->id, .due_ns = due_ns},
	};
}

static struct tw_durable_op end(struct timer *timer)
{
	timer->pending = false;
	return (struct tw_durable_op){.type = TW_DURABLE_OP_DELETE, .row = {.id = timer->id}};
}

static void commit(struct tw_durable_op *ops, size_t count)
{
	check_int(store.ops->commit(store.store, ops, count, BEGIN_NS), 0);
	for (size_t i = 0; i < count; i++)
		check_int(ops[i].outcome, TW_DURABLE_DONE);
	check_int(store.ops->upkeep(store.store), 0);
}

static void change(void)
{
	struct tw_durable_op ops[BATCH];
	size_t count = 1 + below(BATCH - 1);

	for (size_t i = 0; i < count; i++) {
		struct timer *timer = &timers[below(TIMERS)];

		if (!timer->pending)
			ops[i] = put(timer, (uint32_t)below(KNOWN));
		else
			ops[i] = below(4) == 0 ? end(timer) : move(timer);
	}
	commit(ops, count);
}

/* Puts timers of a kind that no walk wants, and that the next open does not know. */
static void forgotten_put(void)
{
	static struct timer forgotten;

	for (int i = 0; i < 100; i++) {
		struct tw_durable_op op = put(&forgotten, KINDS - 1);

		commit(&op, 1);
	}
}

static int row_note(void *to, const struct tw_durable_row *row)
{
	struct walk *walk = to;

	cr_assert(walk->count < SLICE);
	check_int(row->payload_bytes, payload_of(row->id));
	cr_assert(row->payload_bytes == 0 ||
		  memcmp(row->payload, payload, row->payload_bytes) == 0);
	walk->given[walk->count++] = *row;
	return walk->count == walk->stop_at ? STOP : 0;
}

static bool before(const struct tw_durable_row *row, const struct tw_durable_row *other)
{
	if (row->due_ns != other->due_ns)
		return row->due_ns < other->due_ns;
	if (row->id.place != other->id.place)
		return row->id.place < other->id.place;
	return row->id.serial < other->id.serial;
}

/*
 * Sets *last to the row that follows it in the model, or to the first row if not `begun`. Returns
 * false if there is none up to `until_ns`.
 */
static bool model_next(const struct walk *walk, int64_t until_ns, struct tw_durable_row *last,
		       bool begun)
{
	bool any = false;
	struct tw_durable_row best = {.due_ns = 0};

	for (int i = 0; i < TIMERS; i++) {
		const struct timer *timer = &timers[i];
		struct tw_durable_row row = {
			.id = timer->id, .due_ns = timer->due_ns, .kind = timer->kind};

		if (!timer->pending || walk->kinds[timer->kind] == 0 || row.due_ns > until_ns ||
		    (begun && !before(last, &row)) || (any && !before(&row, &best)))
			continue;
		best = row;
		any = true;
	}
	*last = best;
	return any;
}

static void slice_check(const struct walk *walk, size_t most, int64_t until_ns)
{
	struct tw_durable_row next = walk->last;
	bool begun = walk->begun;

	for (size_t i = 0; i < walk->count; i++) {
		cr_assert(model_next(walk, until_ns, &next, begun), "too many");
		begun = true;
		check_int(walk->given[i].id.serial, next.id.serial);
		check_int(walk->given[i].due_ns, next.due_ns);
		check_int(walk->given[i].kind, next.kind);
	}
	if (walk->count < most && walk->count != walk->stop_at)
		cr_assert(!model_next(walk, until_ns, &next, begun), "too few");
}

static void slice(struct walk *walk)
{
	size_t most = 1 + below(SLICE);
	int64_t until_ns = (walk->begun ? walk->last.due_ns : BEGIN_NS) +
			   (int64_t)below(below(2) == 0 ? 4 : 100) * SECOND;
	const struct tw_durable_row *after = walk->begun ? &walk->last : NULL;
	int result;

	walk->count = 0;
	walk->stop_at = below(3) == 0 ? 1 + below(SLICE) : 0;
	result = walk == &walks[0]
			 ? store.ops->near(store.store, after, until_ns, most, row_note, walk)
			 : store.ops->near_kinds(store.store, walk->kinds, after, until_ns, most,
						 row_note, walk);
	check_int(result, walk->count != 0 && walk->count == walk->stop_at ? STOP : 0);
	slice_check(walk, most, until_ns);
	if (walk->count > 0) {
		walk->last = walk->given[walk->count - 1];
		walk->begun = true;
	}
}

static void step(void)
{
	struct walk *walk = &walks[below(WALKS)];

	if (below(3) == 0)
		change();
	if (below(40) == 0)
		walk->begun = false;
	slice(walk);
}

static void walk_all(uint64_t seed)
{
	randomness.state = seed;
	check_int(store.ops->reserve(store.store, 1000000, &serial), 0);
	forgotten_put();
	store.ops->close(store.store, 1);
	store_open(KNOWN);
	for (int i = 0; i < TIMERS / 3; i++)
		change();
	for (int i = 0; i < ROUNDS; i++)
		step();
}

Test(near, slices_follow_each_other_while_timers_change, .init = setup, .fini = teardown)
{
	walk_all(1);
}

Test(near, slices_follow_each_other_other_seed, .init = setup, .fini = teardown)
{
	walk_all(2);
}
