/* SPDX-License-Identifier: MIT */
/*
 * The tour's scope, with an engine of its own. It must grow beyond its own slots, or reject a
 * schedule. After its end no member may be left.
 */
#include "tour_inner.h"

#include <errno.h>

enum { TIMEOUTS = 40 };

static _Atomic int64_t expired;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&expired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static int64_t one_schedule(struct tw_scope *scope, int number, struct tw_handle *ret_handle)
{
	if (number % 2 == 0)
		return tour_code(CALL_SCOPE_SCHEDULE, 0,
				 tw_scope_schedule(scope, number % 4 ? MS : TW_NEVER, &kind, NULL,
						   ret_handle));
	return tour_code(CALL_SCOPE_SCHEDULE_AT, 0,
			 tw_scope_schedule_at(scope, TW_NEVER, &kind, NULL, ret_handle));
}

static void scope_use(struct tw_scope *scope)
{
	struct tw_handle handle[TIMEOUTS];
	int64_t accepted = 0, cancelled = 0;

	for (int i = 0; i < TIMEOUTS; i++)
		accepted += one_schedule(scope, i, &handle[accepted]) == 0;
	for (int64_t i = 0; i < accepted; i += 4)
		cancelled += tour_code(CALL_CANCEL, 0, tw_cancel(handle[i])) == TW_CANCEL_DONE;
	RACE_CHECK(tour_code(CALL_SCOPE_COUNT, 0, tw_scope_count(scope)) <= accepted - cancelled);
	tour_exactly(CALL_SCOPE_DESTROY, tw_scope_destroy(scope), -EBUSY);
	cancelled += tour_code(CALL_SCOPE_END, 0, tw_scope_end(scope));
	tour_exactly(CALL_SCOPE_END_WAIT, tw_scope_end_wait(scope, TW_NEVER), 0);
	RACE_CHECK(accepted == cancelled + atomic_load(&expired));
	tour_exactly(CALL_SCOPE_SCHEDULE, tw_scope_schedule(scope, 0, &kind, NULL, NULL),
		     -ESHUTDOWN);
}

void step_scopes(void)
{
	struct tw_scope *scope = NULL;
	struct tw_engine *engine = NULL;
	struct tw_options options;

	atomic_store(&expired, 0);
	tour_exactly(CALL_OPTIONS_INIT, tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	if (tour_code(CALL_CREATE, 0, tw_engine_create(&options, &engine)) != 0)
		return;
	tour_exactly(CALL_SCOPE_CREATE, tw_scope_create(NULL, NULL, &scope), -EINVAL);
	if (tour_code(CALL_SCOPE_CREATE, 0,
		      tw_scope_create(engine, tour.plan->allocator, &scope)) == 0) {
		scope_use(scope);
		tour_exactly(CALL_SCOPE_DESTROY, tw_scope_destroy(scope), 0);
	}
	tour_exactly(CALL_STOP, tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(engine), 0);
}
