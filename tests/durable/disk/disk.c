/* SPDX-License-Identifier: MIT */
/*
 * libc declares each call under two names (such as open and open64), and this file replaces both.
 * So the first name must not be a macro for the second.
 */
#undef _FILE_OFFSET_BITS

#include "disk.h"

#include "image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	FILES = 32,
	DESCRIPTORS = 1024,
	NAME = 512, /* the longest path, in bytes; a longer one ends the test */
};

/*
 * A name, the file that it names now, and the file that it would name after a power failure. NULL:
 * no file.
 */
struct name {
	char path[NAME];
	struct image *now, *durable;
};

static struct {
	char directory[NAME]; /* the watched directory; "": none */
	struct name names[FILES];
	int count;
	struct image *images[4 * FILES]; /* all images ever created, which are freed at the end */
	int image_count;
	struct image *opened[DESCRIPTORS];
	bool is_directory[DESCRIPTORS];
	uint64_t calls[DISK_CALLS], bytes;
	enum disk_call fail_call;
	uint64_t fail_at, die_at;
	int error;
	bool sticky, struck, dead;
} disk;

static bool watching(void)
{
	return disk.directory[0] != '\0';
}

static struct image *image_new(void)
{
	if (disk.image_count == 4 * FILES)
		abort();
	return disk.images[disk.image_count++] = image_create();
}

/*
 * Returns the name of a file of the directory, and creates it if it is new. Returns NULL for other
 * files.
 */
static struct name *name_of(const char *path)
{
	size_t length = strlen(disk.directory);

	if (!watching() || strncmp(path, disk.directory, length) != 0 || path[length] != '/')
		return NULL;
	for (int i = 0; i < disk.count; i++)
		if (strcmp(disk.names[i].path, path) == 0)
			return &disk.names[i];
	if (disk.count == FILES)
		abort();
	if (strlen(path) >= NAME)
		abort();
	strcpy(disk.names[disk.count].path, path);
	return &disk.names[disk.count++];
}

/* Returns whether SQLite keeps the file of this name only in memory. */
static bool is_shared_memory(const char *path)
{
	size_t length = strlen(path);

	return length > 4 && strcmp(path + length - 4, "-shm") == 0;
}

static struct image *image_at(int fd)
{
	return watching() && fd >= 0 && fd < DESCRIPTORS ? disk.opened[fd] : NULL;
}

/* Counts a call, and returns the error that it must report, 0, or DISK_SHORT. */
static int strike(enum disk_call call)
{
	disk.calls[call]++;
	if (call != DISK_READ && ++disk.calls[DISK_ANY] == disk.die_at)
		disk.dead = disk.struck = true;
	if (disk.dead)
		return EIO;
	if (disk.fail_at == 0)
		return 0;
	if (call != disk.fail_call && (disk.fail_call != DISK_ANY || call == DISK_READ))
		return 0;
	if (disk.calls[disk.fail_call] == disk.fail_at ||
	    (disk.sticky && disk.calls[disk.fail_call] > disk.fail_at)) {
		disk.struck = true;
		return disk.error;
	}
	return 0;
}

static int failed(int error)
{
	errno = error;
	return -1;
}

static int open_real(const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void opened_set(int fd, struct name *name, bool created)
{
	if (fd < 0 || fd >= DESCRIPTORS)
		abort();
	if (created)
		name->now = image_new();
	disk.opened[fd] = name->now;
}

static int open_watched(const char *path, int flags, mode_t mode)
{
	struct name *name = name_of(path);
	struct stat status;
	bool created;
	int error, fd;

	if (name == NULL) {
		fd = open_real(path, flags, mode);
		if (fd >= 0 && fd < DESCRIPTORS)
			disk.is_directory[fd] = watching() && strcmp(path, disk.directory) == 0;
		return fd;
	}
	error = strike(DISK_OPEN);
	if (error > 0 && (error != EROFS || (flags & O_ACCMODE) != O_RDONLY))
		return failed(error);
	created = (flags & O_CREAT) != 0 && lstat(path, &status) != 0;
	fd = open_real(path, flags, mode);
	if (fd >= 0)
		opened_set(fd, name, created);
	return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
	return (flags & O_CREAT) != 0 ? (mode_t)va_arg(arguments, unsigned int) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_watched(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_watched(path, flags, mode);
}

int close(int fd)
{
	if (fd >= 0 && fd < DESCRIPTORS) {
		disk.opened[fd] = NULL;
		disk.is_directory[fd] = false;
	}
	return (int)syscall(SYS_close, fd);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t offset)
{
	int error = image_at(fd) == NULL ? 0 : strike(DISK_READ);

	if (error > 0 && !disk.dead)
		return failed(error);
	if (error == DISK_SHORT)
		count /= 2;
	return (ssize_t)syscall(SYS_pread64, fd, bytes, count, offset);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
	return pread64(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset)
{
	struct image *image = image_at(fd);
	ssize_t done;
	int error;

	if (image == NULL)
		return (ssize_t)syscall(SYS_pwrite64, fd, bytes, count, offset);
	error = strike(DISK_WRITE);
	if (error > 0)
		return failed(error);
	if (error == DISK_SHORT)
		count = (count + 1) / 2;
	done = (ssize_t)syscall(SYS_pwrite64, fd, bytes, count, offset);
	if (done > 0) {
		image_write(image, (uint64_t)offset, bytes, (size_t)done);
		disk.bytes += (uint64_t)done;
	}
	return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	return pwrite64(fd, bytes, count, offset);
}

static int truncate_watched(int fd, off64_t length)
{
	struct image *image = image_at(fd);
	int error;

	if (image == NULL)
		return (int)syscall(SYS_ftruncate, fd, length);
	error = strike(DISK_TRUNCATE);
	if (error > 0)
		return failed(error);
	image_truncate(image, (uint64_t)length);
	return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate64(int fd, off64_t length)
{
	return truncate_watched(fd, length);
}

int ftruncate(int fd, off_t length)
{
	return truncate_watched(fd, length);
}

/* Makes the present names of the directory durable. */
static void names_sync(void)
{
	for (int i = 0; i < disk.count; i++)
		disk.names[i].durable = disk.names[i].now;
}

static int sync_watched(int fd)
{
	bool directory = watching() && fd >= 0 && fd < DESCRIPTORS && disk.is_directory[fd];
	struct image *image = image_at(fd);
	int error;

	if (image == NULL && !directory)
		return 0;
	error = strike(DISK_SYNC);
	if (image != NULL && !disk.dead)
		image_sync(image, error != 0);
	if (error != 0)
		return failed(error == DISK_SHORT ? EIO : error);
	if (directory)
		names_sync();
	return 0;
}

int fsync(int fd)
{
	return watching() ? sync_watched(fd) : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return watching() ? sync_watched(fd) : (int)syscall(SYS_fdatasync, fd);
}

int unlink(const char *path)
{
	struct name *name = name_of(path);
	int error, result;

	if (name == NULL)
		return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	error = strike(DISK_UNLINK);
	if (error > 0)
		return failed(error);
	result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	if (result == 0)
		name->now = NULL;
	return result;
}

static void names_load(void)
{
	DIR *directory = opendir(disk.directory);
	struct dirent *entry;
	char path[2 * NAME];

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		struct name *name;

		if (entry->d_type != DT_REG)
			continue;
		snprintf(path, sizeof(path), "%s/%s", disk.directory, entry->d_name);
		name = name_of(path);
		name->now = name->durable = image_new();
		image_load(name->now, path);
	}
	if (directory != NULL)
		closedir(directory);
}

void disk_begin(const char *directory)
{
	disk_end();
	snprintf(disk.directory, sizeof(disk.directory), "%s", directory);
	names_load();
	memset(disk.calls, 0, sizeof(disk.calls));
}

void disk_end(void)
{
	for (int i = 0; i < disk.image_count; i++)
		image_free(disk.images[i]);
	memset(&disk, 0, sizeof(disk));
}

void disk_fail(enum disk_call call, uint64_t nth, int error, bool sticky)
{
	disk_heal();
	disk.fail_call = call;
	disk.fail_at = disk.calls[call] + nth;
	disk.error = error;
	disk.sticky = sticky;
}

void disk_die(uint64_t nth)
{
	disk_heal();
	disk.die_at = disk.calls[DISK_ANY] + nth;
}

void disk_heal(void)
{
	disk.fail_at = disk.die_at = 0;
	disk.struck = disk.dead = disk.sticky = false;
}

uint64_t disk_count(enum disk_call call)
{
	return disk.calls[call];
}

uint64_t disk_bytes(void)
{
	return disk.bytes;
}

bool disk_struck(void)
{
	return disk.struck;
}

static void name_restore(const struct name *name, enum disk_loss loss, struct random *random)
{
	bool renamed = loss == DISK_RANDOM && random_below(random, 2) == 0;
	struct image *image = renamed ? name->now : name->durable;

	if (is_shared_memory(name->path))
		image = NULL;
	if (image == NULL)
		syscall(SYS_unlinkat, AT_FDCWD, name->path, 0);
	else
		image_restore(image, name->path, loss, random);
}

void disk_restart(enum disk_loss loss, uint64_t seed)
{
	struct random random = {seed};
	char directory[NAME];

	disk_heal();
	/*
	 * Writes the real files again, unless everything is kept. Does not watch the directory
	 * meanwhile.
	 */
	snprintf(directory, sizeof(directory), "%s", disk.directory);
	if (loss != DISK_KEEP)
		disk.directory[0] = '\0';
	for (int i = 0; i < disk.count && loss != DISK_KEEP; i++)
		name_restore(&disk.names[i], loss, &random);
	if (loss != DISK_KEEP)
		disk_begin(directory);
}
