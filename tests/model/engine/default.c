/* SPDX-License-Identifier: MIT */
/*
 * Races the first calls of tw_default_engine against each other, and against a thread that sets the
 * options (E120). All callers must get one engine, fully initialised, with the options that were
 * accepted. The other engines must be freed. Two threads that set options also race each other.
 *
 * Seen to fail with these defects:
 * - default_make() publishes the engine by a plain store instead of a swap;
 * - the pointer `made` to the engine is stored or loaded relaxed;
 * - default_make() reads the options (`wished`) relaxed;
 * - default_make() does not free the engine that no caller gets;
 * - twi_default_wish() does not acquire the options that it replaces and frees.
 */
#include "engine/engine.h"
#include "world.h"

#include <errno.h>

enum { WISHED_SLOTS = 64 };

static struct tw_engine *found[MODEL_FIBERS];
static struct tw_options options;
static int wish_code;
static _Atomic unsigned engines_alive;

static void *count_allocate(void *context, size_t bytes, size_t align)
{
	if (bytes == sizeof(struct tw_engine))
		(void)twi_fetch_add_relaxed(&engines_alive, 1U);
	return world_pages.allocate(context, bytes, align);
}

static void count_release(void *context, void *memory, size_t bytes, size_t align)
{
	if (bytes == sizeof(struct tw_engine))
		(void)twi_fetch_sub_relaxed(&engines_alive, 1U);
	world_pages.release(context, memory, bytes, align);
}

static const struct tw_allocator counting = {count_allocate, count_release, NULL};

static void open_threads(void)
{
	MODEL_CHECK(tw_memory_allocator_set(&counting) == 0);
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	MODEL_CHECK(twi_options_read(NULL, &options) == 0);
	options.wheel = TW_WHEEL_HASHED;
	options.slots = 1;
	MODEL_CHECK(twi_default_wish(&options) == 0);
	options.slots = WISHED_SLOTS;
	wish_code = 0;
}

static void ask(void)
{
	struct tw_engine *engine = twi_default_engine();

	/*
	 * These are plain reads of fields that the creator wrote. They race with the creator's
	 * writes if the engine was published without order.
	 */
	MODEL_CHECK(engine != NULL && engine->options.slots != 0);
	found[model_self()] = engine;
}

static void wish(void)
{
	wish_code = twi_default_wish(&options);
	MODEL_CHECK(wish_code == 0 || wish_code == -EBUSY);
}

/* Replaces options that another thread may just have set. */
static void wish_again(void)
{
	MODEL_CHECK(twi_default_wish(&options) == 0);
}

static void check_one(void)
{
	MODEL_CHECK(found[1] == found[2]);
	/* The default engine and the world's. */
	MODEL_CHECK(twi_load_relaxed(&engines_alive) == 2);
	world_close();
}

static void check_wished(void)
{
	uint32_t slots = found[1]->options.slots;

	MODEL_CHECK(slots == (wish_code == 0 ? WISHED_SLOTS : 1));
	world_close();
}

MODEL_HARNESS(default_first, .proves = "two first calls return the same engine",
	      .setup = open_threads, .thread = {ask, ask}, .finish = check_one, .preemptions = 1,
	      .weak = 1);
MODEL_HARNESS(default_wish, .proves = "the engine has the options that were accepted",
	      .setup = open_threads, .thread = {ask, wish}, .finish = check_wished,
	      .preemptions = 1, .weak = 1);
MODEL_HARNESS(default_wishes, .proves = "options that were replaced are freed after their last use",
	      .setup = open_threads, .thread = {wish_again, wish_again}, .finish = world_close,
	      .preemptions = 2, .weak = 1);
