/* SPDX-License-Identifier: MIT */
#include "durable/file/files.h"

#include "base/test_point.h"
#include "durable/file/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * The numbers of network file systems (<linux/magic.h> and others), where a lock or a sync depends
 * on another machine.
 */
static const uint32_t network[] = {
	0x6969,     /* NFS */
	0x517b,     /* SMB */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB 2 */
	0x5346414f, /* AFS */
	0x73757245, /* Coda */
	0x00c36400, /* Ceph */
	0x01021997, /* 9P */
	0x0bd00bd0, /* Lustre */
};

#define TMPFS UINT32_C(0x01021994)
#define RAMFS UINT32_C(0x858458f6)

char *twi_files_name(const char *path, const char *ending)
{
	char *name = NULL;

	return asprintf(&name, "%s%s", path, ending) < 0 ? NULL : name;
}

/* Resolves the folder of a path, so that SQLite opens a path without symbolic links. */
static int path_resolve(const char *path, char **ret)
{
	char copy[PATH_MAX], folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return name[0] == '\0' && slash == NULL ? -EINVAL : -EISDIR;
	if (strlen(path) >= sizeof(copy))
		return -ENAMETOOLONG;
	memcpy(copy, path, strlen(path) + 1);
	if (realpath(dirname(copy), folder) == NULL)
		return -errno;
	if (asprintf(ret, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name) < 0)
		return -ENOMEM;
	return 0;
}

static int file_system_check(const char *path, bool *ret_memory)
{
	char copy[PATH_MAX];
	struct statfs status;
	uint32_t type;

	snprintf(copy, sizeof(copy), "%s", path);
	if (statfs(dirname(copy), &status) != 0)
		return -errno;
	type = (uint32_t)status.f_type;
	for (size_t i = 0; i < sizeof(network) / sizeof(network[0]); i++)
		if (type == network[i])
			return -ENOTSUP;
	*ret_memory = type == TMPFS || type == RAMFS;
	return 0;
}

/*
 * Checks a path. Returns 0 for a regular file with one name, -ENOENT if there is no file, or
 * another code.
 */
static int kind_check(const char *path, struct stat *ret)
{
	if (lstat(path, ret) != 0)
		return -errno;
	if (S_ISDIR(ret->st_mode))
		return -EISDIR;
	if (S_ISLNK(ret->st_mode))
		return -ELOOP;
	if (!S_ISREG(ret->st_mode))
		return -EINVAL;
	return ret->st_nlink == 1 ? 0 : -EMLINK;
}

static int lock_claim(struct twi_files *files, const struct stat *status)
{
	int place = twi_claim_take(status->st_dev, status->st_ino);

	if (place < 0)
		return place;
	files->claim = place;
	return 0;
}

/*
 * Closes a file that the path led to after it had been replaced. If another thread of this process
 * has the file locked, or may have, the file stays open: the close would drop the lock.
 */
static void other_lock_close(struct twi_files *files, const struct stat *opened)
{
	int place = twi_claim_take(opened->st_dev, opened->st_ino);

	if (place >= 0) {
		close(files->lock);
		twi_claim_drop(place);
	}
	files->lock = -1;
}

/* Claims the lock file, then opens it. claim.h has the reason for this order. */
static int lock_open(struct twi_files *files, const char *path, const struct stat *status)
{
	struct stat opened;
	int result = lock_claim(files, status);

	if (result != 0)
		return result;
	TWI_TEST_POINT("file:claimed");
	files->lock = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	/* -ENOENT: the open that made the file has failed and removed it. */
	if (files->lock < 0)
		return errno == ENOENT ? -EBUSY : -errno;
	if (fstat(files->lock, &opened) != 0)
		return -errno;
	/* If the file was replaced between lstat() and open(), the claim is for another file. */
	if (opened.st_ino == status->st_ino && opened.st_dev == status->st_dev)
		return 0;
	other_lock_close(files, &opened);
	return -EBUSY;
}

/*
 * Makes the lock file without opening it. Another thread of the process may open and lock the new
 * file at once. If this thread had opened the file, its close would drop that lock.
 */
static int lock_make(const char *path)
{
	if (mknod(path, S_IFREG | 0600, 0) == 0)
		return 0;
	return errno == EEXIST ? -EBUSY : -errno;
}

static int lock_set(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
}

/* Checks, with the lock, that no other open has removed the file. files.h has the reason. */
static int lock_check(const struct twi_files *files, const char *path)
{
	struct stat locked, named;

	if (fstat(files->lock, &locked) != 0)
		return -errno;
	if (lstat(path, &named) != 0)
		return errno == ENOENT ? -EBUSY : -errno;
	return locked.st_ino == named.st_ino && locked.st_dev == named.st_dev ? 0 : -EBUSY;
}

static int lock_take(struct twi_files *files)
{
	char *path = twi_files_name(files->path, "-lock");
	struct stat status;
	bool made = false;
	int result;

	if (path == NULL)
		return -ENOMEM;
	result = kind_check(path, &status);
	if (result == -ENOENT) {
		result = lock_make(path);
		made = result == 0;
		if (made)
			result = kind_check(path, &status);
	}
	if (result == 0)
		result = lock_open(files, path, &status);
	if (result == 0) {
		TWI_TEST_POINT("file:locking");
		result = lock_set(files->lock);
	}
	if (result == 0)
		result = lock_check(files, path);
	files->made = made && result == 0;
	free(path);
	return result;
}

bool twi_files_held(const struct twi_files *files)
{
	return lock_set(files->lock) == 0;
}

int twi_files_sync_directory(const char *path)
{
	char copy[PATH_MAX];
	int fd, result = 0;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fsync(fd) != 0)
		result = -errno;
	close(fd);
	return result;
}

/* Checks the permissions of this process, for a file that need not exist. */
static int access_check(const char *path, const char *ending, int mode)
{
	char *name = twi_files_name(path, ending);
	int result = 0;

	if (name == NULL)
		return -ENOMEM;
	if (faccessat(AT_FDCWD, name, mode, AT_EACCESS) != 0 && errno != ENOENT)
		result = -errno;
	free(name);
	return result;
}

/*
 * Checks that this process may read and write SQLite's files, and make files in their directory.
 * SQLite reports missing permissions as I/O errors or as a read-only file.
 */
static int permissions_check(const char *path)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-lock"};
	char copy[PATH_MAX];
	int result;

	snprintf(copy, sizeof(copy), "%s", path);
	result = access_check(dirname(copy), "", W_OK | X_OK);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && result == 0; i++)
		result = access_check(path, endings[i], R_OK | W_OK);
	return result;
}

/* Makes the database file if there is none. SQLite gives the files next to it the same mode. */
static int database_make(const char *path)
{
	struct stat status;
	int fd, result = kind_check(path, &status);

	if (result == -ENOENT) {
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		close(fd);
		result = 0;
	}
	/*
	 * Syncs the directory even if the file existed, because an earlier process may have died
	 * before its sync.
	 */
	return result == 0 ? twi_files_sync_directory(path) : result;
}

int twi_files_take(const char *path, struct twi_files *ret)
{
	struct twi_files files = {.lock = -1, .claim = -1};
	struct stat status;
	int result = path_resolve(path, &files.path);

	if (result == 0)
		result = file_system_check(files.path, &files.memory);
	if (result == 0) {
		result = kind_check(files.path, &status);
		result = result == -ENOENT ? 0 : result;
	}
	if (result == 0)
		result = permissions_check(files.path);
	if (result == 0)
		result = lock_take(&files);
	if (result == 0)
		result = database_make(files.path);
	if (result == 0)
		*ret = files;
	else
		twi_files_undo(&files);
	return result;
}

void twi_files_drop(struct twi_files *files)
{
	if (files->lock >= 0)
		close(files->lock);
	if (files->claim >= 0)
		twi_claim_drop(files->claim);
	free(files->path);
	*files = (struct twi_files){.lock = -1, .claim = -1};
}

void twi_files_undo(struct twi_files *files)
{
	char *path = files->made ? twi_files_name(files->path, "-lock") : NULL;

	/* If there is no memory, or the system refuses, the lock file stays. That does no harm. */
	if (path != NULL)
		(void)unlink(path);
	free(path);
	twi_files_drop(files);
}
