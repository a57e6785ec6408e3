/* SPDX-License-Identifier: MIT */
/*
 * Notifications of payments. The server notifies a merchant that an order is paid. It repeats this
 * by the usual table (15 s, 15 s, 30 s, 3 m, 10 m, 20 m, three times 30 m, 1 h, three times 3 h,
 * twice 6 h) until the merchant confirms. If the table is used up, a person must look at the order.
 *
 * The program plays more than a day in virtual time. Each merchant is down for a different time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <tickwheel.h>

enum { ORDERS = 1000 };

struct order {
	struct tw_engine *engine;
	int64_t merchant_up_ns;
};

static const struct tw_retry_schedule by_table = TW_RETRY_READY(TW_RETRY_FORM_PAYMENT);

static uint64_t attempts_of[32], delivered, given_up;
static int64_t last_ns;

/* A real server would send the request, return TW_RETRY_PENDING, and call tw_retry_complete when
 * the answer comes. */
static int notify(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	const struct order *order = arg;

	(void)self;
	(void)attempt;
	last_ns = tw_engine_now(order->engine);
	return last_ns >= order->merchant_up_ns ? TW_RETRY_DONE : TW_RETRY_AGAIN;
}

/* Runs once for each order, however its task ends. */
static void notified(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	(void)arg;
	attempts_of[attempts]++;
	if (end == TW_RETRY_END_DONE)
		delivered++;
	else
		given_up++;
}

static const struct tw_retry_kind notification = TW_RETRY_KIND(notify, notified, &by_table, 0);

static int submit_all(struct tw_engine *engine, struct tw_retry *queue, struct order *orders)
{
	for (int i = 0; i < ORDERS; i++) {
		/* Most merchants are up; the others are down for between a moment and two days. */
		int64_t down_ns = i % 4 != 0 ? 0 : TW_HOURS(48) / ORDERS * i / ORDERS * i;

		orders[i] = (struct order){engine, down_ns};
		if (tw_retry_submit(queue, 0, &notification, &orders[i], NULL) != 0)
			return -1;
	}
	return 0;
}

/* Moves the clock from one due time to the next, until no task is left. */
static void run_all(struct tw_clock *clock, struct tw_engine *engine, struct tw_retry *queue)
{
	while (tw_retry_pending(queue) > 0) {
		int64_t due_ns = tw_engine_next_due(engine);

		if (due_ns > tw_engine_now(engine))
			tw_clock_set(clock, due_ns);
		tw_engine_poll(engine, 0);
	}
}

int main(void)
{
	static struct order orders[ORDERS];
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_retry *queue;
	struct tw_clock *clock;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_clock_create_virtual(0, &clock) != 0)
		return 1;
	options.clock = clock;
	if (tw_engine_create(&options, &engine) != 0 ||
	    tw_retry_create(engine, NULL, &queue) != 0 || submit_all(engine, queue, orders) != 0)
		return 1;
	run_all(clock, engine, queue);
	printf("%" PRIu64 " delivered, %" PRIu64 " given up; the last attempt after %" PRId64
	       " h %" PRId64 " min\n",
	       delivered, given_up, last_ns / TW_HOURS(1), last_ns % TW_HOURS(1) / TW_MINUTES(1));
	for (int i = 1; i < 32; i++)
		if (attempts_of[i] != 0)
			printf("%2d attempts: %" PRIu64 "\n", i, attempts_of[i]);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_retry_destroy(queue);
	tw_engine_destroy(engine);
	tw_clock_destroy(clock);
	return delivered + given_up == ORDERS ? 0 : 1;
}
