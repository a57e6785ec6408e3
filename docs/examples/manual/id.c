/* SPDX-License-Identifier: MIT */
/* A framework that names its timers by one number. */
#include "check.h"

static int fired;

static void on_timer(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	fired++;
}

static const struct tw_kind timer = TW_KIND(on_timer, NULL);

/* example: tw_id_schedule */
/* Returns the number that the framework gives to its users; 0:
 * none. */
static uint64_t timer_start(struct tw_engine *engine, int64_t ms)
{
	tw_id id = TW_ID_NONE;
	int code = tw_id_schedule(engine, TW_MS(ms), &timer, NULL,
				  &id);

	if (code < 0)
		fprintf(stderr, "no timer: %s\n",
			tw_strerror(code));
	return id;
}
/* end */

/* example: tw_id_schedule_at tw_id_reschedule_at */
/* Moves a timer to the end of a day, or starts another one. */
static uint64_t day_end(struct tw_engine *engine, uint64_t id,
			int64_t end_ns)
{
	if (tw_id_reschedule_at(id, end_ns) != TW_RESCHEDULE_DONE)
		(void)tw_id_schedule_at(engine, end_ns, &timer,
					NULL, &id);
	return id;
}
/* end */

/* example: tw_id_schedule_periodic */
static uint64_t heartbeat_start(struct tw_engine *engine)
{
	static const struct tw_period each =
		TW_PERIOD_RATE(TW_S(1));
	tw_id id = TW_ID_NONE;

	(void)tw_id_schedule_periodic(engine, &each, &timer, NULL,
				      &id);
	return id;
}
/* end */

/* example: tw_id_cancel */
static bool timer_stop(uint64_t id)
{
	return tw_id_cancel(id) == TW_CANCEL_DONE;
}
/* end */

/* example: tw_id_reschedule */
static bool timer_again(uint64_t id, int64_t ms)
{
	return tw_id_reschedule(id, TW_MS(ms)) ==
	       TW_RESCHEDULE_DONE;
}
/* end */

/* example: tw_id_state */
static bool timer_waits(uint64_t id)
{
	return tw_id_state(id) == TW_STATE_INIT;
}
/* end */

/* example: tw_id_handle */
/* For calls that take a handle and have no form by id. */
static void timer_print(uint64_t id)
{
	char text[200];

	(void)tw_timeout_text(tw_id_handle(id), text, sizeof(text));
	puts(text);
}
/* end */

/* example: tw_id_of */
/* In a callback: returns the number that the users know. */
static uint64_t own_number(struct tw_handle self)
{
	return tw_id_of(self);
}
/* end */

int main(void)
{
	struct bench bench = bench_open(bench_options());
	uint64_t id = timer_start(bench.engine, 100);
	uint64_t other = timer_start(bench.engine, 100);
	uint64_t heartbeat = heartbeat_start(bench.engine);

	CHECK(id != TW_ID_NONE && other != id);
	timer_print(id);
	CHECK(own_number(tw_id_handle(id)) == id);
	CHECK(timer_waits(id) && timer_again(id, 200));
	CHECK(timer_stop(other) && !timer_stop(other));
	bench_pass(&bench, TW_MS(150));
	CHECK(fired == 0 && !timer_waits(other));
	bench_pass(&bench, TW_MS(100));
	CHECK(fired == 1 && !timer_waits(id));
	timer_print(id);
	bench_pass(&bench, TW_S(3));
	CHECK(fired == 4 && timer_stop(heartbeat));
	id = day_end(bench.engine, TW_ID_NONE, TW_HOURS(24));
	CHECK(id != TW_ID_NONE && timer_waits(id));
	CHECK(day_end(bench.engine, id, TW_HOURS(48)) == id);
	bench_stop(&bench);
	bench_close(&bench);
	return 0;
}
