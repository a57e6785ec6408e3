/* SPDX-License-Identifier: MIT */
/*
 * The tour's scaled kind, with an engine of its own. Each accepted timeout must run, be cancelled
 * or be handed back. A change of the factor and a turn need no memory.
 */
#include "tour_inner.h"

#include <errno.h>
#include <math.h>

enum { TIMEOUTS = 30 };

static _Atomic int64_t expired;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&expired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	int64_t *unexpired = context;

	(void)handle;
	(void)arg;
	(void)remaining_ns;
	*unexpired += its_kind == &kind;
}

static void factor_use(struct tw_engine *engine)
{
	double factor;

	tour_exactly(CALL_SCALED_FACTOR_SET, tw_scaled_factor_set(engine, NAN), -EINVAL);
	tour_exactly(CALL_SCALED_FACTOR_SET, tw_scaled_factor_set(engine, 2), -ERANGE);
	tour_exactly(CALL_SCALED_FACTOR_SET, tw_scaled_factor_set(engine, 0), 0);
	tour_exactly(CALL_SCALED_FACTOR_GET, tw_scaled_factor_get(engine, &factor), 0);
	RACE_CHECK(factor <= 0);
}

static void one_use(struct tw_scaled *scaled, struct tw_handle handle)
{
	int64_t deadline_ns;

	tour_exactly(CALL_SCALED_TOUCH, tw_scaled_touch(scaled, handle), TW_RESCHEDULE_DONE);
	tour_exactly(CALL_SCALED_DEADLINE, tw_scaled_deadline(scaled, handle, &deadline_ns), 0);
}

static void scaled_use(struct tw_engine *engine, struct tw_scaled *scaled)
{
	struct tw_handle handle[TIMEOUTS];
	int64_t accepted = 0, cancelled = 0, unexpired = 0;

	for (int i = 0; i < TIMEOUTS; i++)
		accepted +=
			tour_code(CALL_SCALED_SCHEDULE, 0,
				  tw_scaled_schedule(scaled, &kind, NULL, &handle[accepted])) == 0;
	RACE_CHECK(tour_code(CALL_SCALED_PENDING, 0, tw_scaled_pending(scaled)) == accepted);
	for (int64_t i = 0; i < accepted; i += 2)
		one_use(scaled, handle[i]);
	for (int64_t i = 0; i < accepted; i += 4)
		cancelled += tour_code(CALL_CANCEL, 0, tw_cancel(handle[i])) == TW_CANCEL_DONE;
	factor_use(engine);
	(void)tour_code(CALL_POLL, 0, tw_engine_poll(engine, 0));
	tour_exactly(CALL_SCALED_DESTROY, tw_scaled_destroy(scaled), -EBUSY);
	tour_exactly(CALL_SCALED_STOP, tw_scaled_stop(scaled, on_unexpired, &unexpired, TW_NEVER),
		     0);
	RACE_CHECK(accepted == cancelled + unexpired + atomic_load(&expired));
	tour_exactly(CALL_SCALED_SCHEDULE, tw_scaled_schedule(scaled, &kind, NULL, NULL),
		     -ESHUTDOWN);
	tour_exactly(CALL_SCALED_DESTROY, tw_scaled_destroy(scaled), 0);
}

void step_scaled(void)
{
	struct tw_scaled *scaled = NULL;
	struct tw_engine *engine = NULL;
	struct tw_options options;

	atomic_store(&expired, 0);
	tour_exactly(CALL_OPTIONS_INIT, tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	if (tour_code(CALL_CREATE, 0, tw_engine_create(&options, &engine)) != 0)
		return;
	tour_exactly(CALL_SCALED_OWNS, tw_scaled_owns(&kind), 0);
	tour_exactly(CALL_SCALED_CREATE, tw_scaled_create(NULL, 0, 1, &scaled), -EINVAL);
	if (tour_code(CALL_SCALED_CREATE, 0, tw_scaled_create(engine, 0, MS, &scaled)) == 0)
		scaled_use(engine, scaled);
	tour_exactly(CALL_STOP, tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(engine), 0);
}
