/* SPDX-License-Identifier: MIT */
/* Loops that wait for an engine's descriptor, or until its next
 * deadline; and a loop on two threads. */
#include "check.h"

#include <poll.h>
#include <pthread.h>

static void on_due(struct tw_handle self, void *arg)
{
	int *runs = arg;

	(void)self;
	++*runs;
}

static const struct tw_kind due = TW_KIND(on_due, NULL);

/* example: tw_engine_fd */
/* One iteration of a loop. A server has its sockets in the array,
 * too. */
static int64_t loop_turn(struct tw_engine *engine)
{
	struct pollfd ready = {.events = POLLIN};

	ready.fd = tw_engine_fd(engine);
	if (ready.fd < 0)
		return ready.fd;
	if (poll(&ready, 1, -1) < 0)
		return -errno;
	return tw_engine_poll(engine, 0);
}
/* end */

/* example: tw_engine_poll */
/* Runs at most 100 callbacks, so that packets do not wait too
 * long. */
static bool timers_run(struct tw_engine *engine)
{
	int64_t ran = tw_engine_poll(engine, 100);

	if (ran < 0)
		fprintf(stderr, "timers: %s\n",
			tw_strerror((int)ran));
	return ran >= 0;
}
/* end */

/* example: tw_engine_next_due */
/* Returns how long to wait for sockets, in ms: at most a second. */
static int wait_ms(struct tw_engine *engine)
{
	int64_t due_ns = tw_engine_next_due(engine);
	int64_t left_ns = due_ns - tw_engine_now(engine);

	if (due_ns < 0 || left_ns <= 0)
		return 0;
	return left_ns < TW_S(1) ? (int)(left_ns / TW_MS(1)) + 1
				 : 1000;
}
/* end */

/* example: tw_engine_poll_at */
/* A frame of a game: all its timeouts see the same time. */
static bool frame_run(struct tw_engine *engine, int64_t frame_ns)
{
	int64_t ran = tw_engine_poll_at(engine, frame_ns, 0);

	if (ran < 0)
		fprintf(stderr, "frame: %s\n",
			tw_strerror((int)ran));
	return ran >= 0;
}
/* end */

/* example: tw_engine_poll_for */
/* Runs callbacks for at most about 2 ms; then sockets are
 * served. */
static bool timers_run_briefly(struct tw_engine *engine)
{
	int64_t ran = tw_engine_poll_for(engine, 0, TW_MS(2));

	if (ran < 0)
		fprintf(stderr, "timers: %s\n",
			tw_strerror((int)ran));
	return ran >= 0;
}
/* end */

/* example: tw_loop_enter */
/* Called before the loop begins. From now on this thread's timeouts
 * go straight into the wheel. */
static int loop_begin(struct tw_engine *engine)
{
	int code = tw_loop_enter(engine);

	if (code < 0)
		fprintf(stderr, "not entered: %s\n",
			tw_strerror(code));
	return code;
}
/* end */

/* example: tw_loop_exit */
/* Called at the loop's end. From now on another thread may
 * enter. */
static int loop_end(struct tw_engine *engine)
{
	int code = tw_loop_exit(engine);

	if (code < 0)
		fprintf(stderr, "not left: %s\n",
			tw_strerror(code));
	return code;
}
/* end */

static struct tw_options loop_options(void)
{
	struct tw_options options = bench_options();

	options.flags = TW_ENGINE_LOOP;
	return options;
}

/* Uses real time, because the descriptor is a timer of the
 * system. */
static void descriptor_show(void)
{
	struct tw_options options = loop_options();
	struct tw_engine *engine;
	int runs = 0;

	CHECK(tw_engine_create(&options, &engine) == 0);
	CHECK(tw_schedule(engine, TW_MS(5), &due, &runs, NULL) ==
	      0);
	while (runs == 0)
		CHECK(loop_turn(engine) >= 0);
	CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	CHECK(tw_engine_destroy(engine) == 0);
}

static void *loop_main(void *engine)
{
	CHECK(loop_begin(engine) == 0);
	CHECK(timers_run_briefly(engine));
	CHECK(loop_end(engine) == 0);
	return NULL;
}

static void virtual_show(void)
{
	struct bench bench = bench_open(loop_options());
	pthread_t thread;
	int runs = 0;

	CHECK(tw_schedule(bench.engine, TW_MS(100), &due, &runs,
			  NULL) == 0);
	CHECK(tw_schedule(bench.engine, TW_HOURS(1), &due, &runs,
			  NULL) == 0);
	CHECK(timers_run(bench.engine) && runs == 0);
	CHECK(wait_ms(bench.engine) > 0 &&
	      wait_ms(bench.engine) <= 102);
	CHECK(tw_clock_set(bench.clock, TW_MS(102)) == 0);
	CHECK(wait_ms(bench.engine) == 0);
	CHECK(frame_run(bench.engine, TW_MS(102)) && runs == 1);
	CHECK(wait_ms(bench.engine) == 1000);
	CHECK(tw_clock_set(bench.clock, TW_HOURS(2)) == 0);
	CHECK(pthread_create(&thread, NULL, loop_main,
			     bench.engine) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(runs == 2);
	bench_stop(&bench);
	bench_close(&bench);
}

int main(void)
{
	descriptor_show();
	virtual_show();
	return 0;
}
