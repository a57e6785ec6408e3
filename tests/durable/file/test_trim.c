/* SPDX-License-Identifier: MIT */
/*
 * The file removes dead letters that are older than a bound. If more letters than a limit are left,
 * it removes the oldest ones.
 *
 * Seen to fail with these defects: letters are removed in the order of their ids instead of their
 * ends; the count still includes letters that were removed by age; a call removes more letters than
 * it may; a removal is undone by a reopen.
 */
#include "check.h"
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { LETTERS = 20 };

#define BEGIN_NS INT64_C(1767225600000000000)
#define SECOND INT64_C(1000000000)

static char directory[64], path[80];
static struct tw_durable_store store;
static uint64_t serial;

static void open_store(void)
{
	static const char *const kinds[] = {"mail"};
	struct tw_durable_opened opened;

	check_int(tw_durable_store_file(path, &store), 0);
	check_int(store.ops->open(store.store, kinds, 1, &opened), 0);
}

static void setup(void)
{
	snprintf(directory, sizeof directory, "/tmp/tickwheel-durable-XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof path, "%s/timers", directory);
	open_store();
	check_int(store.ops->reserve(store.store, LETTERS, &serial), 0);
}

static void teardown(void)
{
	char command[128];

	store.ops->close(store.store, 1);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	check_int(system(command), 0);
}

static struct tw_durable_id id_of(int number)
{
	return (struct tw_durable_id){(uint64_t)(BEGIN_NS / (64 * SECOND)),
				      serial + (uint64_t)number};
}

/* Buries a letter that ended at second `at`. A letter with a smaller number has a smaller id. */
static void bury(int number, int64_t at)
{
	struct tw_durable_op ops[2] = {
		{.type = TW_DURABLE_OP_PUT, .row = {.id = id_of(number), .due_ns = BEGIN_NS}},
		{.type = TW_DURABLE_OP_BURY, .row = {.id = id_of(number), .attempt = 1}},
	};

	check_int(store.ops->commit(store.store, ops, 2, BEGIN_NS + at * SECOND), 0);
	check_int(ops[1].outcome, TW_DURABLE_DONE);
}

/* Buries all letters. The letter with the smallest id ends last. */
static void bury_all(void)
{
	for (int i = 0; i < LETTERS; i++)
		bury(i, LETTERS - i);
}

static int trim(uint64_t most, int64_t before, size_t max)
{
	return store.ops->dead_trim(store.store, most, BEGIN_NS + before * SECOND, max);
}

static int count_one(void *to, const struct tw_durable_row *row)
{
	int *numbers = to;

	numbers[++numbers[0]] = (int)(row->id.serial - serial);
	return 0;
}

/* Checks that the letters 0 to `count` - 1 are left. */
static void check_left(int count)
{
	int numbers[LETTERS + 2] = {0};

	check_int(store.ops->dead(store.store, (struct tw_durable_id){0, 0}, 1000, count_one,
				  numbers),
		  0);
	check_int(numbers[0], count);
	for (int i = 0; i < count; i++)
		check_int(numbers[i + 1], i);
}

Test(trim, nothing_is_removed_within_the_bounds, .init = setup, .fini = teardown)
{
	check_int(trim(0, 100, 10), 0);
	bury_all();
	check_int(trim(UINT64_MAX, 1, 1000), 0);
	check_int(trim(LETTERS, INT64_MIN / SECOND / 4, 1000), 0);
	check_left(LETTERS);
}

Test(trim, those_that_ended_before_a_time_are_removed, .init = setup, .fini = teardown)
{
	bury_all();
	/* The last four letters ended in the seconds 1 to 4. */
	check_int(trim(UINT64_MAX, 5, 1000), 4);
	check_left(LETTERS - 4);
	check_int(trim(UINT64_MAX, 5, 1000), 0);
}

Test(trim, the_oldest_beyond_a_number_are_removed, .init = setup, .fini = teardown)
{
	bury_all();
	check_int(trim(15, 0, 1000), 5);
	check_left(15);
	/* Two are removed by age, then three more by number. */
	check_int(trim(10, 8, 1000), 5);
	check_left(10);
	check_int(trim(0, 0, 1000), 10);
	check_left(0);
}

Test(trim, a_call_removes_as_many_as_it_may, .init = setup, .fini = teardown)
{
	bury_all();
	check_int(trim(5, 4, 2), 2);
	check_left(LETTERS - 2);
	check_int(trim(5, 4, 2), 2);
	check_left(LETTERS - 4);
	check_int(trim(5, 4, 100), 11);
	check_left(5);
}

Test(trim, a_removal_stays_after_a_reopen, .init = setup, .fini = teardown)
{
	bury_all();
	check_int(trim(3, 0, 1000), LETTERS - 3);
	store.ops->close(store.store, 1);
	open_store();
	check_left(3);
}
