/* SPDX-License-Identifier: MIT */
/*
 * Decodes bytes to operations. Every string of bytes is a sequence, and a small change of the bytes
 * is a small change of the sequence. So seeds, libFuzzer and AFL++ share this one decoder. If a
 * choice should be frequent, its table lists it several times.
 */
#include "op.h"

#include "random.h"
#include "variant.h"

#include <string.h>

struct bytes {
	const uint8_t *at;
	size_t left;
};

/* Takes the next byte. Returns 0 after the end of the bytes. */
static uint8_t byte_take(struct bytes *bytes)
{
	if (bytes->left == 0)
		return 0;
	bytes->left--;
	return *bytes->at++;
}

static int64_t choose(struct bytes *bytes, const int64_t *choices, size_t count)
{
	return choices[byte_take(bytes) % count];
}

#define CHOOSE(bytes, ...)                                                                         \
	choose(bytes, (const int64_t[]){__VA_ARGS__},                                              \
	       sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Takes a byte. Returns true for one in `rate` of its values. */
static bool seldom(struct bytes *bytes, unsigned rate)
{
	return byte_take(bytes) % rate == rate - 1;
}

/* Sets one value that create must reject. */
static void create_spoil(struct bytes *bytes, struct op *op)
{
	switch (byte_take(bytes) % 4) {
	case 0:
		op->value[CREATE_TICK] = CHOOSE(bytes, 0, 999, INT64_C(3600000000001));
		break;
	case 1:
		op->value[CREATE_SLOTS] = CHOOSE(bytes, 0, (1 << 24) + 1);
		break;
	case 2:
		op->value[CREATE_BATCH] = CHOOSE(bytes, 0, 100001);
		break;
	default:
		op->value[CREATE_TICK] = INT64_C(3600000000000);
		op->value[CREATE_SLOTS] = 1 << 24;
		break;
	}
}

static void create_decode(struct bytes *bytes, struct op *op)
{
	uint8_t brackets;

	op->code = OP_CREATE;
	op->value[CREATE_WHEEL] = byte_take(bytes) % variant_count;
	op->value[CREATE_TICK] = CHOOSE(bytes, 1000, 1000, 1001, 1024, 3333, 7777, 1000000, 1000000,
					1000000, 10000000, 100000000, INT64_C(1000000000),
					INT64_C(60000000000), INT64_C(3600000000000));
	op->value[CREATE_SLOTS] =
		CHOOSE(bytes, 1, 2, 3, 4, 7, 8, 8, 16, 16, 32, 64, 64, 100, 256, 512, 4096);
	op->value[CREATE_BATCH] = CHOOSE(bytes, 100000, 100000, 100000, 1, 2, 7, 64);
	op->value[CREATE_LIMIT] = CHOOSE(bytes, 0, 0, 0, 0, 0, 0, 1, 2, 3, 10, 70);
	op->value[CREATE_START] = CHOOSE(bytes, 0, 0, 0, 0, 1, 999, 123456789, INT64_C(1) << 62,
					 INT64_MAX - INT64_C(10000000000));
	op->value[CREATE_CHECK] = CHOOSE(bytes, 2, 2, 2, 1);
	op->value[CREATE_DISPATCH] = CHOOSE(bytes, 0, 0, 0, 0, 0, 1, 2, 4, 1000);
	op->value[CREATE_POOR] = seldom(bytes, 8);
	brackets = byte_take(bytes);
	op->value[CREATE_OWNED] = brackets % 2;
	op->value[CREATE_OUTSIDE] = brackets / 2 % 2;
	if (seldom(bytes, 16))
		create_spoil(bytes, op);
}

/* Decodes a distance: near, about a revolution, or of any size below 2^bits ticks. The values
 * are in the order turns (revolutions), ticks, ns. */
static void distance_decode(struct bytes *bytes, int bits, int64_t *ret_value)
{
	uint8_t choice = byte_take(bytes);

	if (choice < 144) {
		ret_value[1] = choice % 16;
	} else if (choice < 192) {
		ret_value[0] = choice % 6;
		ret_value[1] = CHOOSE(bytes, 0, -1, 1, 2, -2, 5);
	} else if (choice < 240) {
		ret_value[1] = INT64_C(1) << byte_take(bytes) % bits;
		ret_value[1] += choice % 3 - 1;
	} else {
		/* Makes due ticks that often share their low 32 bits. Slot entries hold only
		 * those. */
		ret_value[1] = ((int64_t)(choice % 4) << 32) + byte_take(bytes) % 16;
	}
	ret_value[2] = CHOOSE(bytes, 0, 0, 0, -1, 1, 1, -1, 500, 777);
}

static void act_decode(struct bytes *bytes, int64_t *ret_value)
{
	uint8_t choice = byte_take(bytes);

	if (choice < 150)
		return;
	ret_value[0] = choice % ACTS;
	ret_value[1] = byte_take(bytes);
}

/* Decodes from one byte whether another thread makes the calls, and whether all items share one
 * call. A second byte would change the meaning of the bytes after it, in sequences that exist. */
static void way_decode(struct bytes *bytes, int64_t *ret_aside, int64_t *ret_many)
{
	uint8_t choice = byte_take(bytes);

	*ret_aside = choice % 24 == 23;
	*ret_many = choice / 24 % 3 == 1;
}

static void schedule_decode(struct bytes *bytes, struct op *op)
{
	op->value[SCHEDULE_BASE] =
		CHOOSE(bytes, BASE_NOW, BASE_NOW, BASE_NOW, BASE_NOW, BASE_NOW, BASE_NOW, BASE_GRID,
		       BASE_GRID, BASE_GRID, BASE_GRID, BASE_GRID, BASE_SAME, BASE_SAME, BASE_SAME,
		       BASE_START, BASE_START, BASE_ZERO, BASE_NEVER, BASE_REJECTED);
	distance_decode(bytes, 63, &op->value[SCHEDULE_TURNS]);
	if (seldom(bytes, 8)) {
		op->value[SCHEDULE_TURNS] *= -1;
		op->value[SCHEDULE_TICKS] *= -1;
	}
	op->value[SCHEDULE_COUNT] =
		CHOOSE(bytes, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 5, 10, 20, 61, 62, 130, BURST_MAX);
	op->value[SCHEDULE_STRIDE] = CHOOSE(bytes, 0, 0, 0, 1, 1, 2, 3, -1);
	op->value[SCHEDULE_FINAL] = byte_take(bytes) % 2;
	op->value[SCHEDULE_HOLD] = seldom(bytes, 12);
	way_decode(bytes, &op->value[SCHEDULE_ASIDE], &op->value[SCHEDULE_MANY]);
	act_decode(bytes, &op->value[SCHEDULE_ACT]);
	if (op->value[SCHEDULE_ACT] != ACT_NOTHING)
		act_decode(bytes, &op->value[SCHEDULE_THEN]);
}

static void cancel_decode(struct bytes *bytes, struct op *op)
{
	op->value[CANCEL_WHICH] = byte_take(bytes);
	op->value[CANCEL_COUNT] = CHOOSE(bytes, 1, 1, 1, 1, 2, 5, 30, 61, 100, BURST_MAX);
	op->value[CANCEL_STEP] = CHOOSE(bytes, 1, 1, 2, 3);
	op->value[CANCEL_WAIT] = seldom(bytes, 4);
	way_decode(bytes, &op->value[CANCEL_ASIDE], &op->value[CANCEL_MANY]);
}

static void reschedule_decode(struct bytes *bytes, struct op *op)
{
	op->value[RESCHEDULE_BASE] = CHOOSE(bytes, BASE_NOW, BASE_NOW, BASE_NOW, BASE_NOW,
					    BASE_GRID, BASE_GRID, BASE_GRID, BASE_SAME, BASE_SAME,
					    BASE_START, BASE_ZERO, BASE_NEVER, BASE_REJECTED);
	distance_decode(bytes, 63, &op->value[RESCHEDULE_TURNS]);
	if (seldom(bytes, 8))
		op->value[RESCHEDULE_TICKS] *= -1;
	op->value[RESCHEDULE_WHICH] = byte_take(bytes);
	op->value[RESCHEDULE_COUNT] = CHOOSE(bytes, 1, 1, 1, 1, 1, 2, 5, 61, 100);
	op->value[RESCHEDULE_STEP] = CHOOSE(bytes, 1, 1, 2, 3);
	op->value[RESCHEDULE_ASIDE] = seldom(bytes, 24);
}

static void clock_decode(struct bytes *bytes, struct op *op)
{
	op->value[CLOCK_BASE] = CHOOSE(bytes, BASE_NOW, BASE_GRID, BASE_GRID);
	/*
	 * Very long steps are rare, because they soon bring the clock to the end of time, where no
	 * timeout becomes due.
	 */
	distance_decode(bytes, seldom(bytes, 8) ? 49 : 20, &op->value[CLOCK_TURNS]);
	op->value[CLOCK_FLUSH] = !seldom(bytes, 3);
}

static void op_decode(struct bytes *bytes, struct op *op)
{
	op->code = (enum op_code)CHOOSE(
		bytes, OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE,
		OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE, OP_SCHEDULE,
		OP_CANCEL, OP_CANCEL, OP_CANCEL, OP_CANCEL, OP_CANCEL, OP_CLOCK, OP_CLOCK, OP_CLOCK,
		OP_CLOCK, OP_CLOCK, OP_CLOCK, OP_CLOCK, OP_FLUSH, OP_FLUSH, OP_RELEASE, OP_RELEASE,
		OP_DUE, OP_DUE, OP_MEMORY, OP_MISUSE, OP_START, OP_STOP, OP_DESTROY, OP_SCHEDULE,
		OP_CLOCK, OP_RESCHEDULE, OP_RESCHEDULE, OP_RESCHEDULE, OP_RESCHEDULE, OP_RESCHEDULE,
		OP_RESCHEDULE);
	switch (op->code) {
	case OP_SCHEDULE:
		schedule_decode(bytes, op);
		break;
	case OP_CANCEL:
		cancel_decode(bytes, op);
		break;
	case OP_CLOCK:
		clock_decode(bytes, op);
		break;
	case OP_RESCHEDULE:
		reschedule_decode(bytes, op);
		break;
	case OP_STOP:
		op->value[STOP_HOOK] = !seldom(bytes, 4);
		break;
	case OP_DUE:
		op->value[DUE_RUNS] = CHOOSE(bytes, 1, 2, 10, 1000);
		op->value[DUE_ACCEPT] = CHOOSE(bytes, 0, 1, 3, 1000);
		break;
	case OP_MEMORY:
		op->value[MEMORY_THERE] = byte_take(bytes) % 4 != 0;
		break;
	default:
		break;
	}
}

static struct op *op_add(struct sequence *sequence)
{
	struct op *op = &sequence->op[sequence->count++];

	memset(op, 0, sizeof(*op));
	return op;
}

/* Adds a destroy, usually after a stop, and then the creation of another engine. */
static void rebirth_decode(struct bytes *bytes, struct sequence *sequence)
{
	if (!seldom(bytes, 4)) {
		sequence->op[sequence->count - 1] = (struct op){.code = OP_STOP, .value = {1}};
		op_add(sequence)->code = OP_DESTROY;
	}
	create_decode(bytes, op_add(sequence));
}

void sequence_decode(struct sequence *ret_sequence, const uint8_t *bytes, size_t count)
{
	struct bytes rest = {.at = bytes, .left = count};
	struct op *op;

	ret_sequence->count = 0;
	create_decode(&rest, op_add(ret_sequence));
	while (rest.left > 0 && ret_sequence->count < SEQUENCE_OPS_MAX - 2) {
		op = op_add(ret_sequence);
		op_decode(&rest, op);
		if (op->code == OP_DESTROY)
			rebirth_decode(&rest, ret_sequence);
	}
}

size_t seed_bytes(uint64_t seed, uint8_t *ret_bytes)
{
	struct random random = {.state = seed};
	size_t count = 20 + random_below(&random, SEED_BYTES_MAX - 20);

	for (size_t i = 0; i < count; i++)
		ret_bytes[i] = (uint8_t)random_next(&random);
	return count;
}
