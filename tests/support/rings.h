/* SPDX-License-Identifier: MIT */
/*
 * Rings in a loop. An engine with an order, as each loop is, gets its timeouts by link queues. But
 * only in a loop the test decides when the worker looks. So the tests of the rings take a loop
 * without an order, which users cannot have.
 */
#ifndef TESTS_RINGS_H
#define TESTS_RINGS_H

#include "engine/engine.h"

/* Must be called before the first timeout is scheduled. */
static inline void engine_use_rings(struct tw_engine *engine)
{
	engine->worker.ordered = false;
	engine->worker.quick = engine->worker.pending_limit == 0;
}

#endif
