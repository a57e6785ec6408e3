/* SPDX-License-Identifier: MIT */
/*
 * Runs the recipes for a minute of virtual time. One of two calls is answered, and the other one
 * times out. A connection falls silent after 20 s, a session ends, and frames run. A delivery
 * succeeds at the fourth attempt.
 */
#include "recipes.h"

static struct tw_clock *virtual_clock;
static struct tw_engine *engine;
static struct tw_keyed *sessions;
static struct tw_retry *queue;

static int engine_make(void)
{
	struct tw_options options;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_clock_create_virtual(0, &virtual_clock) < 0)
		return 1;
	options.clock = virtual_clock;
	return tw_engine_create(&options, &engine) || tw_keyed_create(engine, NULL, &sessions) ||
	       tw_retry_create(engine, NULL, &queue);
}

int main(void)
{
	struct connection connection = {0};
	struct call calls[2] = {0};
	struct tw_handle chain;
	uint64_t frames = 0;
	bool in_time, still_open;

	if (engine_make() || call_send(engine, &calls[0], TW_MS(200)) ||
	    call_send(engine, &calls[1], TW_MS(200)) || connection_accept(engine, &connection) ||
	    session_touch(sessions, "a1") || frames_start(engine, &frames, &chain) ||
	    tw_retry_submit(queue, 0, &delivery, NULL, NULL))
		return 1;
	in_time = call_answered(&calls[0]);
	tw_engine_run_until(engine, TW_S(20));
	connection_packet(&connection);
	tw_engine_run_until(engine, TW_S(50) - TW_MS(1));
	still_open = connection.open;
	tw_engine_run_until(engine, TW_S(60));
	printf("%d answered, %d late, idle for 30 s: %d, %" PRIu64 " frames\n", in_time,
	       calls[1].late, still_open && !connection.open, frames);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	return tw_retry_destroy(queue) || tw_keyed_destroy(sessions) || tw_engine_destroy(engine) ||
	       tw_clock_destroy(virtual_clock);
}
