/* SPDX-License-Identifier: MIT */
/*
 * Tests events that may take an open store away from its process: a fork, a close of the lock file
 * in the same process, a move of a file. Also tests files that the process may not open.
 *
 * Seen to fail with these defects: a forked child may open a store although its parent has one open;
 * log_bytes() does not look at the lock, or at the path; an open closes a lock file that another
 * thread has locked; the permissions are not checked, so SQLite's codes -EIO and -EROFS are
 * returned; a file -shm that cannot grow is reported as an I/O error instead of a full disk.
 */
#include "check.h"
#include "model.h"

#include "base/test_point.h"
#include "durable/file/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static char directory[64], path[80], other[80];
static struct model model, second;

static void setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/tickwheel-held-XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/timers", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	model_init(&model, path, 1);
	model_init(&second, path, 2);
}

static void teardown(void)
{
	char command[128];

	model_close(&model, true);
	model_close(&second, true);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	check_int(system(command), 0);
}

static void name_make(char *name, size_t size, const char *ending)
{
	snprintf(name, size, "%s%s", path, ending);
}

/* Opens and closes a store in a child that is forked now. Returns the child's code. */
static int open_in_child(const char *name)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		second.path = name;
		_exit(-model_open(&second));
	}
	check_int(waitpid(child, &status, 0), child);
	return -WEXITSTATUS(status);
}

Test(held, child_opens_no_store_if_its_parent_had_one_open, .init = setup, .fini = teardown)
{
	check_int(open_in_child(path), 0);
	check_int(model_open(&model), 0);
	check_int(open_in_child(path), -ECHILD);
	check_int(open_in_child(other), -ECHILD);
	model_close(&model, true);
	check_int(open_in_child(path), 0);
}

/* Makes the call that the I/O thread makes once a second. The call also looks at the lock. */
static void guard(void)
{
	(void)model.store.ops->log_bytes(model.store.store);
}

Test(held, store_goes_on_while_nothing_happens, .init = setup, .fini = teardown)
{
	check_int(model_open(&model), 0);
	for (int i = 0; i < 3; i++) {
		guard();
		check_int(model_commit(&model), 0);
	}
}

Test(held, moved_file_is_noticed, .init = setup, .fini = teardown)
{
	check_int(model_open(&model), 0);
	check_int(rename(path, other), 0);
	guard();
	check_int(model_commit(&model), -ESTALE);
}

Test(held, removed_file_is_noticed, .init = setup, .fini = teardown)
{
	check_int(model_open(&model), 0);
	check_int(unlink(path), 0);
	guard();
	check_int(model_commit(&model), -ESTALE);
}

/* A child that was forked before the open. It locks the lock file when it gets a byte. */
struct rival {
	int ask[2], answer[2];
	pid_t process;
};

static void rival_live(const struct rival *rival)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char name[128], byte = 0;

	close(rival->ask[1]);
	while (read(rival->ask[0], &byte, 1) == 1) {
		name_make(name, sizeof(name), "-lock");
		byte = fcntl(open(name, O_RDWR), F_SETLK, &lock) == 0;
		check_int(write(rival->answer[1], &byte, 1), 1);
	}
	_exit(0);
}

static void rival_begin(struct rival *rival)
{
	check_int(pipe(rival->ask), 0);
	check_int(pipe(rival->answer), 0);
	rival->process = fork();
	if (rival->process == 0)
		rival_live(rival);
	close(rival->ask[0]);
}

static bool rival_locks(const struct rival *rival)
{
	char byte = 0;

	check_int(write(rival->ask[1], &byte, 1), 1);
	check_int(read(rival->answer[0], &byte, 1), 1);
	return byte != 0;
}

static void rival_end(const struct rival *rival)
{
	close(rival->ask[1]);
	check_int(waitpid(rival->process, NULL, 0), rival->process);
}

static void lock_close_own(void)
{
	char name[128];

	name_make(name, sizeof(name), "-lock");
	check_int(close(open(name, O_RDWR)), 0);
}

/* A close of the lock file in this process drops its lock. The next look takes the lock again. */
Test(held, lost_lock_is_taken_again, .init = setup, .fini = teardown)
{
	struct rival rival;

	rival_begin(&rival);
	check_int(model_open(&model), 0);
	lock_close_own();
	guard();
	check_true(!rival_locks(&rival));
	check_int(model_commit(&model), 0);
	rival_end(&rival);
}

Test(held, lock_that_another_process_has_got_is_noticed, .init = setup, .fini = teardown)
{
	struct rival rival;

	rival_begin(&rival);
	check_int(model_open(&model), 0);
	check_true(!rival_locks(&rival));
	lock_close_own();
	check_true(rival_locks(&rival));
	guard();
	check_int(model_commit(&model), -ESTALE);
	rival_end(&rival);
}

/* The programs of planted.py have no test points. */
#ifdef TWI_TEST_POINTS
static bool replaces;

/*
 * An open has looked at the lock file and claimed it. Then another process's failed open removes
 * the file, and another thread of this process opens the store.
 */
void twi_test_point(const char *name)
{
	char lock[128], kept[128];

	if (!replaces || strcmp(name, "file:claimed") != 0)
		return;
	replaces = false;
	name_make(lock, sizeof(lock), "-lock");
	name_make(kept, sizeof(kept), "-kept");
	check_int(rename(lock, kept), 0);
	check_int(model_open(&model), 0);
}

Test(held, failed_open_does_not_drop_the_lock_of_another_thread, .init = setup, .fini = teardown)
{
	struct rival rival;
	char lock[128];

	rival_begin(&rival);
	name_make(lock, sizeof(lock), "-lock");
	check_int(mknod(lock, S_IFREG | 0600, 0), 0);
	replaces = true;
	check_int(model_open(&second), -EBUSY);
	check_true(!replaces);
	check_true(!rival_locks(&rival));
	check_int(model_commit(&model), 0);
	rival_end(&rival);
}
#endif

/* Opens the store as a user without rights. Returns its code. */
static int open_as_nobody(void)
{
	int result;

	check_int(seteuid(NOBODY), 0);
	result = model_open(&second);
	model_close(&second, true);
	check_int(seteuid(0), 0);
	return result;
}

Test(held, missing_permissions_have_one_code, .init = setup, .fini = teardown)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-lock"};
	char name[128];

	if (geteuid() != 0)
		cr_skip_test("only root can become another user");
	check_int(chmod(directory, 0755), 0);
	check_int(open_as_nobody(), -EACCES);
	check_int(chmod(directory, 0777), 0);
	check_int(open_as_nobody(), 0);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		name_make(name, sizeof(name), endings[i]);
		check_int(close(open(name, O_RDWR | O_CREAT, 0600)), 0);
		check_int(chown(name, 0, 0), 0);
		check_int(open_as_nobody(), -EACCES);
		check_int(chown(name, NOBODY, NOBODY), 0);
		check_int(open_as_nobody(), 0);
	}
	check_int(chmod(path, 0400), 0);
	check_int(open_as_nobody(), -EACCES);
}

Test(held, index_of_the_log_that_cannot_grow_is_a_full_disk)
{
	check_int(twi_database_error(SQLITE_IOERR_SHMSIZE), -ENOSPC);
	check_int(twi_database_error(SQLITE_IOERR_READ), -EIO);
}
