/* SPDX-License-Identifier: MIT */
#include "durable/file/near.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
#ifdef TWI_TEST_SMALL
	PIECE = 16,
	COPIED = 64,
#else
	/*
	 * The most rows in memory at once, and the most bytes of a row that are copied. Together
	 * they take 6 MB.
	 */
	PIECE = 10000,
	COPIED = 512,
#endif
};

struct load {
	const struct twi_near *near;
	struct twi_timers *timers;
	struct twi_mark from; /* the last mark that was taken */
	size_t most;          /* how many timers this load may still pass on */
	/* this load has made the plan, so each mark has its row, unless the timer's end is noted */
	bool fresh;
};

/* Rows to pass on: read in the order of the file, and passed on in the order of deadlines. */
struct piece {
	struct twi_mark *marks;
	struct tw_durable_row *rows;
	size_t mark_count, count;
};

/* Reads the marks of the bucket's timers that this load or a later one may pass on. */
static int bucket_look(const struct load *load, struct twi_plan *plan)
{
	sqlite3_stmt *statement =
		twi_database_statement(load->timers->database, TWI_SQL_NEAR_MARKS);
	int result;

	sqlite3_bind_int64(statement, 1, plan->bucket);
	while ((result = twi_database_step(statement)) == 1) {
		const struct twi_mark mark = {
			sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1),
			sqlite3_column_int64(statement, 2), sqlite3_column_int64(statement, 3)};

		if (!load->near->known(load->near->to, (uint32_t)mark.kind))
			continue;
		if (!twi_plan_collect(plan, &mark)) {
			result = -ENOMEM;
			break;
		}
	}
	sqlite3_reset(statement);
	return result;
}

/* Returns the plan of a bucket. Reads the bucket if there is no plan. */
static int plan_of(struct load *load, int64_t bucket, struct twi_plan **ret)
{
	struct twi_plans *plans = &load->timers->plans;
	struct twi_plan *plan = twi_plan_find(plans, bucket, &load->from);
	int result;

	*ret = plan;
	load->fresh = plan == NULL;
	if (plan != NULL)
		return 0;
	*ret = plan = twi_plan_begin(plans, bucket, &load->from);
	if (plan == NULL)
		return -ENOMEM;
	result = bucket_look(load, plan);
	if (result < 0)
		twi_plan_end(plan);
	else
		twi_plan_ready(plan);
	return result;
}

/*
 * Returns whether to pass on the timer of a mark. If the timer was moved away and back, the plan
 * has its mark twice. Then the second mark is not behind `from`, and is left out.
 */
static bool wanted(const struct load *load, const struct twi_mark *mark)
{
	return twi_mark_before(&load->from, mark) &&
	       load->near->wanted(load->near->to, (uint32_t)mark->kind);
}

static void piece_take(struct load *load, struct twi_plan *plan, struct piece *piece)
{
	size_t most = load->most < PIECE ? load->most : PIECE;
	const struct twi_mark *mark;

	while (piece->mark_count < most && (mark = twi_plan_first(plan)) != NULL &&
	       mark->due_ns <= load->near->until_ns) {
		if (wanted(load, mark))
			load->from = piece->marks[piece->mark_count++] = *mark;
		else
			/*
			 * The plan loses this mark here. A load of other kinds may still need the
			 * mark's timer. So the plan now begins behind the mark, and that load must
			 * make a new plan.
			 */
			twi_plan_pass(plan, mark);
		twi_plan_pop(plan);
	}
}

/* Copies a row. If its key and payload are long, leaves them out: row_give reads them again. */
static int piece_add(struct piece *piece, const struct tw_durable_row *row)
{
	struct tw_durable_row *copy = &piece->rows[piece->count];
	size_t length = (size_t)row->key_bytes + row->payload_bytes;
	unsigned char *bytes;

	*copy = *row;
	copy->key = copy->payload = NULL;
	piece->count++;
	if (length > COPIED)
		return 0;
	bytes = malloc(length + 1);
	if (bytes == NULL)
		return -ENOMEM;
	/*
	 * The key comes first. Even without a key, `key` is the address of the memory, for
	 * piece_free.
	 */
	copy->key = bytes;
	copy->payload = bytes + row->key_bytes;
	if (row->key_bytes > 0)
		memcpy(bytes, row->key, row->key_bytes);
	if (row->payload_bytes > 0)
		memcpy(bytes + row->key_bytes, row->payload, row->payload_bytes);
	return 0;
}

static int serial_compare(const void *one, const void *other)
{
	const struct twi_mark *left = one, *right = other;

	return left->serial < right->serial ? -1 : left->serial > right->serial;
}

/*
 * Handles a mark without a row. Its timer may have ended or moved since the mark was read;
 * otherwise the file is damaged.
 */
static int missing(const struct load *load, int64_t bucket, const struct twi_mark *mark)
{
	bool may_be = !load->fresh || twi_ends_have(&load->timers->ends, bucket, mark->serial);

	return may_be ? 0 : -EUCLEAN;
}

/* Reads the rows of the marks. */
static int piece_read(const struct load *load, int64_t bucket, struct piece *piece)
{
	struct tw_durable_row row;
	int result = 0;

	qsort(piece->marks, piece->mark_count, sizeof(piece->marks[0]), serial_compare);
	for (size_t i = 0; i < piece->mark_count && result >= 0; i++) {
		const struct twi_mark *mark = &piece->marks[i];

		result = twi_timers_get_at(load->timers, bucket, mark->serial, &row);
		if (result == 1 && row.due_ns == mark->due_ns)
			result = piece_add(piece, &row);
		else if (result >= 0)
			result = missing(load, bucket, mark);
	}
	return result < 0 ? result : 0;
}

static struct twi_mark mark_of(const struct tw_durable_row *row)
{
	return (struct twi_mark){row->due_ns, twi_place(row->id), twi_serial(row->id), row->kind};
}

static int row_compare(const void *one, const void *other)
{
	struct twi_mark left = mark_of(one), right = mark_of(other);

	return twi_mark_compare(&left, &right);
}

static int row_give(const struct load *load, int64_t bucket, struct tw_durable_row row)
{
	int result;

	if (row.key == NULL) {
		result = twi_timers_get_at(load->timers, bucket, twi_serial(row.id), &row);
		/* The row was there when piece_read read it. */
		if (result != 1)
			return result < 0 ? result : -EUCLEAN;
	}
	if (row.key_bytes == 0)
		row.key = NULL;
	if (row.payload_bytes == 0)
		row.payload = NULL;
	return load->near->give(load->near->to, &row);
}

/* Passes the rows to `give`. After an error of `give`, puts the marks of the other rows back. */
static int piece_give(struct load *load, struct twi_plan *plan, const struct piece *piece)
{
	struct twi_mark mark;
	int result = 0;

	if (piece->count > 0)
		qsort(piece->rows, piece->count, sizeof(piece->rows[0]), row_compare);
	for (size_t i = 0; i < piece->count; i++) {
		mark = mark_of(&piece->rows[i]);
		if (result < 0) {
			twi_plan_push(plan, &mark);
			continue;
		}
		result = row_give(load, plan->bucket, piece->rows[i]);
		load->most--;
		twi_plan_pass(plan, &mark);
	}
	return result < 0 ? result : 0;
}

static void piece_free(struct piece *piece)
{
	for (size_t i = 0; i < piece->count; i++)
		free((void *)(uintptr_t)piece->rows[i].key);
	free(piece->rows);
	free(piece->marks);
}

/*
 * Reads the rows of the plan's next marks, and passes them on. Returns 1 if the plan had marks for
 * this load, 0 if it had none, or an error.
 */
static int piece_load(struct load *load, struct twi_plan *plan)
{
	struct piece piece = {
		.marks = malloc(PIECE * sizeof(piece.marks[0])),
		.rows = malloc(PIECE * sizeof(piece.rows[0])),
	};
	bool full = false;
	int result = -ENOMEM;

	if (piece.marks != NULL && piece.rows != NULL) {
		piece_take(load, plan, &piece);
		full = piece.mark_count > 0;
		result = piece_read(load, plan->bucket, &piece);
		if (result == 0)
			result = piece_give(load, plan, &piece);
		else
			twi_plan_end(plan);
	}
	piece_free(&piece);
	return result < 0 ? result : full;
}

/* Passes on the timers of a bucket, up to the limits of the load. */
static int bucket_load(struct load *load, int64_t bucket)
{
	struct twi_plan *plan;
	int result;

	for (;;) {
		result = plan_of(load, bucket, &plan);
		while (result >= 0 && load->most > 0) {
			result = piece_load(load, plan);
			if (result <= 0)
				break;
		}
		if (result < 0 || load->most == 0 || twi_plan_first(plan) != NULL)
			return result < 0 ? result : 0;
		/* The plan is used up. */
		if (twi_plan_whole(plan)) {
			twi_plan_end(plan);
			return 0;
		}
		if (twi_mark_before(&load->from, &plan->last))
			load->from = plan->last;
		twi_plan_end(plan);
	}
}

/*
 * Returns 1 and the first bucket from `bucket` on that has rows, 0 if there is none, or an error.
 */
static int bucket_next(const struct load *load, int64_t bucket, int64_t *ret)
{
	sqlite3_stmt *statement = twi_database_statement(load->timers->database, TWI_SQL_NEAR_NEXT);
	int result;

	sqlite3_bind_int64(statement, 1, bucket);
	result = twi_database_step(statement);
	if (result <= 0)
		return result;
	result = sqlite3_column_type(statement, 0) != SQLITE_NULL;
	*ret = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	/*
	 * In a damaged file the rows may be out of order. Without this check the load might not
	 * end.
	 */
	return result == 1 && *ret < bucket ? -EUCLEAN : result;
}

static int buckets_load(struct load *load)
{
	int64_t bucket, last = twi_bucket(load->near->until_ns);
	int result = 0;

	for (bucket = twi_bucket(load->from.due_ns); load->most > 0; bucket++) {
		result = bucket_next(load, bucket, &bucket);
		if (result <= 0 || bucket > last)
			break;
		result = bucket_load(load, bucket);
		if (result < 0)
			break;
	}
	return result < 0 ? result : 0;
}

int twi_near_load(struct twi_timers *timers, const struct twi_near *near)
{
	struct load load = {near, timers, {INT64_MIN, INT64_MIN, INT64_MIN, 0}, near->most, false};
	/* tickwheel-durable reads everything in one transaction, which it has begun already. */
	bool begun = sqlite3_get_autocommit(timers->database->sqlite) == 0;
	int result = begun ? 0 : twi_database_begin_read(timers->database);

	if (result != 0)
		return result;
	if (near->after != NULL)
		load.from = mark_of(near->after);
	result = buckets_load(&load);
	if (!begun)
		twi_database_end_read(timers->database);
	return result;
}
