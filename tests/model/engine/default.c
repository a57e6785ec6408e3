/* SPDX-License-Identifier: MIT */
/*
 * Races the first calls of tw_default_engine against each other, and against a thread that sets the
 * options (E120). All callers must get one engine, fully initialised, with the options that were
 * accepted.
 *
 * Seen to fail with these defects:
 * - default_make() publishes the engine by a plain store instead of a swap;
 * - the pointer `made` to the engine is stored or loaded relaxed;
 * - default_make() reads the options (`wished`) relaxed.
 */
#include "engine/engine.h"
#include "world.h"

#include <errno.h>

enum { WISHED_SLOTS = 64 };

static struct tw_engine *found[MODEL_FIBERS];
static struct tw_options options;
static int wish_code;

static void open_threads(void)
{
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

static void check_one(void)
{
	MODEL_CHECK(found[1] == found[2]);
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
