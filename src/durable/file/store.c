/* SPDX-License-Identifier: MIT */
/*
 * The file as a store: the functions of tickwheel/durable_store.h. They translate the numbers of
 * kinds, and reject wrong arguments.
 */
#include "durable/file/commit.h"
#include "durable/file/dead.h"
#include "durable/file/log.h"
#include "durable/file/near.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_file.h>

#define NO_KIND UINT32_MAX

struct store {
	struct twi_file file;
	char *path;
	uint32_t *to_file;   /* the file's number for each number of the caller */
	uint32_t *from_file; /* the caller's number for each number of the file, or NO_KIND */
	const char *const *names;
	size_t count, file_count;
};

/* Adds a kind of the file to the tables. The numbers of kinds have no gaps. */
static int kind_known(void *to, uint32_t number, const char *name)
{
	struct store *store = to;
	uint32_t *from_file;

	if (number != store->file_count)
		return -EUCLEAN;
	from_file = realloc(store->from_file, (number + 1) * sizeof(*from_file));
	if (from_file == NULL)
		return -ENOMEM;
	store->from_file = from_file;
	from_file[number] = NO_KIND;
	store->file_count = number + 1;
	for (size_t i = 0; i < store->count; i++) {
		if (strcmp(store->names[i], name) != 0)
			continue;
		from_file[number] = (uint32_t)i;
		store->to_file[i] = number;
	}
	return 0;
}

/* Adds the names that the file does not have. */
static int kinds_add(struct store *store)
{
	struct twi_database *database = &store->file.database;
	int result = twi_database_begin(database);

	if (result != 0)
		return result;
	for (size_t i = 0; i < store->count && result == 0; i++) {
		uint32_t number = (uint32_t)store->file_count;

		if (store->to_file[i] != 0)
			continue;
		result = twi_kind_add(database, number, store->names[i]);
		if (result == 0)
			result = kind_known(store, number, store->names[i]);
	}
	if (result == 0)
		return twi_database_commit(database);
	twi_database_rollback(database);
	return result;
}

static int kinds_open(struct store *store, const char *const *names, size_t count)
{
	int result;

	store->names = names;
	store->count = count;
	/* The numbers of the file begin at 1. */
	store->file_count = 1;
	store->to_file = calloc(count + 1, sizeof(store->to_file[0]));
	store->from_file = calloc(1, sizeof(store->from_file[0]));
	if (store->to_file == NULL || store->from_file == NULL)
		return -ENOMEM;
	store->from_file[0] = NO_KIND;
	result = twi_kind_all(&store->file.database, kind_known, store);
	return result == 0 ? kinds_add(store) : result;
}

static int file_open(void *to, const char *const *kinds, size_t count,
		     struct tw_durable_opened *ret_opened)
{
	struct store *store = to;
	struct twi_file *file = &store->file;
	int result = twi_file_open(file, store->path);

	if (result == 0)
		result = kinds_open(store, kinds, count);
	if (result != 0) {
		twi_file_freeze(file, result);
		return result;
	}
	ret_opened->level = file->files.memory ? TW_DURABLE_LEVEL_PROCESS : TW_DURABLE_LEVEL_DISK;
	ret_opened->clean = file->was_clean;
	ret_opened->highest_ns = file->highest_ns;
	/* file_count includes number 0, which is no kind. */
	ret_opened->unknown_kinds = store->file_count - 1 - count;
	return 0;
}

static int file_reserve(void *to, uint64_t count, uint64_t *ret_first)
{
	struct store *store = to;
	int result = twi_file_reserve(&store->file, count, ret_first);

	return result == -EBUSY ? -EAGAIN : result;
}

/* Returns false for an operation that the file cannot represent: with a wrong serial or kind. */
static bool sound(const struct store *store, const struct tw_durable_op *op)
{
	if (op->row.id.serial == 0 || op->row.id.serial > INT64_MAX)
		return false;
	return op->type != TW_DURABLE_OP_PUT || op->row.kind < store->count;
}

static int file_commit(void *to, struct tw_durable_op *ops, size_t count, int64_t now_ns)
{
	struct store *store = to;

	for (size_t i = 0; i < count; i++)
		if (!sound(store, &ops[i]))
			return -EINVAL;
	return twi_file_commit(&store->file, ops, count, now_ns, store->to_file);
}

/* The receiver of rows, and the store that translates their kinds. */
struct giving {
	const struct store *store;
	tw_durable_give *give;
	void *to;
	/* kinds[n] is not 0 if kind n is wanted; NULL if all kinds are wanted */
	const unsigned char *kinds;
};

static uint32_t kind_of(const struct store *store, uint32_t number)
{
	return number < store->file_count ? store->from_file[number] : NO_KIND;
}

static bool known(const void *to, uint32_t kind)
{
	const struct giving *giving = to;

	return kind_of(giving->store, kind) != NO_KIND;
}

static bool wanted(const void *to, uint32_t kind)
{
	const struct giving *giving = to;
	uint32_t number = kind_of(giving->store, kind);

	return number != NO_KIND && (giving->kinds == NULL || giving->kinds[number] != 0);
}

static int give_row(void *to, const struct tw_durable_row *row)
{
	const struct giving *giving = to;
	struct tw_durable_row given = *row;

	given.kind = kind_of(giving->store, row->kind);
	return giving->give(giving->to, &given);
}

static int file_near_kinds(void *to, const unsigned char *kinds, const struct tw_durable_row *after,
			   int64_t until_ns, size_t max, tw_durable_give *give, void *give_to)
{
	struct store *store = to;
	struct giving giving = {store, give, give_to, kinds};
	const struct twi_near near = {after, until_ns, max, known, wanted, give_row, &giving};

	if (store->file.database.frozen != 0)
		return store->file.database.frozen;
	return twi_near_load(&store->file.timers, &near);
}

static int file_near(void *to, const struct tw_durable_row *after, int64_t until_ns, size_t max,
		     tw_durable_give *give, void *give_to)
{
	return file_near_kinds(to, NULL, after, until_ns, max, give, give_to);
}

/* If a row was found and its kind is known, passes it to `give`. */
static int found(struct store *store, int result, const struct tw_durable_row *row,
		 tw_durable_give *give, void *to)
{
	struct giving giving = {store, give, to, NULL};

	if (result == 1 && kind_of(store, row->kind) != NO_KIND)
		return give_row(&giving, row);
	return result < 0 ? result : -ENOENT;
}

static int file_find(void *to, struct tw_durable_id id, tw_durable_give *give, void *give_to)
{
	struct store *store = to;
	struct tw_durable_row row;
	int result = store->file.database.frozen;

	if (result == 0)
		result = twi_timers_get(&store->file.timers, id, &row);
	if (result == 0)
		result = twi_dead_get(&store->file.timers, id, &row);
	return found(store, result, &row, give, give_to);
}

static int file_find_key(void *to, const void *key, size_t bytes, tw_durable_give *give,
			 void *give_to)
{
	struct store *store = to;
	struct tw_durable_row row;
	struct tw_durable_id id;
	int result = store->file.database.frozen;

	if (bytes == 0 || bytes > UINT32_MAX)
		return -EINVAL;
	if (result == 0)
		result = twi_timers_key_get(&store->file.timers, key, (uint32_t)bytes, &id);
	if (result == 1) {
		result = twi_timers_get(&store->file.timers, id, &row);
		/* If the file has the key, but not its timer, it is damaged. */
		result = result == 0 ? -EUCLEAN : result;
	}
	return found(store, result, &row, give, give_to);
}

static int give_known(void *to, const struct tw_durable_row *row)
{
	return wanted(to, row->kind) ? give_row(to, row) : 0;
}

static int file_dead(void *to, struct tw_durable_id after, size_t max, tw_durable_give *give,
		     void *give_to)
{
	struct store *store = to;
	struct giving giving = {store, give, give_to, NULL};

	if (store->file.database.frozen != 0)
		return store->file.database.frozen;
	return twi_dead_list(&store->file.timers, after, max, give_known, &giving);
}

/*
 * Does only one piece of the work that can wait, because the set's next commit waits for this call.
 */
static int file_upkeep(void *to)
{
	struct store *store = to;
	struct twi_file *file = &store->file;
	int result = file->database.frozen;

	if (result != 0)
		return result;
	if (file->database.pages >= TWI_LOG_PAGES) {
		result = twi_log_checkpoint(&file->database);
		if (result == 0 && !file->reserved)
			twi_file_room_take(file);
	} else if (file->timers.inbox_rows >= TWI_INBOX_ROWS) {
		result = twi_timers_slice(&file->timers);
	} else if (twi_ends_cold(&file->timers.ends)) {
		result = twi_ends_slice(&file->timers.ends);
	}
	/* If a reader or a full disk prevents the work, a later call does it. */
	if (result == -EBUSY || result == -ENOSPC)
		result = file->database.frozen;
	return result < 0 ? result : 0;
}

static int file_dead_trim(void *to, uint64_t most, int64_t ended_before_ns, size_t max)
{
	struct store *store = to;
	struct twi_file *file = &store->file;
	int result = file->database.frozen;

	if (result == 0)
		result = twi_dead_trim(&file->timers, most, ended_before_ns, max);
	if (result < 0 && result != -EBUSY && result != -ENOSPC)
		twi_file_freeze(file, result);
	return result == -EBUSY ? -EAGAIN : result;
}

static int file_clock(void *to, struct tw_durable_clock *ret_clock)
{
	struct store *store = to;
	int result = store->file.database.frozen;

	return result == 0 ? twi_clock_get(&store->file.database, ret_clock) : result;
}

static int file_clock_set(void *to, const struct tw_durable_clock *clock)
{
	struct store *store = to;
	int result;

	if (memchr(clock->boot, '\0', sizeof clock->boot) == NULL)
		return -EINVAL;
	result = twi_file_clock_set(&store->file, clock);
	return result == -EBUSY ? -EAGAIN : result;
}

/* The caller's array of paused kinds, which pause_note fills. */
struct pausing {
	const struct store *store;
	unsigned char *paused;
};

static int pause_note(void *to, uint32_t number)
{
	const struct pausing *pausing = to;
	uint32_t kind = kind_of(pausing->store, number);

	if (kind != NO_KIND)
		pausing->paused[kind] = 1;
	return number < pausing->store->file_count ? 0 : -EUCLEAN;
}

static int file_paused(void *to, unsigned char *ret_paused)
{
	struct store *store = to;
	struct pausing pausing = {store, ret_paused};
	int result = store->file.database.frozen;

	memset(ret_paused, 0, store->count);
	return result == 0 ? twi_paused_all(&store->file.database, pause_note, &pausing) : result;
}

static int file_pause(void *to, uint32_t kind, int paused)
{
	struct store *store = to;
	int result;

	if (kind >= store->count)
		return -EINVAL;
	result = twi_file_pause(&store->file, store->to_file[kind], paused != 0);
	return result == -EBUSY ? -EAGAIN : result;
}

static uint64_t file_log_bytes(void *to)
{
	struct store *store = to;

	/* The I/O thread calls this once a second. */
	twi_file_guard(&store->file);
	return twi_log_bytes(&store->file.database);
}

static void file_close(void *to, int clean)
{
	struct store *store = to;

	twi_file_close(&store->file, clean != 0);
	free(store->to_file);
	free(store->from_file);
	free(store->path);
	free(store);
}

static const struct tw_durable_store_ops file_ops = {
	.size = sizeof(file_ops),
	.open = file_open,
	.reserve = file_reserve,
	.commit = file_commit,
	.near = file_near,
	.find = file_find,
	.find_key = file_find_key,
	.dead = file_dead,
	.upkeep = file_upkeep,
	.close = file_close,
	.dead_trim = file_dead_trim,
	.near_kinds = file_near_kinds,
	.clock = file_clock,
	.clock_set = file_clock_set,
	.log_bytes = file_log_bytes,
	.paused = file_paused,
	.pause = file_pause,
};

int tw_durable_store_file(const char *path, struct tw_durable_store *ret_store)
{
	struct store *store;

	if (path == NULL || ret_store == NULL || path[0] == '\0')
		return -EINVAL;
	store = calloc(1, sizeof(*store));
	if (store == NULL)
		return -ENOMEM;
	store->path = strdup(path);
	if (store->path == NULL) {
		free(store);
		return -ENOMEM;
	}
	store->file.files.lock = store->file.files.claim = -1;
	*ret_store = (struct tw_durable_store){&file_ops, store};
	return 0;
}
