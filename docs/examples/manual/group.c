/* SPDX-License-Identifier: MIT */
/* A server with several threads, whose timeouts are spread over the
 * engines of a group. */
#include "check.h"

struct request {
	struct tw_handle timeout;
};

struct peer {
	struct tw_handle heartbeat;
};

static void on_heartbeat(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
}

static void on_late(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
}

static int unexpired;

static void on_unexpired(void *context, struct tw_handle handle,
			 const struct tw_kind *kind, void *arg,
			 int64_t remaining_ns)
{
	(void)context, (void)handle, (void)kind, (void)arg,
		(void)remaining_ns;
	__atomic_fetch_add(&unexpired, 1, __ATOMIC_RELAXED);
}

static const struct tw_kind heartbeat = TW_KIND(on_heartbeat, NULL);
static const struct tw_kind late = TW_KIND(on_late, NULL);

/* example: tw_group_options_init tw_group_create */
static int timers_open(struct tw_group **ret_group)
{
	struct tw_group_options options;
	int code = tw_group_options_init(&options, sizeof(options));

	if (code < 0)
		return code;
	options.engines = 2;
	options.rule = TW_GROUP_BY_CPU;
	return tw_group_create(&options, ret_group);
}
/* end */

/* example: tw_group_stop tw_group_destroy */
/* on_unexpired may run on the workers of several engines at
 * once. */
static int timers_close(struct tw_group *group)
{
	int code =
		tw_group_stop(group, on_unexpired, NULL, TW_S(30));

	return code < 0 ? code : tw_group_destroy(group);
}
/* end */

/* example: tw_group_schedule */
static int request_send(struct tw_group *group,
			struct request *request)
{
	int code = tw_group_schedule(group, TW_S(2), &late, request,
				     &request->timeout);

	if (code < 0)
		fprintf(stderr, "not sent: %s\n",
			tw_strerror(code));
	return code;
}
/* end */

/* example: tw_group_here */
/* Calls that take an engine get that of the calling thread. */
static bool requests_send(struct tw_group *group,
			  const struct tw_item *items, size_t count,
			  struct tw_handle *timeouts)
{
	struct tw_engine *engine = tw_group_here(group);

	return tw_schedule_many(engine, items, count, timeouts,
				NULL) == (int)count;
}
/* end */

/* example: tw_group_schedule_at */
/* Both steps end at the same time, even if they are on two
 * engines. */
static int steps_send(struct tw_group *group,
		      struct request steps[2], int64_t end_ns)
{
	int code = 0;

	for (int i = 0; i < 2 && code == 0; i++)
		code = tw_group_schedule_at(group, end_ns, &late,
					    &steps[i],
					    &steps[i].timeout);
	return code;
}
/* end */

/* example: tw_group_schedule_periodic */
/* A heartbeat each 5 s, always on the engine of this thread. */
static int peer_watch(struct tw_group *group, struct peer *peer)
{
	struct tw_period period = TW_PERIOD_RATE(TW_S(5));

	return tw_group_schedule_periodic(
		group, &period, &heartbeat, peer, &peer->heartbeat);
}
/* end */

/* example: tw_group_engines tw_group_engine */
static void engines_report(struct tw_group *group)
{
	int count = tw_group_engines(group);

	for (int i = 0; i < count; i++) {
		struct tw_engine *engine =
			tw_group_engine(group, (uint32_t)i);

		printf("engine %d: %" PRId64 " pending\n", i,
		       tw_engine_pending(engine));
	}
}
/* end */

/* example: tw_group_pending tw_group_stats_get */
static void group_report(struct tw_group *group)
{
	struct tw_stats stats = {.size = sizeof(stats)};
	int code = tw_group_stats_get(group, &stats);

	printf("%" PRId64 " pending\n", tw_group_pending(group));
	if (code == 0)
		printf("%" PRIu64 " expired\n", stats.expired);
}
/* end */

int main(void)
{
	struct tw_handle timeouts[2];
	struct tw_item items[2] = {{TW_HOURS(1), &late, NULL},
				   {TW_HOURS(1), &late, NULL}};
	struct request request, steps[2];
	struct tw_group *group;
	struct peer peer;

	CHECK(timers_open(&group) == 0 &&
	      tw_group_engines(group) == 2);
	CHECK(request_send(group, &request) == 0 &&
	      tw_cancel(request.timeout) == TW_CANCEL_DONE);
	CHECK(requests_send(group, items, 2, timeouts));
	CHECK(steps_send(group, steps,
			 tw_engine_now(tw_group_here(group)) +
				 TW_HOURS(1)) == 0);
	CHECK(peer_watch(group, &peer) == 0);
	CHECK(tw_group_pending(group) == 5);
	engines_report(group);
	group_report(group);
	CHECK(tw_cancel(peer.heartbeat) >= 0);
	CHECK(timers_close(group) == 0 && unexpired == 4);
	return 0;
}
