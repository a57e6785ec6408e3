/* SPDX-License-Identifier: MIT */
/*
 * The bounds on dead letters: how many a set keeps, and for how long.
 *
 * Seen to fail with these defects: the set ignores either bound; the count of dead letters includes
 * removed ones; the set trims at each step of the I/O thread; a trim of many letters stops after
 * its first part; the set ignores that a trim has failed.
 */
#include "scene.h"

static struct tw_durable_stats stats(void)
{
	struct tw_durable_stats ret;

	check_int(tw_durable_stats_get(scene.set, &ret, sizeof ret), 0);
	return ret;
}

/* Makes dead letters: timers whose first run gives up. */
static void bury(int count)
{
	scene.result = TW_RETRY_GIVE_UP;
	for (int i = 0; i < count; i++)
		(void)scene_schedule(&plain, 0, "letter");
	scene_settle();
	scene.run_count = 0;
}

/* Returns the smallest serial of the dead letters. */
static uint64_t first_dead(void)
{
	uint64_t first = 0;

	for (int i = 0; i < DISK_BUCKETS; i++) {
		for (const struct disk_row *row = scene.disk->bucket[i]; row != NULL;
		     row = row->next) {
			if (row->row.dead != 0 && (first == 0 || row->row.id.serial < first))
				first = row->row.id.serial;
		}
	}
	return first;
}

Test(durable_dead, without_bounds_all_are_kept, .init = scene_make, .fini = scene_end)
{
	scene_open();
	bury(50);
	scene_pass(5 * SECOND);
	check_int(disk_dead(scene.disk), 50);
	check_int(scene.disk->trims, 0);
	check_int(stats().dead_removed, 0);
}

Test(durable_dead, the_oldest_beyond_dead_max_are_removed, .init = scene_make, .fini = scene_end)
{
	uint64_t first;

	scene.options.dead_max = 10;
	scene_open();
	bury(20);
	first = first_dead();
	scene_pass(2 * SECOND);
	check_int(disk_dead(scene.disk), 10);
	bury(3);
	scene_pass(2 * SECOND);
	check_int(disk_dead(scene.disk), 10);
	cr_assert(first_dead() > first);
	check_int(stats().dead, 23);
	check_int(stats().dead_removed, 13);
}

Test(durable_dead, letters_older_than_dead_keep_are_removed, .init = scene_make, .fini = scene_end)
{
	scene.options.dead_keep_ns = 10 * SECOND;
	scene_open();
	bury(5);
	scene_pass(6 * SECOND);
	bury(7);
	check_int(disk_dead(scene.disk), 12);
	scene_pass(6 * SECOND);
	check_int(disk_dead(scene.disk), 7);
	scene_pass(6 * SECOND);
	check_int(disk_dead(scene.disk), 0);
	check_int(stats().dead_removed, 12);
}

Test(durable_dead, a_look_comes_once_a_second, .init = scene_make, .fini = scene_end)
{
	uint64_t before;

	scene.options.dead_max = 10;
	scene_open();
	before = scene.disk->trims;
	scene_pass(10 * SECOND);
	cr_assert(scene.disk->trims - before >= 9 && scene.disk->trims - before <= 11, "%d",
		  (int)(scene.disk->trims - before));
}

/* One step of the I/O thread removes at most 1,000 dead letters. */
Test(durable_dead, many_are_removed_without_a_pause, .init = scene_make, .fini = scene_end)
{
	scene_open();
	bury(3500);
	scene_close();
	scene.options.dead_max = 1;
	scene_open();
	check_int(disk_dead(scene.disk), 1);
	check_int(stats().dead_removed, 3499);
}

Test(durable_dead, a_full_or_busy_store_is_asked_again, .init = scene_make, .fini = scene_end)
{
	scene.options.dead_max = 1;
	scene_open();
	bury(5);
	scene.disk->trim_fault = -EAGAIN;
	scene_pass(2 * SECOND);
	scene.disk->trim_fault = -ENOSPC;
	scene_pass(2 * SECOND);
	check_int(stats().state, TW_DURABLE_STATE_OPEN);
	scene.disk->trim_fault = 0;
	scene_pass(2 * SECOND);
	cr_assert(disk_dead(scene.disk) <= 1);
}

Test(durable_dead, a_trim_that_fails_is_a_failure_of_the_store, .init = scene_make)
{
	scene.options.dead_max = 1;
	scene_open();
	scene.disk->trim_fault = -EIO;
	scene_pass(2 * SECOND);
	check_int(stats().state, TW_DURABLE_STATE_FAILED);
	check_int(tw_durable_close(scene.set, 0), -EIO);
	scene.set = NULL;
	scene_end();
}

Test(durable_dead, a_store_that_cannot_is_rejected, .init = scene_make, .fini = scene_end)
{
	static const struct tw_durable_kind *const kinds[] = {&plain};
	struct tw_durable *set;

	scene.options.store = disk_store_least(scene.disk);
	scene.options.dead_keep_ns = 1;
	check_int(tw_durable_open(scene.engine, kinds, 1, &scene.options, &set), -ENOTSUP);
}
