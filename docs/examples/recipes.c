/* SPDX-License-Identifier: MIT */
/*
 * A minute of virtual time in which each recipe does what it is for: of two calls one is answered,
 * a connection falls silent after 20 s, a session ends, frames run, and a delivery works at the
 * fourth try.
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
	tw_clock_create_virtual(0, &virtual_clock);
	options.clock = virtual_clock;
	return tw_engine_create(&options, &engine) || tw_keyed_create(engine, NULL, &sessions) ||
	       tw_retry_create(engine, NULL, &queue);
}

static void run_until(int64_t end_ns)
{
	int64_t due_ns;

	while ((due_ns = tw_engine_next_due(engine)) <= end_ns) {
		if (due_ns > tw_engine_now(engine))
			tw_clock_set(virtual_clock, due_ns);
		tw_engine_poll(engine, 0);
	}
	tw_clock_set(virtual_clock, end_ns);
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
	run_until(TW_S(20));
	connection_packet(&connection);
	run_until(TW_S(50) - TW_MS(1));
	still_open = connection.open;
	run_until(TW_S(60));
	printf("%d answered, %d late, idle for 30 s: %d, %" PRIu64 " frames\n", in_time,
	       calls[1].late, still_open && !connection.open, frames);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	return tw_retry_destroy(queue) || tw_keyed_destroy(sessions) || tw_engine_destroy(engine) ||
	       tw_clock_destroy(virtual_clock);
}
