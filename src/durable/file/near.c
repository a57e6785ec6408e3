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
	/* Rows in memory at once, and bytes of a row that are copied: 40 MB at most. */
	PIECE = 65536,
	COPIED = 512,
#endif
};

/* A place in the order of timers. */
struct mark {
	int64_t due_ns, place, serial;
};

/* The earliest marks that were seen, at most `most` of them; the latest of these on top. */
struct heap {
	struct mark *marks;
	size_t count, room, most;
};

static bool before(const struct mark *mark, const struct mark *other)
{
	if (mark->due_ns != other->due_ns)
		return mark->due_ns < other->due_ns;
	if (mark->place != other->place)
		return mark->place < other->place;
	return mark->serial < other->serial;
}

static int compare(const void *one, const void *other)
{
	return before(one, other) ? -1 : before(other, one);
}

static void swap(struct heap *heap, size_t one, size_t other)
{
	struct mark mark = heap->marks[one];

	heap->marks[one] = heap->marks[other];
	heap->marks[other] = mark;
}

static void sift_up(struct heap *heap, size_t at)
{
	for (; at > 0 && before(&heap->marks[(at - 1) / 2], &heap->marks[at]); at = (at - 1) / 2)
		swap(heap, at, (at - 1) / 2);
}

static void sift_down(struct heap *heap)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < heap->count) {
		if (child + 1 < heap->count && before(&heap->marks[child], &heap->marks[child + 1]))
			child++;
		if (!before(&heap->marks[at], &heap->marks[child]))
			return;
		swap(heap, at, child);
		at = child;
	}
}

static int heap_grow(struct heap *heap)
{
	size_t room = heap->room == 0 ? 1024 : 2 * heap->room;
	struct mark *marks;

	if (heap->count < heap->room)
		return 0;
	marks = realloc(heap->marks, room * sizeof(*marks));
	if (marks == NULL)
		return -ENOMEM;
	heap->marks = marks;
	heap->room = room;
	return 0;
}

static int heap_add(struct heap *heap, const struct mark *mark)
{
	int result;

	if (heap->count == heap->most) {
		if (before(mark, &heap->marks[0])) {
			heap->marks[0] = *mark;
			sift_down(heap);
		}
		return 0;
	}
	result = heap_grow(heap);
	if (result == 0) {
		heap->marks[heap->count++] = *mark;
		sift_up(heap, heap->count - 1);
	}
	return result;
}

struct load {
	struct twi_timers *timers;
	struct mark from; /* behind it, */
	int64_t until_ns; /* and up to here */
	struct heap heap; /* of one bucket */
	twi_near_wanted *wanted;
	tw_durable_give *give;
	void *to;
};

/* Its end is noted. */
static bool gone(const struct load *load, int64_t bucket, const struct mark *mark)
{
	return mark->place == bucket &&
	       twi_ends_have(&load->timers->ends, mark->place, mark->serial);
}

/* Keeps the marks of the earliest timers of the bucket. */
static int bucket_look(struct load *load, int64_t bucket)
{
	sqlite3_stmt *statement =
		twi_database_statement(load->timers->database, TWI_SQL_NEAR_MARKS);
	int result;

	load->heap.count = 0;
	sqlite3_bind_int64(statement, 1, bucket);
	while ((result = twi_database_step(statement)) == 1) {
		struct mark mark = {sqlite3_column_int64(statement, 0),
				    sqlite3_column_int64(statement, 1),
				    sqlite3_column_int64(statement, 2)};

		if (mark.due_ns > load->until_ns || !before(&load->from, &mark) ||
		    gone(load, bucket, &mark) ||
		    !load->wanted(load->to, (uint32_t)sqlite3_column_int64(statement, 3)))
			continue;
		result = heap_add(&load->heap, &mark);
		if (result != 0)
			break;
	}
	sqlite3_reset(statement);
	return result;
}

static struct mark mark_of(const struct tw_durable_row *row)
{
	return (struct mark){row->due_ns, twi_place(row->id), twi_serial(row->id)};
}

static int row_compare(const void *one, const void *other)
{
	struct mark left = mark_of(one), right = mark_of(other);

	return compare(&left, &right);
}

/* Rows between two marks of a bucket, read in the order of the file, to be given in that of time. */
struct piece {
	struct mark first, last;
	struct tw_durable_row *rows;
	size_t count, room;
};

/* Copies a row. Long bytes are left out, and read again when the row is given. */
static int piece_add(struct piece *piece, const struct tw_durable_row *row)
{
	struct tw_durable_row *copy = &piece->rows[piece->count];
	size_t length = (size_t)row->key_bytes + row->payload_bytes;
	unsigned char *bytes;

	if (piece->count == piece->room)
		return -EUCLEAN;
	*copy = *row;
	copy->key = copy->payload = NULL;
	piece->count++;
	if (length > COPIED)
		return 0;
	bytes = malloc(length + 1);
	if (bytes == NULL)
		return -ENOMEM;
	/* The key comes first, and its address is that of the memory also if there is none. */
	copy->key = bytes;
	copy->payload = bytes + row->key_bytes;
	if (row->key_bytes > 0)
		memcpy(bytes, row->key, row->key_bytes);
	if (row->payload_bytes > 0)
		memcpy(bytes + row->key_bytes, row->payload, row->payload_bytes);
	return 0;
}

static int piece_read(const struct load *load, int64_t bucket, struct piece *piece)
{
	sqlite3_stmt *statement = twi_database_statement(load->timers->database, TWI_SQL_NEAR_ROWS);
	struct tw_durable_row row;
	int result;

	sqlite3_bind_int64(statement, 1, bucket);
	while ((result = twi_database_step(statement)) == 1) {
		int64_t due_ns = sqlite3_column_int64(statement, 3);
		struct mark mark;

		/* Most rows of other pieces are known by their deadline alone. */
		if (due_ns < piece->first.due_ns || due_ns > piece->last.due_ns)
			continue;
		result = twi_row_read(statement, &row);
		mark = mark_of(&row);
		if (result == 0 && !before(&mark, &piece->first) && !before(&piece->last, &mark) &&
		    !gone(load, bucket, &mark) && load->wanted(load->to, row.kind))
			result = piece_add(piece, &row);
		if (result < 0)
			break;
	}
	sqlite3_reset(statement);
	return result;
}

static int piece_give(const struct load *load, int64_t bucket, struct piece *piece)
{
	struct tw_durable_row row;
	int result = 0;

	if (piece->count != piece->room)
		return -EUCLEAN;
	qsort(piece->rows, piece->count, sizeof(piece->rows[0]), row_compare);
	for (size_t i = 0; i < piece->count && result == 0; i++) {
		row = piece->rows[i];
		if (row.key == NULL) {
			result = twi_timers_get_at(load->timers, bucket, twi_serial(row.id), &row);
			/* It was there a moment ago. */
			if (result != 1)
				return result < 0 ? result : -EUCLEAN;
		}
		if (row.key_bytes == 0)
			row.key = NULL;
		if (row.payload_bytes == 0)
			row.payload = NULL;
		result = load->give(load->to, &row);
	}
	return result < 0 ? result : 0;
}

static void piece_free(struct piece *piece)
{
	for (size_t i = 0; i < piece->count; i++)
		free((void *)(uintptr_t)piece->rows[i].key);
	free(piece->rows);
}

/* Gives the timers of sorted marks. */
static int marks_give(const struct load *load, int64_t bucket, const struct mark *marks,
		      size_t count)
{
	struct piece piece = {.first = marks[0], .last = marks[count - 1], .room = count};
	int result;

	piece.rows = malloc(count * sizeof(piece.rows[0]));
	if (piece.rows == NULL)
		return -ENOMEM;
	result = piece_read(load, bucket, &piece);
	if (result == 0)
		result = piece_give(load, bucket, &piece);
	piece_free(&piece);
	return result;
}

static int bucket_give(struct load *load, int64_t bucket)
{
	struct heap *heap = &load->heap;
	int result = 0;

	if (heap->count > 0)
		qsort(heap->marks, heap->count, sizeof(heap->marks[0]), compare);
	for (size_t from = 0; from < heap->count && result == 0; from += PIECE) {
		size_t count = heap->count - from < PIECE ? heap->count - from : PIECE;

		result = marks_give(load, bucket, heap->marks + from, count);
	}
	heap->most -= heap->count;
	return result;
}

/* 1 and the first bucket from `bucket` on that has rows. */
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
	return result;
}

static int buckets_load(struct load *load)
{
	int64_t bucket = twi_bucket(load->from.due_ns), last = twi_bucket(load->until_ns);
	int result = 0;

	while (load->heap.most > 0) {
		result = bucket_next(load, bucket, &bucket);
		if (result <= 0 || bucket > last)
			break;
		result = bucket_look(load, bucket);
		if (result == 0)
			result = bucket_give(load, bucket);
		if (result < 0)
			break;
		bucket++;
	}
	return result < 0 ? result : 0;
}

int twi_near_load(struct twi_timers *timers, const struct tw_durable_row *after, int64_t until_ns,
		  size_t most, twi_near_wanted *wanted, tw_durable_give *give, void *to)
{
	struct load load = {
		.timers = timers,
		.from = {INT64_MIN, INT64_MIN, INT64_MIN},
		.until_ns = until_ns,
		.heap = {.most = most},
		.wanted = wanted,
		.give = give,
		.to = to,
	};
	int result;

	if (after != NULL)
		load.from =
			(struct mark){after->due_ns, twi_place(after->id), twi_serial(after->id)};
	result = buckets_load(&load);
	free(load.heap.marks);
	return result;
}
