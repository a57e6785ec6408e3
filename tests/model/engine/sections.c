/* SPDX-License-Identifier: MIT */
/*
 * The sections and grace periods of thread/rcu.c (E10, E160). All other harnesses have sections of
 * the model instead. This file compiles thread/rcu.c once more, under other names, with two readers
 * in a block.
 *
 * A writer hides an object, waits for a grace period, and destroys the object. A thread that finds
 * the object inside a section must have finished with it before the writer destroys it. An access
 * that is not ordered with the destruction is a race, which the model reports.
 *
 * Seen to fail with these defects:
 * - twi_rcu_synchronize() makes no barrier, or does not look at a reader, or at a word of `shared`;
 * - the beginning of a section has no barrier, or has it before its store;
 * - a nested leave ends the section;
 * - twi_rcu_leave(), twi_rcu_leave_shared() or reader_give() stores relaxed;
 * - the beginning of a section stores relaxed;
 * - reader_wait() or shared_wait() loads relaxed;
 * - a relaxed access takes a reader, gives a reader back, or adds a block to the list.
 */
#include "thread/barrier.h"

/*
 * In the model a barrier may fail. The library then ends the process, so this file makes the
 * barrier again.
 */
static bool barrier_once_more(void)
{
	while (!twi_barrier_all())
		;
	return true;
}

#undef TWI_RCU_BY_CALL
#define twi_barrier_all barrier_once_more
#define TWI_READERS_NEAR 2
#define TWI_READER_LOOKS 1
#define twi_rcu_call_enter sections_call_enter
#define twi_rcu_call_leave sections_call_leave
#define twi_rcu_enter sections_enter
#define twi_rcu_leave sections_leave
#define twi_rcu_enter_first sections_enter_first
#define twi_rcu_leave_shared sections_leave_shared
#define twi_rcu_register_thread sections_register_thread
#define twi_rcu_synchronize sections_synchronize
#define twi_rcu_synchronize_until sections_synchronize_until
#define twi_rcu_inside sections_inside
#define twi_rcu_flavor sections_flavor
#define twi_rcu_light sections_light
#define twi_reader_self (*sections_reader())
#define shared_depth (*sections_depth())
#define shared_at (*sections_at())
#define exit_rounds (*sections_rounds())

#include <stdint.h>

struct twi_reader **sections_reader(void);
static uint32_t *sections_depth(void);
static uint32_t *sections_at(void);
static uint32_t *sections_rounds(void);

#include "thread/rcu.c"

#include "model.h"

/* The thread data of thread/rcu.c, one of each per fiber. */
static struct twi_reader *reader_of[MODEL_FIBERS];
static uint32_t depth_of[MODEL_FIBERS];
static uint32_t at_of[MODEL_FIBERS];
static uint32_t rounds_of[MODEL_FIBERS];

struct twi_reader **sections_reader(void)
{
	return &reader_of[model_self()];
}

static uint32_t *sections_depth(void)
{
	return &depth_of[model_self()];
}

static uint32_t *sections_at(void)
{
	return &at_of[model_self()];
}

static uint32_t *sections_rounds(void)
{
	return &rounds_of[model_self()];
}

static _Atomic bool hidden;
static int object; /* plain memory */
static int places[MODEL_FIBERS];

static void light_open(void)
{
	sections_light = true;
	exit_key_made = true;
}

static void fenced_open(void)
{
	sections_light = false;
	exit_key_made = true;
}

/* Opens so that no thread gets a reader. The sections of all threads then count in `shared`. */
static void shared_open(void)
{
	sections_light = true;
	exit_key_made = false;
}

static void registered(void)
{
	sections_register_thread();
	MODEL_CHECK(twi_reader_self != NULL);
}

/* Gives thread 0 its reader before the runs, which saves steps. */
static void known_open(void)
{
	light_open();
	model_as(0, registered);
}

static void use(void)
{
	/* RELAXED: the section makes the writer wait until this thread has read `object`. */
	if (!twi_load_relaxed(&hidden)) {
		MODEL_CHECK(object == 0);
		places[model_self()] = object;
	}
}

static void reader_once(void)
{
	sections_enter();
	use();
	sections_leave();
}

static void reader_nested(void)
{
	sections_enter();
	sections_enter();
	sections_leave();
	use();
	sections_leave();
	MODEL_CHECK(!sections_inside());
}

static void reader_twice(void)
{
	reader_once();
	reader_once();
}

/* The thread ends, and another one may get its reader. */
static void reader_ends(void)
{
	reader_once();
	thread_exits(NULL);
}

static void writer(void)
{
	/* RELAXED: the grace period makes this store visible to later sections. */
	twi_store_relaxed(&hidden, true);
	sections_synchronize();
	object = -1;
}

/* Makes the first block full, so that the threads need a second one. */
static void crowded_open(void)
{
	light_open();
	twi_store_relaxed(&near.readers.used, READERS_NEAR);
}

MODEL_HARNESS(sections_known, .proves = "a grace period waits for a section", .setup = known_open,
	      .thread = {reader_once, writer}, .preemptions = 3, .weak = 2, .random_runs = 500);
MODEL_HARNESS(sections_fenced, .proves = "it does so without membarrier", .setup = fenced_open,
	      .thread = {reader_once, writer}, .preemptions = 3, .weak = 2, .random_runs = 500);
MODEL_HARNESS(sections_nested, .proves = "it waits for the outermost section", .setup = known_open,
	      .thread = {reader_nested, writer}, .preemptions = 3, .weak = 2, .random_runs = 500);
MODEL_HARNESS(sections_two, .proves = "it waits for sections one after the other",
	      .setup = known_open, .thread = {reader_twice, writer}, .preemptions = 2, .weak = 2,
	      .random_runs = 500);
MODEL_HARNESS(sections_shared, .proves = "it waits for threads without a reader",
	      .setup = shared_open, .thread = {reader_once, reader_nested, writer},
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(sections_readers, .proves = "a reader passes from thread to thread",
	      .setup = light_open, .thread = {reader_ends, reader_ends, writer}, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(sections_crowd, .proves = "the list of readers grows", .setup = crowded_open,
	      .thread = {reader_once, reader_once, writer}, .preemptions = 2, .weak = 1,
	      .random_runs = 500);
