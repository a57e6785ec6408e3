/* SPDX-License-Identifier: MIT */
/*
 * The cache lines of fields that threads share. The tables list each field that more than one
 * thread uses, with the name of its cache line. Fields with the same line name must be in one line,
 * and fields with different names must not share a line. Otherwise two threads that write different
 * fields would slow each other down, or a thread would need a second line for fields that it uses
 * together.
 *
 * Seen to fail with these defects: `slots_taken` has no alignment; `known` is after the worker's
 * fields of a lane; a new field pushes `wake_before_ns` out of the first line.
 */
#include "check.h"

#include "engine/engine.h"

#include <stddef.h>
#include <string.h>

struct field {
	const char *name;
	/* The name of the cache line: the thread that writes it, or its purpose. */
	const char *line;
	size_t begin;
	size_t end;
};

#define FIELD(type, field, line)                                                                   \
	{                                                                                          \
#field, line, offsetof(type, field),                                               \
			offsetof(type, field) + sizeof(((type *)NULL)->field)                      \
	}

static const struct field worker_field[] = {
	/* Every call reads these fields, which are rarely written. */
	FIELD(struct twi_worker, state, "every call reads"),
	FIELD(struct twi_worker, fork_epoch, "every call reads"),
	FIELD(struct twi_worker, sweeping, "every call reads"),
	FIELD(struct twi_worker, loop, "every call reads"),
	FIELD(struct twi_worker, clock, "every call reads"),
	FIELD(struct twi_worker, owner, "every call reads"),
	FIELD(struct twi_worker, pending_limit, "every call reads"),
	FIELD(struct twi_worker, wake_before_ns, "every call reads"),
	/* All producers write this field if the engine has a limit. */
	FIELD(struct twi_worker, slots_taken, "limit"),
	/* Any thread writes these. */
	FIELD(struct twi_worker, park, "reasons to wake up"),
	FIELD(struct twi_worker, flush_wanted, "reasons to wake up"),
	FIELD(struct twi_worker, units_pending, "reasons to wake up"),
	FIELD(struct twi_worker, flush_done, "reasons to wake up"),
	FIELD(struct twi_worker, flush_epoch, "reasons to wake up"),
	FIELD(struct twi_worker, in_flight, "reasons to wake up"),
	FIELD(struct twi_worker, early_reported, "reasons to wake up"),
	FIELD(struct twi_worker, cancelled_sum, "reasons to wake up"),
	/*
	 * The worker's own fields begin here. All later fields are in this line or in later ones.
	 */
	FIELD(struct twi_worker, wheel, "worker"),
};

static const struct field lane_field[] = {
	FIELD(struct twi_lane, ring, "producer"),
	FIELD(struct twi_lane, scheduled_count, "producer"),
	FIELD(struct twi_lane, cancelled_count, "producer"),
	FIELD(struct twi_lane, ended_count, "producer"),
	FIELD(struct twi_lane, rescheduled_count, "producer"),
	FIELD(struct twi_lane, number, "producer"),
	FIELD(struct twi_lane, known, "producer"),
	FIELD(struct twi_lane, unfenced, "producer"),
	FIELD(struct twi_lane, joined, "producer"),
	/* Used if there is no ring, or if the ring is full. */
	FIELD(struct twi_lane, ingress, "producers"),
	FIELD(struct twi_lane, cancelled, "producers"),
	FIELD(struct twi_lane, rejected_count, "producers"),
	FIELD(struct twi_lane, stopped_count, "producers"),
	FIELD(struct twi_lane, summed_count, "producers"),
	FIELD(struct twi_lane, ring_out, "worker"),
	FIELD(struct twi_lane, ingress_out, "worker"),
	FIELD(struct twi_lane, cancelled_out, "worker"),
};

static size_t first_line(const struct field *field)
{
	return field->begin / TWI_CACHE_LINE;
}

static size_t last_line(const struct field *field)
{
	return (field->end - 1) / TWI_CACHE_LINE;
}

static void check_pair(const struct field *one, const struct field *other)
{
	bool one_line = first_line(one) == first_line(other) && last_line(one) == last_line(other);
	bool apart = last_line(one) < first_line(other) || last_line(other) < first_line(one);

	if (strcmp(one->line, other->line) == 0)
		cr_assert(one_line, "%s and %s are not in one line", one->name, other->name);
	else
		cr_assert(apart, "%s (%s) and %s (%s) share a line", one->name, one->line,
			  other->name, other->line);
}

static void check_lines(const struct field *field, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			check_pair(&field[i], &field[k]);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

Test(layout, worker_fields_share_a_line_only_by_user)
{
	check_lines(worker_field, COUNT_OF(worker_field));
	check_int(offsetof(struct twi_worker, state), 0);
	check_int(_Alignof(struct twi_worker) % TWI_CACHE_LINE, 0);
}

/* Lanes of two threads must not share a line. */
Test(layout, lane_shares_no_line_with_the_next_lane)
{
	check_lines(lane_field, COUNT_OF(lane_field));
	check_int(sizeof(struct twi_lane) % TWI_CACHE_LINE, 0);
	check_int(_Alignof(struct twi_lane) % TWI_CACHE_LINE, 0);
	check_int(offsetof(struct twi_worker, near.lane) % TWI_CACHE_LINE, 0);
}

/* Reading the counter clock must need only one line. That line is written every 10 us, by a
 * sample. */
Test(layout, reading_the_counter_needs_one_line)
{
	check_at_most(offsetof(struct twi_clock_tsc, offset_ns) + sizeof(int64_t), TWI_CACHE_LINE);
	check_int(offsetof(struct tw_engine, own_clock) % TWI_CACHE_LINE, 0);
}

/* A timeout must be exactly one cache line, because the library reads it as one. */
Test(layout, timeout_is_exactly_one_line)
{
	check_int(sizeof(struct twi_node), TWI_CACHE_LINE);
	check_int(TWI_BLOCK_BYTES, TWI_CACHE_LINE);
}
