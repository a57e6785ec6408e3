/* SPDX-License-Identifier: MIT */
#include "durable/tool/change.h"

#include "durable/file/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_file.h>
#include <time.h>
#include <unistd.h>

static int64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Commits one operation. Returns 1 if it was done, 0 if there is no such timer, or a code. */
static int change(const struct tw_durable_store *store, enum tw_durable_op_type type,
		  struct tw_durable_id id)
{
	int64_t now_ns = wall_ns();
	struct tw_durable_op op = {
		.type = (uint32_t)type,
		.row = {.id = id, .due_ns = now_ns},
	};
	int result = store->ops->commit(store->store, &op, 1, now_ns);

	if (result != 0)
		return result;
	return op.outcome == TW_DURABLE_DONE || op.outcome == TW_DURABLE_ATTEMPTED;
}

/*
 * Opens the file with its lock, as a process with timers does. Ends the read transaction first.
 * Otherwise the open could not empty the log.
 */
static int store_open(struct twi_tool_file *file, const char *path, struct tw_durable_store *ret,
		      struct tw_durable_opened *ret_opened)
{
	int result = tw_durable_store_file(path, ret);

	twi_database_end_read(&file->database);
	/* Number 0 is no kind. A file without kinds has no timers. */
	if (result == 0)
		result = ret->ops->open(ret->store, (const char *const *)file->kinds.names + 1,
					file->kinds.count == 0 ? 0 : file->kinds.count - 1,
					ret_opened);
	return result;
}

/* What a command changes: a timer or a dead letter by its id, or a kind by its name. */
struct wanted {
	struct tw_durable_id id;
	/* The second operation is tried if the first finds nothing. */
	enum tw_durable_op_type first, second;
	const char *kind; /* name of the kind, or NULL if the id counts */
	bool paused;
};

static int change_kind(const struct twi_tool_file *file, const struct tw_durable_store *store,
		       const struct wanted *wanted)
{
	uint32_t number = twi_tool_kind_number(&file->kinds, wanted->kind);
	int result;

	if (number == 0)
		return 0;
	/* The store was opened with all kinds but number 0, so its numbers are one less. */
	result = store->ops->pause(store->store, number - 1, wanted->paused);
	return result == 0 ? 1 : result;
}

static int change_any(const struct twi_tool_file *file, const struct tw_durable_store *store,
		      const struct wanted *wanted)
{
	int result;

	if (wanted->kind != NULL)
		return change_kind(file, store, wanted);
	result = change(store, wanted->first, wanted->id);
	return result == 0 && wanted->second != wanted->first
		       ? change(store, wanted->second, wanted->id)
		       : result;
}

static int change_file(struct twi_tool_file *file, const char *path, const struct wanted *wanted)
{
	struct tw_durable_opened opened = {.clean = 0};
	struct tw_durable_store store = {.store = NULL};
	int result;

	if (file->kinds.count == 0)
		return -ENOENT;
	result = store_open(file, path, &store, &opened);
	if (result == 0)
		result = change_any(file, &store, wanted);
	/*
	 * If the last process crashed, the next one must still learn that. So this close marks the
	 * file as clean only if it was clean before.
	 */
	if (store.store != NULL)
		store.ops->close(store.store, opened.clean != 0);
	return result == 0 ? -ENOENT : result < 0 ? result : 0;
}

int twi_tool_cancel(struct twi_tool_file *file, const char *path, struct tw_durable_id id)
{
	const struct wanted wanted = {
		.id = id,
		.first = TW_DURABLE_OP_DELETE,
		.second = TW_DURABLE_OP_DROP,
	};

	return change_file(file, path, &wanted);
}

int twi_tool_revive(struct twi_tool_file *file, const char *path, struct tw_durable_id id)
{
	const struct wanted wanted = {
		.id = id,
		.first = TW_DURABLE_OP_REVIVE,
		.second = TW_DURABLE_OP_REVIVE,
	};

	return change_file(file, path, &wanted);
}

int twi_tool_pause(struct twi_tool_file *file, const char *path, const char *kind, bool paused)
{
	const struct wanted wanted = {.kind = kind, .paused = paused};

	return change_file(file, path, &wanted);
}

int twi_tool_holder(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char *name = twi_files_name(path, "-lock");
	int fd = name == NULL ? -1 : open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int holder = 0;

	if (fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
		holder = (int)lock.l_pid;
	if (fd >= 0)
		close(fd);
	free(name);
	return holder;
}

/* Makes the copy durable, before the command reports success. */
static int copy_sync(const char *copy)
{
	int fd = open(copy, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 || fsync(fd) != 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return result == 0 ? twi_files_sync_directory(copy) : result;
}

static int copy_make(struct twi_tool_file *file, const char *copy)
{
	char *text = sqlite3_mprintf("VACUUM INTO %Q", copy);
	int result = text == NULL ? -ENOMEM : 0;

	/* The read transaction must end first, because VACUUM cannot run inside a transaction. */
	twi_database_end_read(&file->database);
	if (result == 0)
		result = twi_database_execute(&file->database, text);
	sqlite3_free(text);
	return result == 0 ? copy_sync(copy) : result;
}

int twi_tool_backup(struct twi_tool_file *file, const char *copy)
{
	/*
	 * First makes an empty file with mode 0600, which SQLite then fills. So no other user can
	 * read the copy meanwhile.
	 */
	int result = twi_tool_new(copy);
	int fd = result == 0 ? open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return result == 0 ? -errno : result;
	close(fd);
	result = copy_make(file, copy);
	if (result != 0)
		unlink(copy);
	return result;
}
