/* SPDX-License-Identifier: MIT */
/*
 * Ends a process with kill -9 at each test point of the store. These points are before and after
 * each step of a commit, a move, a move out of the inbox, a burial, a checkpoint, the recovery of
 * the log, an open and a close. A child uses the store, and keeps the model in memory that it
 * shares with its parent. After the child's end, the parent opens the store and compares it with
 * the model.
 *
 * Seen to fail with these defects: a move does not delete the old row; serials are reserved without
 * a commit.
 */
#include "check.h"
#include "model.h"

#include "base/test_point.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SESSIONS = 2,
	COMMITS = 12,
};

static char directory[64], path[80];
static struct model *model;
/* how many test points were passed, and at which one the child is killed; 0: at none */
static uint64_t passed, kill_at;

void twi_test_point(const char *name)
{
	(void)name;
	if (++passed == kill_at)
		(void)kill(getpid(), SIGKILL);
}

static void clear(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	check_int(system(command), 0);
}

static void child_run(uint64_t nth)
{
	kill_at = nth;
	passed = 0;
	for (int session = 0; session < SESSIONS; session++) {
		if (model_open(model) != 0)
			_exit(2);
		for (int i = 0; i < COMMITS; i++)
			if (model_commit(model) != 0)
				_exit(3);
		model_close(model, session % 2 == 0);
	}
	_exit(0);
}

/* Returns false if the child reached its end. */
static bool child_killed(uint64_t nth)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		child_run(nth);
	check_int(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		return true;
	check_int(WEXITSTATUS(status), 0);
	return false;
}

static uint64_t stride(void)
{
	const char *text = getenv("TESTS_DURABLE_STRIDE");

	return text == NULL ? 1 : 7 * strtoull(text, NULL, 10);
}

Test(kill, at_each_point_loses_nothing_acknowledged)
{
	bool killed = true;

	model = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	cr_assert(model != MAP_FAILED);
	for (uint64_t nth = 1; killed; nth += stride()) {
		snprintf(directory, sizeof(directory), "/tmp/tickwheel-durable-XXXXXX");
		cr_assert(mkdtemp(directory) != NULL);
		snprintf(path, sizeof(path), "%s/timers", directory);
		model_init(model, path, nth);
		model->next = model->now;
		killed = child_killed(nth);
		kill_at = 0;
		/*
		 * The kill may have been inside a commit. Then the file has one of the two states.
		 */
		model->unknown = true;
		check_int(model_open(model), 0);
		cr_assert(model_check(model), "point %llu: %s", (unsigned long long)nth,
			  model->failure);
		for (int i = 0; i < 3; i++)
			check_int(model_commit(model), 0);
		cr_assert(model_check(model), "point %llu, later: %s", (unsigned long long)nth,
			  model->failure);
		model_close(model, true);
		clear();
	}
	munmap(model, sizeof(*model));
}
