/* SPDX-License-Identifier: MIT */
#include "memory_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The state of one opening of a disk. */
struct opened {
	struct disk *disk;
	uint64_t session;
	size_t kind_count; /* the number of kinds that the store was opened with */
};

struct disk *disk_create(void)
{
	struct disk *disk = calloc(1, sizeof *disk);

	if (disk != NULL)
		disk->level = TW_DURABLE_LEVEL_DISK;
	return disk;
}

void disk_destroy(struct disk *disk)
{
	for (int i = 0; i < DISK_BUCKETS; i++) {
		while (disk->bucket[i] != NULL) {
			struct disk_row *row = disk->bucket[i];

			disk->bucket[i] = row->next;
			free(row);
		}
	}
	free(disk);
}

static struct disk_row **place_of(struct disk *disk, struct tw_durable_id id)
{
	struct disk_row **place = &disk->bucket[id.serial % DISK_BUCKETS];

	while (*place != NULL &&
	       ((*place)->row.id.serial != id.serial || (*place)->row.id.place != id.place))
		place = &(*place)->next;
	return place;
}

const struct tw_durable_row *disk_find(struct disk *disk, struct tw_durable_id id)
{
	struct disk_row *row = *place_of(disk, id);

	return row == NULL ? NULL : &row->row;
}

static struct disk_row *key_find(struct disk *disk, const void *key, size_t bytes)
{
	for (int i = 0; i < DISK_BUCKETS; i++) {
		for (struct disk_row *row = disk->bucket[i]; row != NULL; row = row->next) {
			if (row->row.key_bytes == bytes && row->row.dead == 0 &&
			    memcmp(row->row.key, key, bytes) == 0)
				return row;
		}
	}
	return NULL;
}

size_t disk_dead(const struct disk *disk)
{
	size_t count = 0;

	for (int i = 0; i < DISK_BUCKETS; i++) {
		for (struct disk_row *row = disk->bucket[i]; row != NULL; row = row->next)
			count += row->row.dead != 0;
	}
	return count;
}

void disk_cut(struct disk *disk)
{
	disk->session++;
}

static bool live(const struct opened *opened)
{
	return opened->session == opened->disk->session;
}

static uint32_t kind_number(struct disk *disk, const char *name)
{
	for (uint32_t i = 0; i < disk->kind_count; i++) {
		if (strcmp(disk->kinds[i], name) == 0)
			return i;
	}
	strcpy(disk->kinds[disk->kind_count], name);
	return disk->kind_count++;
}

static int store_open(void *store, const char *const *kinds, size_t count,
		      struct tw_durable_opened *ret)
{
	struct opened *opened = store;
	struct disk *disk = opened->disk;

	opened->session = ++disk->session;
	opened->kind_count = count;
	for (size_t i = 0; i < count; i++)
		disk->map[i] = kind_number(disk, kinds[i]);
	ret->level = disk->level;
	ret->clean = disk->clean || !disk->used;
	ret->highest_ns = disk->highest_ns;
	ret->unknown_kinds = (uint64_t)disk->kind_count - count;
	disk->used = true;
	disk->clean = false;
	return 0;
}

static int store_reserve(void *store, uint64_t count, uint64_t *ret_first)
{
	struct opened *opened = store;

	if (!live(opened))
		return -EIO;
	*ret_first = opened->disk->serial;
	opened->disk->serial += count;
	return 0;
}

static int32_t row_put(struct disk *disk, struct tw_durable_row *row)
{
	struct disk_row **place = place_of(disk, row->id), *made;
	struct disk_row *keyed =
		row->key_bytes == 0 ? NULL : key_find(disk, row->key, row->key_bytes);

	if (keyed != NULL)
		row->id = keyed->row.id;
	if (keyed != NULL || *place != NULL)
		return TW_DURABLE_PRESENT;
	made = calloc(1, sizeof *made + row->payload_bytes + row->key_bytes);
	made->row = *row;
	made->row.kind = disk->map[row->kind];
	made->row.payload = made->bytes;
	made->row.key = made->bytes + row->payload_bytes;
	if (row->payload_bytes != 0)
		memcpy(made->bytes, row->payload, row->payload_bytes);
	if (row->key_bytes != 0)
		memcpy(made->bytes + row->payload_bytes, row->key, row->key_bytes);
	*place = made;
	disk->rows++;
	disk->bytes += sizeof *made + row->payload_bytes + row->key_bytes;
	return TW_DURABLE_DONE;
}

static int32_t row_remove(struct disk *disk, struct disk_row **place)
{
	struct disk_row *row = *place;
	int32_t outcome = row->row.attempt == 0 ? TW_DURABLE_DONE : TW_DURABLE_ATTEMPTED;

	*place = row->next;
	free(row);
	disk->rows--;
	return outcome;
}

static int32_t row_change(struct disk *disk, const struct tw_durable_op *op, int64_t now_ns)
{
	struct disk_row **place = place_of(disk, op->row.id);
	bool of_dead = op->type == TW_DURABLE_OP_REVIVE || op->type == TW_DURABLE_OP_DROP;
	struct tw_durable_row *row;

	if (*place == NULL || ((*place)->row.dead != 0) != of_dead)
		return TW_DURABLE_ABSENT;
	row = &(*place)->row;
	disk->bytes += sizeof *row;
	switch (op->type) {
	case TW_DURABLE_OP_DELETE:
		disk->deletes++;
		return row_remove(disk, place);
	case TW_DURABLE_OP_DROP:
		(void)row_remove(disk, place);
		return TW_DURABLE_DONE;
	case TW_DURABLE_OP_MOVE:
		disk->moves++;
		row->due_ns = op->row.due_ns;
		row->attempt = op->row.attempt;
		row->started = 0;
		return TW_DURABLE_DONE;
	case TW_DURABLE_OP_START:
		disk->starts++;
		row->attempt = op->row.attempt;
		row->started = 1;
		return TW_DURABLE_DONE;
	case TW_DURABLE_OP_BURY:
		row->attempt = op->row.attempt;
		row->dead = 1;
		(*place)->ended_ns = now_ns;
		row->key_bytes = 0;
		return TW_DURABLE_DONE;
	default:
		row->due_ns = op->row.due_ns;
		row->attempt = 0;
		row->started = 0;
		row->dead = 0;
		return TW_DURABLE_DONE;
	}
}

static void ops_do(struct disk *disk, struct tw_durable_op *ops, size_t count, int64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].type == TW_DURABLE_OP_PUT) {
			disk->puts++;
			ops[i].outcome = row_put(disk, &ops[i].row);
		} else {
			ops[i].outcome = row_change(disk, &ops[i], now_ns);
		}
	}
}

static bool any_put(const struct tw_durable_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ops[i].type == TW_DURABLE_OP_PUT)
			return true;
	}
	return false;
}

static int store_commit(void *store, struct tw_durable_op *ops, size_t count, int64_t now_ns)
{
	struct opened *opened = store;
	struct disk *disk = opened->disk;
	bool fault;

	if (!live(opened))
		return -EIO;
	disk->commits++;
	if (disk->during != NULL)
		disk->during();
	fault = disk->fault_at != 0 && disk->commits >= disk->fault_at &&
		disk->commits < disk->fault_at + disk->fault_count &&
		(disk->fault != -ENOSPC || any_put(ops, count));
	if (fault && !disk->fault_done)
		return disk->fault;
	ops_do(disk, ops, count, now_ns);
	if (now_ns > disk->highest_ns)
		disk->highest_ns = now_ns;
	return fault ? disk->fault : 0;
}

/*
 * Finds the set's number for a kind of the disk. Returns false, and sets the number to `count`, if
 * the set does not know the kind.
 */
static bool kind_known(const struct disk *disk, uint32_t kind, uint32_t *ret)
{
	for (uint32_t i = 0; i < DISK_KINDS_MAX; i++) {
		if (disk->map[i] == kind && i < disk->kind_count) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static int give_one(struct disk *disk, const struct tw_durable_row *from, tw_durable_give *give,
		    void *to)
{
	struct tw_durable_row row = *from;

	if (!kind_known(disk, from->kind, &row.kind))
		return 0;
	return give(to, &row);
}

static int compare(const void *left, const void *right)
{
	const struct tw_durable_row *a = *(const struct tw_durable_row *const *)left;
	const struct tw_durable_row *b = *(const struct tw_durable_row *const *)right;

	if (a->due_ns != b->due_ns)
		return a->due_ns < b->due_ns ? -1 : 1;
	if (a->id.place != b->id.place)
		return (int64_t)a->id.place < (int64_t)b->id.place ? -1 : 1;
	return a->id.serial < b->id.serial ? -1 : a->id.serial > b->id.serial;
}

static int compare_ids(const void *left, const void *right)
{
	const struct tw_durable_row *a = *(const struct tw_durable_row *const *)left;
	const struct tw_durable_row *b = *(const struct tw_durable_row *const *)right;

	if (a->id.place != b->id.place)
		return (int64_t)a->id.place < (int64_t)b->id.place ? -1 : 1;
	return a->id.serial < b->id.serial ? -1 : a->id.serial > b->id.serial;
}

static int give_sorted(struct disk *disk, const struct tw_durable_row **found, size_t count,
		       size_t max, tw_durable_give *give, void *to)
{
	int error = 0;

	for (size_t i = 0; error == 0 && i < count && i < max; i++)
		error = give_one(disk, found[i], give, to);
	free(found);
	return error;
}

static int store_near_kinds(void *store, const unsigned char *kinds,
			    const struct tw_durable_row *after, int64_t until_ns, size_t max,
			    tw_durable_give *give, void *to)
{
	struct disk *disk = ((struct opened *)store)->disk;
	const struct tw_durable_row **found = malloc((disk->rows + 1) * sizeof *found);
	size_t count = 0;

	disk->reads++;
	if (disk->loading != NULL)
		disk->loading();
	for (int i = 0; i < DISK_BUCKETS; i++) {
		for (struct disk_row *row = disk->bucket[i]; row != NULL; row = row->next) {
			const struct tw_durable_row *at = &row->row;
			uint32_t kind;

			if (row->row.dead == 0 && row->row.due_ns <= until_ns &&
			    kind_known(disk, row->row.kind, &kind) &&
			    (kinds == NULL || kinds[kind] != 0) &&
			    (after == NULL || compare(&at, &after) > 0))
				found[count++] = at;
		}
	}
	qsort(found, count, sizeof *found, compare);
	return give_sorted(disk, found, count, max, give, to);
}

static int store_near(void *store, const struct tw_durable_row *after, int64_t until_ns, size_t max,
		      tw_durable_give *give, void *to)
{
	return store_near_kinds(store, NULL, after, until_ns, max, give, to);
}

static int store_find(void *store, struct tw_durable_id id, tw_durable_give *give, void *to)
{
	struct disk *disk = ((struct opened *)store)->disk;
	const struct tw_durable_row *row = disk_find(disk, id);

	if (disk->find_fault_in != 0 && --disk->find_fault_in == 0)
		return disk->find_fault;
	return row == NULL ? -ENOENT : give_one(disk, row, give, to);
}

static int store_find_key(void *store, const void *key, size_t bytes, tw_durable_give *give,
			  void *to)
{
	struct disk *disk = ((struct opened *)store)->disk;
	struct disk_row *row = key_find(disk, key, bytes);

	return row == NULL ? -ENOENT : give_one(disk, &row->row, give, to);
}

static int store_dead(void *store, struct tw_durable_id after, size_t max, tw_durable_give *give,
		      void *to)
{
	struct disk *disk = ((struct opened *)store)->disk;
	const struct tw_durable_row **found = malloc((disk->rows + 1) * sizeof *found);
	struct tw_durable_row last = {.id = after};
	const struct tw_durable_row *end = &last;
	size_t count = 0;

	for (int i = 0; i < DISK_BUCKETS; i++) {
		for (struct disk_row *row = disk->bucket[i]; row != NULL; row = row->next) {
			const struct tw_durable_row *at = &row->row;

			if (row->row.dead != 0 && (after.serial == 0 || compare_ids(&at, &end) > 0))
				found[count++] = at;
		}
	}
	qsort(found, count, sizeof *found, compare_ids);
	return give_sorted(disk, found, count, max, give, to);
}

static int store_upkeep(void *store)
{
	((struct opened *)store)->disk->upkeeps++;
	return 0;
}

static struct disk_row **oldest_dead(struct disk *disk)
{
	struct disk_row **oldest = NULL;

	for (int i = 0; i < DISK_BUCKETS; i++) {
		for (struct disk_row **at = &disk->bucket[i]; *at != NULL; at = &(*at)->next) {
			if ((*at)->row.dead != 0 &&
			    (oldest == NULL || (*at)->ended_ns < (*oldest)->ended_ns))
				oldest = at;
		}
	}
	return oldest;
}

static int store_dead_trim(void *store, uint64_t most, int64_t ended_before_ns, size_t max)
{
	struct disk *disk = ((struct opened *)store)->disk;
	struct disk_row **oldest;
	int count = 0;

	disk->trims++;
	if (disk->trim_fault != 0)
		return disk->trim_fault;
	while ((size_t)count < max && (oldest = oldest_dead(disk)) != NULL &&
	       ((*oldest)->ended_ns < ended_before_ns || disk_dead(disk) > most)) {
		(void)row_remove(disk, oldest);
		count++;
	}
	return count;
}

static int store_clock(void *store, struct tw_durable_clock *ret)
{
	struct disk *disk = ((struct opened *)store)->disk;

	if (!disk->has_clock)
		return -ENOENT;
	*ret = disk->clock;
	return 0;
}

static int store_clock_set(void *store, const struct tw_durable_clock *clock)
{
	struct opened *opened = store;

	opened->disk->clocks++;
	if (!live(opened))
		return -EIO;
	if (opened->disk->clock_fault != 0)
		return opened->disk->clock_fault;
	opened->disk->clock = *clock;
	opened->disk->has_clock = true;
	return 0;
}

static uint64_t store_log_bytes(void *store)
{
	return ((struct opened *)store)->disk->log_bytes;
}

static int store_paused(void *store, unsigned char *ret_paused)
{
	const struct opened *opened = store;
	const struct disk *disk = opened->disk;

	for (size_t i = 0; i < opened->kind_count; i++)
		ret_paused[i] = disk->paused[disk->map[i]];
	return disk->paused_fault;
}

static void store_close(void *store, int clean)
{
	struct opened *opened = store;

	if (live(opened))
		opened->disk->clean = clean != 0;
	free(opened);
}

static const struct tw_durable_store_ops memory_ops = {
	.size = sizeof memory_ops,
	.open = store_open,
	.reserve = store_reserve,
	.commit = store_commit,
	.near = store_near,
	.find = store_find,
	.find_key = store_find_key,
	.dead = store_dead,
	.upkeep = store_upkeep,
	.close = store_close,
	.dead_trim = store_dead_trim,
	.near_kinds = store_near_kinds,
	.clock = store_clock,
	.clock_set = store_clock_set,
	.log_bytes = store_log_bytes,
	.paused = store_paused,
};

static struct tw_durable_store_ops least_ops;

struct tw_durable_store disk_store(struct disk *disk)
{
	struct opened *opened = calloc(1, sizeof *opened);

	opened->disk = disk;
	return (struct tw_durable_store){&memory_ops, opened};
}

struct tw_durable_store disk_store_least(struct disk *disk)
{
	struct tw_durable_store store = disk_store(disk);

	least_ops = *store.ops;
	least_ops.dead_trim = NULL;
	least_ops.near_kinds = NULL;
	least_ops.clock = NULL;
	least_ops.clock_set = NULL;
	least_ops.log_bytes = NULL;
	least_ops.paused = NULL;
	store.ops = &least_ops;
	return store;
}
