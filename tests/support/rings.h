/* SPDX-License-Identifier: MIT */
/*
 * Lets an engine in loop mode use rings. Every loop engine runs timeouts in order, and so gets them
 * through link queues, not rings. But the tests of the rings need a loop, because only there the
 * test decides when the worker takes entries. So they switch the order off. Users cannot do that.
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
