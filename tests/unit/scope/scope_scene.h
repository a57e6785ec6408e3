/* SPDX-License-Identifier: MIT */
/* Shared by the tests of scopes: a scope of a fixture's engine. */
#ifndef TESTS_SCOPE_SCENE_H
#define TESTS_SCOPE_SCENE_H

#include "probe.h"

#include <errno.h>

static inline struct tw_scope *scope_open(struct tw_engine *engine)
{
	struct tw_scope *scope = NULL;

	check_int(tw_scope_create(engine, NULL, &scope), 0);
	return scope;
}

static inline void scope_close(struct tw_scope *scope)
{
	check_at_least(tw_scope_end(scope), 0);
	check_int(tw_scope_destroy(scope), 0);
}

static inline struct tw_handle scope_schedule(struct tw_scope *scope, int64_t delay_ns,
					      const struct tw_kind *kind, void *arg)
{
	struct tw_handle handle = TW_HANDLE_NONE;

	check_int(tw_scope_schedule(scope, delay_ns, kind, arg, &handle), 0);
	return handle;
}

#endif
