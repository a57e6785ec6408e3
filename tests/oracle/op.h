/* SPDX-License-Identifier: MIT */
/*
 * Operations, the elements of a sequence. decode.c makes them from bytes. text.c reads them from
 * text and prints them. play.c makes them on the engine and on the model.
 *
 * Times are distances in revolutions, ticks and nanoseconds from a base, which is known only when
 * the operation is made. A timeout is named by its distance from the newest. So a sequence still
 * makes sense if some of its operations are removed.
 */
#ifndef ORACLE_OP_H
#define ORACLE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { OP_VALUES_MAX = 14, SEQUENCE_OPS_MAX = 200, BURST_MAX = 300 };

enum op_code {
	OP_CREATE,
	OP_DESTROY,
	OP_START,
	OP_STOP,
	OP_SCHEDULE,
	OP_CANCEL,
	OP_CLOCK,
	OP_FLUSH,
	OP_RELEASE,
	OP_DUE,
	OP_MEMORY,
	OP_MISUSE,
	OP_RESCHEDULE,
	OP_CODES
};

/* The index of each value of an operation. */
enum {
	CREATE_WHEEL,
	CREATE_TICK,
	CREATE_SLOTS,
	CREATE_BATCH,
	CREATE_LIMIT,
	CREATE_START,
	CREATE_CHECK,
	CREATE_DISPATCH, /* 0: no hook, otherwise 1 + the most that it accepts of a batch */
	CREATE_POOR,     /* from here on there is no memory for slot entries */
	CREATE_OWNED,    /* the loop's timeouts are owner-only */
	CREATE_OUTSIDE,  /* between polls the player is in no bracket of its loop, unless owned */
};

enum { STOP_HOOK };

enum {
	SCHEDULE_BASE,
	SCHEDULE_TURNS,
	SCHEDULE_TICKS,
	SCHEDULE_NS,
	SCHEDULE_COUNT,
	SCHEDULE_STRIDE, /* ticks between two of the `count` timeouts; -1: a revolution */
	SCHEDULE_FINAL,  /* with a finaliser */
	SCHEDULE_HOLD,   /* its callback holds the worker until the player releases it */
	SCHEDULE_ASIDE,  /* another thread makes the call */
	SCHEDULE_ACT,
	SCHEDULE_ARGUMENT,
	SCHEDULE_THEN,  /* what its callback does after SCHEDULE_ACT: enum act */
	SCHEDULE_AGAIN, /* the argument of SCHEDULE_THEN */
	SCHEDULE_MANY,  /* one call for all `count` timeouts */
};

enum { CANCEL_WHICH, CANCEL_COUNT, CANCEL_STEP, CANCEL_WAIT, CANCEL_ASIDE, CANCEL_MANY };
enum {
	RESCHEDULE_BASE,
	RESCHEDULE_TURNS,
	RESCHEDULE_TICKS,
	RESCHEDULE_NS,
	RESCHEDULE_WHICH,
	RESCHEDULE_COUNT,
	RESCHEDULE_STEP,
	RESCHEDULE_ASIDE,
};
enum { CLOCK_BASE, CLOCK_TURNS, CLOCK_TICKS, CLOCK_NS, CLOCK_FLUSH };
enum { DUE_RUNS, DUE_ACCEPT };
enum { MEMORY_THERE };

/* The base that times count from. */
enum base {
	BASE_NOW,   /* a delay */
	BASE_GRID,  /* absolute, from the last tick boundary */
	BASE_SAME,  /* absolute, from the newest timeout's deadline */
	BASE_START, /* absolute, from the engine's creation */
	BASE_ZERO,  /* absolute, as it is */
	BASE_NEVER,
	BASE_REJECTED, /* INT64_MIN */
	BASES
};

/* What a callback does, in addition to its report that it runs. */
enum act {
	ACT_NOTHING,
	ACT_REARM, /* schedules another timeout with the same acts, for some generations */
	ACT_LATE,  /* schedules a timeout with a deadline in the past */
	ACT_PEER,  /* cancels another timeout */
	ACT_PEERS, /* cancels many timeouts */
	ACT_SELF,  /* cancels its own timeout, and waits for itself */
	ACT_CLOCK, /* moves the clock */
	ACT_CALLS, /* makes calls that must be rejected in a callback */
	ACT_MOVE,  /* reschedules another timeout */
	ACTS
};

struct op {
	enum op_code code;
	int64_t value[OP_VALUES_MAX];
};

struct sequence {
	int count;
	struct op op[SEQUENCE_OPS_MAX];
};

/* decode.c: makes a sequence from bytes. Any bytes make one. */
void sequence_decode(struct sequence *ret_sequence, const uint8_t *bytes, size_t count);
/* decode.c: makes the bytes of a seed. Returns how many. */
enum { SEED_BYTES_MAX = 600 };
size_t seed_bytes(uint64_t seed, uint8_t *ret_bytes);

/*
 * text.c: print and read a sequence as text, one operation in a line; `#` begins a comment. Read
 * returns the number of the first wrong line, or 0.
 */
void sequence_print(const struct sequence *sequence, FILE *file);
void op_print(const struct op *op, FILE *file);
int sequence_read(struct sequence *ret_sequence, FILE *file);
int op_value_count(enum op_code code);

#endif
