/* SPDX-License-Identifier: MIT */
/*
 * Calls that the tests make from every place where the library runs user code, and the result that
 * each call must return there. Each table has the calls of one subject. A tour makes all calls, one
 * after the other.
 */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include "probe.h"

#include <errno.h>

/* The places where the library runs user code. Only places that can change a call's result are
 * distinguished. */
enum place { ON_WORKER, IN_EXECUTOR, IN_HAND_BACK, IN_CANCEL, PLACES };

/* The moment at which a tour of calls begins. */
enum moment { AT_CALLBACK, AT_FINALISER, AT_DISPATCH, AT_HAND_BACK };

/* A value that no call returns. */
#define NOT_CALLED INT64_MIN

enum { CALLS_MAX = 180 };

struct tour {
	struct fixture fixture;
	enum place place;
	enum moment moment;
	struct tw_handle self;
	struct tw_handle made;
	struct tw_handle many[2];
	struct tw_engine *other;
	struct tw_clock *other_clock;
	struct tw_due due; /* the timeout that the dispatch hook accepted */
	struct tw_retry *queue;
	struct tw_retry_handle task;
	struct tw_keyed *table;
	struct tw_group *group;
	struct tw_scope *scope;
	struct tw_engine *scaled_engine;
	struct tw_scaled *scaled;
	struct tw_handle scaled_handle;
	int64_t result[CALLS_MAX];
	int tours;
};

struct call {
	/*
	 * The name of the called function. After a comma: other functions that the call covers, or
	 * a remark.
	 */
	const char *name;
	int64_t (*make)(struct tour *tour);
	/*
	 * The expected result for each place: on the worker, in an executor, in a hand-back, in the
	 * finaliser of a cancel.
	 */
	int64_t expected[PLACES];
};

#define EVERYWHERE(result)                                                                         \
	{                                                                                          \
		(result), (result), (result), (result)                                             \
	}

/* A call without a name ends a table. */
extern const struct call process_calls[], timeout_calls[], layer_calls[];

#endif
