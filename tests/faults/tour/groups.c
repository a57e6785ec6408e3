/* SPDX-License-Identifier: MIT */
/*
 * The tour's group: two engines, which must be created and started together or not at all. Each
 * timeout must end once.
 */
#include "tour_inner.h"

#include <errno.h>

enum { HANDLES = 24 };

/* Several workers write these. */
static _Atomic int64_t unexpired, expired;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&expired, 1);
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&unexpired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static int64_t one_schedule(struct tw_group *group, int number, struct tw_handle *ret_handle)
{
	static const struct tw_period never = TW_PERIOD_RATE(TW_NEVER);

	if (number % 3 == 0)
		return tour_code(CALL_GROUP_SCHEDULE, 0,
				 tw_group_schedule(group, number % 2 ? MS : TW_NEVER, &kind, NULL,
						   ret_handle));
	if (number % 3 == 1)
		return tour_code(CALL_GROUP_SCHEDULE_AT, 0,
				 tw_group_schedule_at(group, TW_NEVER, &kind, NULL, ret_handle));
	return tour_code(CALL_GROUP_SCHEDULE_PERIODIC, 0,
			 tw_group_schedule_periodic(group, &never, &kind, NULL, ret_handle));
}

static void group_ask(struct tw_group *group)
{
	static struct tw_histogram histogram = {.size = sizeof histogram};
	struct tw_stats stats = {.size = sizeof stats};
	struct tw_engine *here = tw_group_here(group);

	tour_exactly(CALL_GROUP_ENGINES, tw_group_engines(group), 2);
	tour_exactly(CALL_GROUP_ENGINE, tw_group_engine(group, 2) == NULL, true);
	tour_exactly(CALL_GROUP_HERE,
		     here == tw_group_engine(group, 0) || here == tw_group_engine(group, 1), true);
	RACE_CHECK(tour_code(CALL_GROUP_PENDING, 0, tw_group_pending(group)) >= 0);
	tour_exactly(CALL_GROUP_STATS, tw_group_stats_get(group, &stats), 0);
	tour_exactly(CALL_GROUP_HISTOGRAM, tw_group_histogram_get(group, 0, &histogram), -EINVAL);
	tour_exactly(CALL_GROUP_DESTROY, tw_group_destroy(group), -EBUSY);
}

static void group_use(struct tw_group *group)
{
	struct tw_handle handle[HANDLES];
	int64_t accepted = 0, cancelled = 0;

	for (int i = 0; i < HANDLES; i++)
		accepted += one_schedule(group, i, &handle[accepted]) == 0;
	group_ask(group);
	for (int64_t i = 0; i < accepted; i += 4)
		cancelled += tour_code(CALL_CANCEL, 0, tw_cancel(handle[i])) == TW_CANCEL_DONE;
	tour_exactly(CALL_GROUP_STOP, tw_group_stop(group, on_unexpired, NULL, TW_NEVER), 0);
	RACE_CHECK(accepted == cancelled + atomic_load(&unexpired) + atomic_load(&expired));
	tour_exactly(CALL_GROUP_SCHEDULE, tw_group_schedule(group, 0, &kind, NULL, NULL),
		     -ESHUTDOWN);
}

void step_groups(void)
{
	struct tw_group_options options;
	struct tw_group *group = NULL;

	atomic_store(&unexpired, 0);
	atomic_store(&expired, 0);
	tour_exactly(CALL_GROUP_OPTIONS_INIT, tw_group_options_init(&options, sizeof options), 0);
	options.engines = 0;
	tour_exactly(CALL_GROUP_CREATE, tw_group_create(&options, &group), -EINVAL);
	options.engines = 2;
	options.rule = TW_GROUP_BY_NODE;
	if (tour_code(CALL_GROUP_CREATE, 0, tw_group_create(&options, &group)) != 0) {
		RACE_CHECK(group == NULL);
		return;
	}
	group_use(group);
	tour_exactly(CALL_GROUP_DESTROY, tw_group_destroy(group), 0);
}
