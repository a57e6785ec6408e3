/* SPDX-License-Identifier: MIT */
/*
 * Random operations on a real file against a model. Each session ends with a clean close, or with a
 * close that is not clean.
 *
 * Seen to fail with these defects: a move does not delete the old row, or does not write its
 * pointer; a delete leaves the key; a row is in two tables; an id is put twice; a load returns rows
 * out of order.
 */
#include "check.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	SESSIONS = 6,
	COMMITS = 40,
};

static char directory[64], path[80];
static struct model model;

static void setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/tickwheel-durable-XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/timers", directory);
}

static void teardown(void)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-lock", "-reserve", "-journal"};
	char name[128];

	model_close(&model, false);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		unlink(name);
	}
	rmdir(directory);
}

static void sessions(uint64_t seed)
{
	model_init(&model, path, seed);
	for (int session = 0; session < SESSIONS; session++) {
		check_int(model_open(&model), 0);
		check_int(model.opened.clean, session == 0 || session % 2 == 0);
		cr_assert(model_check(&model), "open %d: %s", session, model.failure);
		for (int i = 0; i < COMMITS; i++)
			check_int(model_commit(&model), 0);
		cr_assert(model_check(&model), "session %d: %s", session, model.failure);
		model_close(&model, session % 2 == 1);
	}
}

Test(model, random_operations_with_reopen, .init = setup, .fini = teardown)
{
	sessions(1);
}

Test(model, random_operations_with_reopen_other_seed, .init = setup, .fini = teardown)
{
	sessions(2);
}

/*
 * A clean close stores the time exactly. After an unclean end the stored time may be up to two
 * seconds old.
 */
Test(model, highest_time_is_kept, .init = setup, .fini = teardown)
{
	model_init(&model, path, 3);
	check_int(model_open(&model), 0);
	check_int(model_commit(&model), 0);
	model_close(&model, true);
	check_int(model_open(&model), 0);
	check_int(model.opened.highest_ns, model.now_ns);
	for (int i = 0; i < 20; i++)
		check_int(model_commit(&model), 0);
	model_close(&model, false);
	check_int(model_open(&model), 0);
	check_at_least(model.opened.highest_ns, model.now_ns - 2 * NS_PER_S);
	check_at_most(model.opened.highest_ns, model.now_ns);
}
