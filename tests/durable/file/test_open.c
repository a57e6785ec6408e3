/* SPDX-License-Identifier: MIT */
/*
 * Tests which paths an open accepts, and that only one process may have a store open. An open that
 * is rejected must return its code, and must leave the file as it was.
 *
 * Seen to fail with these defects: the store makes no claim in the process (file/claim.h); a second
 * open drops the lock of the first; the file has the mode 0644; an open turns a foreign database
 * into a store; a failed open leaves its lock file behind, or removes a lock file that it has not
 * made; an open does not check the name of the file that it has locked.
 */
#include "check.h"
#include "model.h"

#include "base/test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64], path[80], other[80];
static struct model model, second;

static void clear(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	check_int(system(command), 0);
}

static void setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/tickwheel-durable-XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/timers", directory);
	snprintf(other, sizeof(other), "%s/other", directory);
	model_init(&model, path, 1);
	model_init(&second, path, 2);
}

static void teardown(void)
{
	model_close(&model, true);
	model_close(&second, true);
	clear();
}

static int open_at(const char *name)
{
	int result;

	second.path = name;
	result = model_open(&second);
	model_close(&second, true);
	return result;
}

static mode_t mode_of(const char *name)
{
	struct stat status;

	check_int(stat(name, &status), 0);
	return status.st_mode & 07777;
}

static void execute(const char *name, const char *sql)
{
	sqlite3 *db = NULL;

	check_int(sqlite3_open(name, &db), SQLITE_OK);
	check_int(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	check_int(sqlite3_close(db), SQLITE_OK);
}

Test(open, arguments_are_checked, .init = setup, .fini = teardown)
{
	struct tw_durable_store store;

	check_int(tw_durable_store_file(NULL, &store), -EINVAL);
	check_int(tw_durable_store_file("", &store), -EINVAL);
	check_int(tw_durable_store_file("x", NULL), -EINVAL);
}

Test(open, store_that_is_never_opened_is_freed, .init = setup, .fini = teardown)
{
	struct tw_durable_store store;

	check_int(tw_durable_store_file(path, &store), 0);
	store.ops->close(store.store, 0);
}

Test(open, files_are_for_the_owner_alone, .init = setup, .fini = teardown)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-lock", "-reserve"};
	char name[128];

	umask(0);
	check_int(model_open(&model), 0);
	check_int(model_commit(&model), 0);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		check_int(mode_of(name), 0600);
	}
}

Test(open, directory_is_refused, .init = setup, .fini = teardown)
{
	check_int(mkdir(other, 0700), 0);
	check_int(open_at(other), -EISDIR);
	check_int(open_at(directory), -EISDIR);
}

Test(open, missing_directory_is_refused, .init = setup, .fini = teardown)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/none/timers", directory);
	check_int(open_at(name), -ENOENT);
}

Test(open, symbolic_link_is_refused, .init = setup, .fini = teardown)
{
	check_int(symlink(path, other), 0);
	check_int(open_at(other), -ELOOP);
	check_int(access(path, F_OK), -1);
}

Test(open, link_in_place_of_the_lock_is_refused, .init = setup, .fini = teardown)
{
	char name[128];

	snprintf(name, sizeof(name), "%s-lock", path);
	check_int(symlink(other, name), 0);
	check_int(open_at(path), -ELOOP);
	check_int(access(other, F_OK), -1);
}

Test(open, hard_link_is_refused, .init = setup, .fini = teardown)
{
	check_int(open_at(path), 0);
	check_int(link(path, other), 0);
	check_int(open_at(path), -EMLINK);
	check_int(open_at(other), -EMLINK);
	check_int(unlink(other), 0);
	check_int(open_at(path), 0);
}

Test(open, pipe_is_refused_at_once, .init = setup, .fini = teardown)
{
	check_int(mkfifo(other, 0600), 0);
	check_int(open_at(other), -EINVAL);
}

Test(open, name_that_is_too_long_is_refused, .init = setup, .fini = teardown)
{
	static char name[5000];

	memset(name, 'x', sizeof(name) - 1);
	check_int(open_at(name), -ENAMETOOLONG);
	name[300] = '\0';
	check_int(open_at(name), -ENAMETOOLONG);
}

Test(open, empty_file_becomes_a_store, .init = setup, .fini = teardown)
{
	close(open(path, O_CREAT | O_WRONLY, 0600));
	check_int(open_at(path), 0);
}

Test(open, text_is_no_store_and_stays, .init = setup, .fini = teardown)
{
	char text[4000], left[5000];
	int fd = open(path, O_CREAT | O_RDWR, 0600);

	memset(text, 't', sizeof(text));
	check_int(write(fd, text, sizeof(text)), sizeof(text));
	check_int(open_at(path), -EUCLEAN);
	check_int(pread(fd, left, sizeof(left), 0), sizeof(text));
	check_int(memcmp(text, left, sizeof(text)), 0);
	close(fd);
}

Test(open, database_of_another_program_is_refused_and_stays, .init = setup, .fini = teardown)
{
	execute(path, "CREATE TABLE bookmarks (url)");
	check_int(open_at(path), -EEXIST);
	execute(path, "INSERT INTO bookmarks VALUES (1)");
	execute(path, "PRAGMA application_id = 5");
	check_int(open_at(path), -EEXIST);
}

Test(open, version_of_the_future_is_refused, .init = setup, .fini = teardown)
{
	check_int(open_at(path), 0);
	execute(path, "PRAGMA user_version = 5");
	check_int(open_at(path), -ENOTSUP);
	execute(path, "PRAGMA user_version = 0");
	check_int(open_at(path), -EUCLEAN);
	execute(path, "PRAGMA user_version = 4");
	check_int(open_at(path), 0);
}

static bool lock_there(void)
{
	char name[128];

	snprintf(name, sizeof(name), "%s-lock", path);
	return access(name, F_OK) == 0;
}

Test(open, failed_open_removes_the_lock_file_that_it_made, .init = setup, .fini = teardown)
{
	execute(path, "CREATE TABLE bookmarks (url)");
	check_int(open_at(path), -EEXIST);
	check_true(!lock_there());
	check_int(unlink(path), 0);
	check_int(open_at(path), 0);
	check_true(lock_there());
	execute(path, "PRAGMA user_version = 0");
	check_int(open_at(path), -EUCLEAN);
	check_true(lock_there());
}

/* The programs of planted.py have no test points. */
#ifdef TWI_TEST_POINTS
/* NULL, or what other processes do before an open locks its lock file */
static void (*before_lock)(void);

void twi_test_point(const char *name)
{
	void (*act)(void) = before_lock;

	if (act == NULL || strcmp(name, "file:locking") != 0)
		return;
	before_lock = NULL;
	act();
}

static void lock_remove(void)
{
	char name[128];

	snprintf(name, sizeof(name), "%s-lock", path);
	check_int(unlink(name), 0);
}

static void lock_replace(void)
{
	char name[128], kept[128];

	snprintf(name, sizeof(name), "%s-lock", path);
	snprintf(kept, sizeof(kept), "%s-kept", path);
	check_int(rename(name, kept), 0);
	check_int(mknod(name, S_IFREG | 0600, 0), 0);
}

/*
 * One process has created the lock file, and the tested open has opened it. Then the first
 * process's open fails and removes the file, and a third process may create another file of this
 * name. The tested open locks the removed file, and must notice that the name no longer leads to
 * this file.
 */
Test(open, lock_of_a_removed_file_does_not_count, .init = setup, .fini = teardown)
{
	check_int(open_at(path), 0);
	before_lock = lock_remove;
	check_int(open_at(path), -EBUSY);
	check_true(!lock_there());
	check_int(open_at(path), 0);
	before_lock = lock_replace;
	check_int(open_at(path), -EBUSY);
	check_true(lock_there());
	check_int(open_at(path), 0);
}
#endif

Test(open, twice_in_one_process_is_busy, .init = setup, .fini = teardown)
{
	check_int(model_open(&model), 0);
	for (int i = 0; i < 3; i++)
		check_int(model_open(&second), -EBUSY);
	check_int(model_commit(&model), 0);
	model_close(&model, true);
	check_int(model_open(&second), 0);
}

/*
 * Another process, which was forked before this one opened a store. For each byte that it gets, it
 * opens and closes the store, and answers with the code.
 */
static int elsewhere_asked[2], elsewhere_answers[2];
static pid_t elsewhere;

static void elsewhere_live(void)
{
	char byte;

	close(elsewhere_asked[1]);
	while (read(elsewhere_asked[0], &byte, 1) == 1) {
		int result = model_open(&second);

		model_close(&second, true);
		if (write(elsewhere_answers[1], &result, sizeof(result)) != sizeof(result))
			break;
	}
	_exit(0);
}

static void elsewhere_begin(void)
{
	check_int(pipe(elsewhere_asked), 0);
	check_int(pipe(elsewhere_answers), 0);
	elsewhere = fork();
	if (elsewhere == 0)
		elsewhere_live();
	close(elsewhere_asked[0]);
}

static int open_elsewhere(void)
{
	int result = 0;

	check_int(write(elsewhere_asked[1], "", 1), 1);
	check_int(read(elsewhere_answers[0], &result, sizeof(result)), sizeof(result));
	return result;
}

static void elsewhere_end(void)
{
	close(elsewhere_asked[1]);
	check_int(waitpid(elsewhere, NULL, 0), elsewhere);
}

/*
 * A second open in this process fails, and must not drop the lock. So another process still finds
 * the store busy.
 */
Test(open, in_another_process_is_busy, .init = setup, .fini = teardown)
{
	elsewhere_begin();
	check_int(model_open(&model), 0);
	check_int(open_elsewhere(), -EBUSY);
	check_int(model_open(&second), -EBUSY);
	check_int(open_elsewhere(), -EBUSY);
	model_close(&model, true);
	check_int(open_elsewhere(), 0);
	elsewhere_end();
}

/* A child that outlives its parent must not keep the parent's lock. */
Test(open, forked_child_does_not_keep_the_lock, .init = setup, .fini = teardown)
{
	int pipe_fd[2];
	char byte;
	pid_t child;

	check_int(model_open(&model), 0);
	check_int(pipe(pipe_fd), 0);
	child = fork();
	if (child == 0) {
		close(pipe_fd[1]);
		_exit((int)read(pipe_fd[0], &byte, 1));
	}
	model_close(&model, true);
	check_int(model_open(&second), 0);
	close(pipe_fd[1]);
	check_int(waitpid(child, NULL, 0), child);
}

Test(open, reader_sees_it_and_may_stay, .init = setup, .fini = teardown)
{
	sqlite3 *db = NULL;

	check_int(model_open(&model), 0);
	check_int(model_commit(&model), 0);
	check_int(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	check_int(sqlite3_exec(db, "BEGIN; SELECT * FROM timer", NULL, NULL, NULL), SQLITE_OK);
	for (int i = 0; i < 20; i++)
		check_int(model_commit(&model), 0);
	cr_assert(model_check(&model), "%s", model.failure);
	model_close(&model, false);
	/* While the reader holds the log, the open cannot empty it. */
	check_int(model_open(&model), -EBUSY);
	check_int(sqlite3_close(db), SQLITE_OK);
	check_int(model_open(&model), 0);
	cr_assert(model_check(&model), "%s", model.failure);
}

Test(open, foreign_write_is_noticed, .init = setup, .fini = teardown)
{
	check_int(model_open(&model), 0);
	check_int(model_commit(&model), 0);
	execute(path, "DELETE FROM dead");
	execute(path, "INSERT INTO kind VALUES (99, 'foreign', 0)");
	check_int(model_commit(&model), -ESTALE);
	check_int(model_commit(&model), -ESTALE);
}

/*
 * Another program keeps the file locked. The commit must return -EAGAIN and change nothing, so that
 * the caller can try again.
 */
Test(open, foreign_lock_is_again, .init = setup, .fini = teardown)
{
	sqlite3 *db = NULL;

	check_int(model_open(&model), 0);
	check_int(model_commit(&model), 0);
	check_int(sqlite3_open(path, &db), SQLITE_OK);
	check_int(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	check_int(model_commit(&model), -EAGAIN);
	check_int(sqlite3_close(db), SQLITE_OK);
	check_int(model_commit(&model), 0);
	cr_assert(model_check(&model), "%s", model.failure);
}

static int ignored(void *to, const struct tw_durable_row *row)
{
	(void)row;
	++*(int *)to;
	return 0;
}

/*
 * The store finds kinds by name, if they come in another order, and if this process does not know
 * some.
 */
Test(open, kinds_are_found_by_name, .init = setup, .fini = teardown)
{
	static const char *const turned[] = {"x", "new", "payment.notify", "mail"};
	static const char *const none[] = {"new"};
	struct tw_durable_opened opened;
	struct tw_durable_store store;
	int all = 0, few = 0;

	check_int(model_open(&model), 0);
	for (int i = 0; i < 20; i++)
		check_int(model_commit(&model), 0);
	model_close(&model, true);
	check_int(tw_durable_store_file(path, &store), 0);
	check_int(store.ops->open(store.store, turned, 4, &opened), 0);
	check_int(opened.unknown_kinds, 0);
	check_int(store.ops->near(store.store, NULL, INT64_MAX - 1, 10000, ignored, &all), 0);
	check_at_least(all, 1);
	store.ops->close(store.store, 1);
	check_int(tw_durable_store_file(path, &store), 0);
	check_int(store.ops->open(store.store, none, 1, &opened), 0);
	check_int(opened.unknown_kinds, MODEL_KINDS);
	check_int(store.ops->near(store.store, NULL, INT64_MAX - 1, 10000, ignored, &few), 0);
	check_int(few, 0);
	store.ops->close(store.store, 1);
	check_int(model_open(&model), 0);
	cr_assert(model_check(&model), "%s", model.failure);
}

/* Opens the store with these kinds. Stores the marks of paused kinds in *ret_paused. */
static struct tw_durable_store paused_open(const char *const *kinds, size_t count,
					   unsigned char *ret_paused)
{
	struct tw_durable_opened opened;
	struct tw_durable_store store;

	check_int(tw_durable_store_file(path, &store), 0);
	check_int(store.ops->open(store.store, kinds, count, &opened), 0);
	check_int(store.ops->paused(store.store, ret_paused), 0);
	return store;
}

Test(open, marks_of_paused_kinds_stay, .init = setup, .fini = teardown)
{
	static const char *const kinds[] = {"a", "b", "c"}, *const turned[] = {"d", "c", "b"};
	unsigned char paused[3] = {9, 9, 9};
	struct tw_durable_store store = paused_open(kinds, 3, paused);

	check_int(paused[0] + paused[1] + paused[2], 0);
	check_int(store.ops->pause(store.store, 1, 1), 0);
	check_int(store.ops->pause(store.store, 1, 1), 0);
	check_int(store.ops->pause(store.store, 0, 1), 0);
	check_int(store.ops->pause(store.store, 2, 0), 0);
	check_int(store.ops->pause(store.store, 3, 1), -EINVAL);
	store.ops->close(store.store, 0);
	/*
	 * The mark of a kind that this process does not have is not returned, and stays in the
	 * file.
	 */
	store = paused_open(turned, 3, paused);
	check_int(paused[0] * 100 + paused[1] * 10 + paused[2], 1);
	check_int(store.ops->pause(store.store, 2, 0), 0);
	store.ops->close(store.store, 1);
	store = paused_open(kinds, 3, paused);
	check_int(paused[0] * 100 + paused[1] * 10 + paused[2], 100);
	store.ops->close(store.store, 1);
}

Test(open, a_damaged_mark_is_noticed, .init = setup, .fini = teardown)
{
	static const char *const kinds[] = {"a"};
	struct tw_durable_opened opened;
	struct tw_durable_store store;
	unsigned char paused[1];

	check_int(open_at(path), 0);
	for (int i = 0; i < 2; i++) {
		/* Writes first a wrong checksum, then a mark of a kind that does not exist. */
		store = paused_open(kinds, 1, paused);
		check_int(store.ops->pause(store.store, 0, 1), 0);
		store.ops->close(store.store, 1);
		execute(path,
			i == 0 ? "UPDATE paused SET crc = crc + 1" : "UPDATE paused SET kind = 77");
		check_int(tw_durable_store_file(path, &store), 0);
		check_int(store.ops->open(store.store, kinds, 1, &opened), 0);
		check_int(store.ops->paused(store.store, paused), -EUCLEAN);
		store.ops->close(store.store, 1);
		execute(path, "DELETE FROM paused");
	}
}

Test(open, commit_refuses_what_is_no_id, .init = setup, .fini = teardown)
{
	struct tw_durable_op op = {.type = TW_DURABLE_OP_DELETE};

	check_int(model_open(&model), 0);
	check_int(model.store.ops->commit(model.store.store, &op, 1, 0), -EINVAL);
	op.row.id.serial = UINT64_MAX;
	check_int(model.store.ops->commit(model.store.store, &op, 1, 0), -EINVAL);
	op = (struct tw_durable_op){.type = TW_DURABLE_OP_PUT, .row = {.id = {1, 1}, .kind = 77}};
	check_int(model.store.ops->commit(model.store.store, &op, 1, 0), -EINVAL);
	check_int(model_commit(&model), 0);
}

Test(open, memory_file_system_keeps_the_lesser_level, .init = setup, .fini = teardown)
{
	char name[] = "/dev/shm/tickwheel-durable-XXXXXX", file[64];
	char command[128];

	check_int(model_open(&model), 0);
	check_int(model.opened.level, TW_DURABLE_LEVEL_DISK);
	if (mkdtemp(name) == NULL)
		cr_skip_test("no /dev/shm");
	snprintf(file, sizeof(file), "%s/timers", name);
	check_int(open_at(file), 0);
	check_int(second.opened.level, TW_DURABLE_LEVEL_PROCESS);
	snprintf(command, sizeof(command), "rm -r %s", name);
	check_int(system(command), 0);
}
