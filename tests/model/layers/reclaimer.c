/* SPDX-License-Identifier: MIT */
/*
 * The reclaimer: the thread that frees the entries of keyed timeouts. The thread is created, ends
 * and is created again, or cannot be created (E54, E55). Meanwhile tw_keyed_destroy waits for its
 * table (E80).
 *
 * Seen to fail with this defect: a thread that cannot create the reclaimer's thread wakes no
 * destroyer. Then keyed_destroy_create, keyed_destroy_again and keyed_destroy_threads hang.
 */
#include "keyed/entry.h"
#include "keyed/reclaim.h"
#include "world.h"

#include <errno.h>

static struct tw_keyed *table;
static int told[MODEL_FIBERS];

static int64_t on_run(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	(void)arg;
	return TW_KEYED_END;
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, NULL);

/* In the next harnesses, the reclaimer's thread is created, ends, and is created again. */
static void open_nothing(void)
{
	world_open(NULL);
	world_threads(4, WORLD_STOCK_FILLED);
}

static void open_and_close(void)
{
	MODEL_CHECK(twi_reclaim_open() == 0);
	twi_reclaim_close();
}

/* A table without an engine. The reclaimer needs only these fields of it. */
static struct tw_keyed bare;
static struct twi_keyed_entry *bare_entry;

/*
 * Takes an entry. The table has no free entry, so this call tries to create the reclaimer's thread
 * unless another thread has the claim.
 */
static struct twi_keyed_entry *bare_take(void)
{
	bare.allocator = &world_pages;
	bare.key_bytes_max = 1;
	return twi_keyed_take(&bare, &(struct twi_key){"k", 1, 0});
}

/* Checks that a table that is opened now has a reclaimer, whatever happened before. */
static void work_is_done(void)
{
	MODEL_CHECK(twi_reclaim_open() == 0);
	twi_keyed_retire(bare_take());
	twi_reclaim_wait(&bare);
	twi_reclaim_close();
	world_close();
}

/*
 * Does the same without a destroyer that waits. A destroyer would do the work of a missing thread
 * and hide the defect.
 */
static void thread_is_there(void)
{
	MODEL_CHECK(twi_reclaim_open() == 0);
	model_wait_idle();
	MODEL_CHECK(!twi_reclaim_claim());
	twi_reclaim_close();
	world_close();
}

/* Opens with a table that is pushed again while the reclaimer has it. Both pushes must count. */
static void open_pushed(void)
{
	open_nothing();
	MODEL_CHECK(twi_reclaim_claim());
	bare_entry = bare_take();
	twi_keyed_retire(bare_take());
}

static void reclaim(void)
{
	(void)twi_reclaim_turn();
}

static void retire_second(void)
{
	twi_keyed_retire(bare_entry);
}

static void bare_is_back(void)
{
	while (twi_reclaim_turn())
		;
	twi_reclaim_wait(&bare);
	world_close();
}

/*
 * Opens a process in which no thread can be created. A second caller relies on the first one, which
 * is trying to create the thread.
 */
static void open_no_threads(void)
{
	open_nothing();
	model_no_threads = true;
}

static void open_alone(void)
{
	told[model_self()] = twi_reclaim_open();
	MODEL_CHECK(told[model_self()] == 0 || told[model_self()] == -ENOMEM);
}

static void thread_comes_later(void)
{
	model_no_threads = false;
	for (int fiber = 1; fiber <= 2; fiber++) {
		if (told[fiber] != 0)
			continue;
		twi_keyed_retire(bare_take());
		MODEL_CHECK(!twi_reclaim_claim());
		twi_reclaim_wait(&bare);
		twi_reclaim_close();
	}
	world_close();
}

/*
 * Opens a process in which no thread can be created, with a table whose entry only a reclaimer can
 * free. The table's destroyer meets another caller that tries to create the thread and fails.
 */
static void open_left_alone(void)
{
	struct tw_keyed_options options;

	world_open_layer();
	/* Takes the claim, so that no thread is created before there is an entry. */
	MODEL_CHECK(twi_reclaim_claim());
	MODEL_CHECK(tw_keyed_options_init(&options, sizeof options) == 0);
	options.seed = 1;
	options.reserve = 1;
	options.allocator = &world_pages;
	MODEL_CHECK(tw_keyed_create(world.engine, &options, &table) == 0);
	MODEL_CHECK(tw_keyed_schedule(table, "k", 1, TW_NEVER, &kind, NULL, NULL) == 0);
	MODEL_CHECK(tw_keyed_cancel(table, "k", 1, TW_KEYED_ANY) == TW_KEYED_DONE);
	world_turn();
	twi_reclaim_give_up();
	model_no_threads = true;
}

/* Opens in the same way with a second table that has an entry in use. */
static void open_two_left_alone(void)
{
	open_left_alone();
	MODEL_CHECK(twi_reclaim_claim());
	MODEL_CHECK(twi_reclaim_open() == 0);
	bare_entry = bare_take();
	twi_reclaim_give_up();
}

/* Opens with both tables pushed to the reclaimer. A thread of the harness has the claim. */
static void open_two_pushed(void)
{
	open_two_left_alone();
	MODEL_CHECK(twi_reclaim_claim());
	twi_keyed_retire(bare_entry);
}

static void destroy_table(void)
{
	MODEL_CHECK(tw_keyed_destroy(table) == 0);
}

/* Waits like tw_keyed_destroy. The write is a race if another thread still touches the table. */
static void destroy_bare(void)
{
	twi_reclaim_wait(&bare);
	bare.grace = NULL;
}

static void retire_and_destroy_bare(void)
{
	twi_keyed_retire(bare_entry);
	destroy_bare();
}

static void again(void)
{
	twi_reclaim_again();
	told[model_self()] = -ENOMEM;
}

static void threads_return(void)
{
	model_no_threads = false;
}

/*
 * Ends the harness after both destroys have returned. A thread of the harness still has the claim.
 */
static void both_destroyed(void)
{
	model_no_threads = false;
	world_close();
}

/* Checks that no thread has the claim at the end. */
static void claim_is_free(void)
{
	if (told[2] == 0)
		twi_reclaim_close();
	MODEL_CHECK(twi_reclaim_claim());
	model_no_threads = false;
	world_close();
}

/*
 * Closes the last table, if a thread of the harness has opened one. If the reclaimer's thread was
 * created, it ends then.
 */
static void created_and_closed(void)
{
	if (told[2] == 0)
		twi_reclaim_close();
	world_close();
}

MODEL_HARNESS(keyed_threads,
	      .proves = "a new table has a reclaimer, even if an earlier reclaimer is ending",
	      .setup = open_nothing, .thread = {open_and_close, open_and_close},
	      .finish = work_is_done, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_threads_stay,
	      .proves = "a table without work has a reclaimer, even if an earlier one is ending",
	      .setup = open_nothing, .thread = {open_and_close, open_and_close},
	      .finish = thread_is_there, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_no_threads, .proves = "a table without a reclaimer gets one when it grows",
	      .setup = open_no_threads, .thread = {open_alone, open_alone},
	      .finish = thread_comes_later, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_retire_turn,
	      .proves = "a table that is pushed again during a turn is looked at again",
	      .setup = open_pushed, .thread = {reclaim, retire_second}, .finish = bare_is_back,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_destroy_create,
	      .proves = "destroy returns while another thread fails to create the reclaimer",
	      .setup = open_left_alone, .thread = {destroy_table, open_alone},
	      .finish = claim_is_free, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_destroy_again,
	      .proves = "destroy returns if creating the reclaimer fails while the table grows",
	      .setup = open_left_alone, .thread = {destroy_table, again}, .finish = claim_is_free,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_destroy_destroy,
	      .proves = "two concurrent destroys return if creating the reclaimer fails",
	      .setup = open_two_left_alone, .thread = {destroy_table, retire_and_destroy_bare},
	      .finish = claim_is_free, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_destroy_threads,
	      .proves = "destroy returns if the reclaimer can be created only later",
	      .setup = open_left_alone, .thread = {destroy_table, open_alone, threads_return},
	      .finish = created_and_closed, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_destroy_both, .proves = "one turn for two tables wakes both destroyers",
	      .setup = open_two_pushed, .thread = {destroy_table, destroy_bare, reclaim},
	      .finish = both_destroyed, .preemptions = 2, .weak = 0, .random_runs = 500);
