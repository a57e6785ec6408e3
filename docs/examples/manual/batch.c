/* SPDX-License-Identifier: MIT */
/* A client sends a query to several replicas, and schedules a
 * timeout for each. */
#include "check.h"

enum { REPLICAS = 3 };

struct query {
	int asked;
	bool late[REPLICAS];
	struct tw_handle timeouts[REPLICAS];
};

static void on_late(struct tw_handle self, void *arg)
{
	(void)self;
	*(bool *)arg = true;
}

static void on_ask(struct tw_handle self, void *arg)
{
	struct query *query = arg;

	(void)self;
	query->asked++;
}

static const struct tw_kind ask = TW_KIND(on_ask, NULL);
static const struct tw_kind replica_timeout =
	TW_KIND(on_late, NULL);

/* example: tw_schedule_many */
/* Each replica must answer within 200 ms. */
static bool query_send(struct tw_engine *engine,
		       struct query *query)
{
	struct tw_item items[REPLICAS];

	for (int i = 0; i < REPLICAS; i++)
		items[i] = (struct tw_item){TW_MS(200),
					    &replica_timeout,
					    &query->late[i]};
	return tw_schedule_many(engine, items, REPLICAS,
				query->timeouts, NULL) == REPLICAS;
}
/* end */

/* example: tw_schedule_many_at */
/* Asks the replicas one after the other, 100 ms apart. */
static bool query_stagger(struct tw_engine *engine,
			  struct query *query, int64_t at_ns)
{
	struct tw_item items[REPLICAS];

	for (int i = 0; i < REPLICAS; i++, at_ns += TW_MS(100))
		items[i] = (struct tw_item){at_ns, &ask, query};
	return tw_schedule_many_at(engine, items, REPLICAS,
				   query->timeouts,
				   NULL) == REPLICAS;
}
/* end */

/* example: tw_cancel_many */
/* An answer has come. Returns how many replicas were too late. */
static int query_answered(const struct query *query)
{
	int outcomes[REPLICAS], late = 0;

	if (tw_cancel_many(query->timeouts, REPLICAS, outcomes) < 0)
		return -1;
	for (int i = 0; i < REPLICAS; i++)
		late += outcomes[i] == TW_CANCEL_EXPIRED;
	return late;
}
/* end */

int main(void)
{
	struct bench bench = bench_open(bench_options());
	struct query first = {0}, second = {0}, third = {0};

	CHECK(query_send(bench.engine, &first) &&
	      query_send(bench.engine, &second));
	bench_pass(&bench, TW_MS(100));
	CHECK(query_answered(&first) == 0);
	bench_pass(&bench, TW_MS(150));
	CHECK(!first.late[0] && second.late[0] &&
	      second.late[REPLICAS - 1]);
	CHECK(query_answered(&second) == REPLICAS);
	CHECK(query_stagger(bench.engine, &third,
			    tw_engine_now(bench.engine)));
	bench_pass(&bench, TW_MS(150));
	CHECK(third.asked == 2 && query_answered(&third) == 2);
	bench_stop(&bench);
	bench_close(&bench);
	return 0;
}
