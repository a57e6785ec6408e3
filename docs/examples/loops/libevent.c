/* SPDX-License-Identifier: MIT */
/* Tickwheel in a libevent loop: a persistent event waits for the engine's descriptor. */
#include <event2/event.h>
#include <stdio.h>
#include <tickwheel.h>

static struct event_base *base;
static int left = 3;

static void on_tick(struct tw_handle self, void *arg)
{
	struct tw_run run = {.size = sizeof(run)};

	(void)self;
	(void)arg;
	printf("tick %d\n", left--);
	if (left == 0)
		event_base_loopbreak(base);
	else if (tw_run_get(&run) == 0)
		tw_schedule(run.engine, TW_MS(20), run.kind, NULL, NULL);
}

static const struct tw_kind tick = TW_KIND(on_tick, NULL);

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tw_engine_poll(arg, 0);
}

static int run(struct tw_engine *engine)
{
	struct event *event;

	base = event_base_new();
	event = base == NULL ? NULL
			     : event_new(base, tw_engine_fd(engine), EV_READ | EV_PERSIST,
					 on_readable, engine);
	if (event == NULL || event_add(event, NULL) != 0)
		return 1;
	tw_schedule(engine, TW_MS(20), &tick, NULL, NULL);
	event_base_dispatch(base);
	event_free(event);
	event_base_free(base);
	return 0;
}

int main(void)
{
	struct tw_options options;
	struct tw_engine *engine;
	int result;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_engine_create(&options, &engine) != 0 || tw_loop_enter(engine) != 0)
		return 1;
	result = run(engine);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	return result;
}
