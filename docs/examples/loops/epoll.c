/* SPDX-License-Identifier: MIT */
/* Tickwheel in an epoll loop with one thread: the set also has the engine's descriptor. */
#include <stdio.h>
#include <sys/epoll.h>
#include <tickwheel.h>

static int left = 3;

static void on_tick(struct tw_handle self, void *arg)
{
	struct tw_run run = {.size = sizeof(run)};

	(void)self;
	(void)arg;
	printf("tick %d\n", left--);
	if (left > 0 && tw_run_get(&run) == 0)
		tw_schedule_at(run.engine, run.deadline_ns + TW_MS(20), run.kind, NULL, NULL);
}

/* Only this thread may schedule and cancel timeouts of this kind. */
static const struct tw_kind tick = TW_KIND_OWNER_ONLY(on_tick, NULL);

static int run(struct tw_engine *engine)
{
	struct epoll_event event = {.events = EPOLLIN};
	int loop = epoll_create1(EPOLL_CLOEXEC);
	int fd = tw_engine_fd(engine);

	if (loop < 0 || fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) != 0)
		return 1;
	/* From here on this thread's timeouts go straight into the wheel. */
	if (tw_loop_enter(engine) != 0)
		return 1;
	tw_schedule(engine, TW_MS(20), &tick, NULL, NULL);
	/* The descriptor becomes readable in time, so epoll_wait needs no timeout. */
	while (left > 0) {
		if (epoll_wait(loop, &event, 1, -1) == 1)
			tw_engine_poll(engine, 0);
	}
	return 0;
}

int main(void)
{
	struct tw_options options;
	struct tw_engine *engine;
	int result;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_engine_create(&options, &engine) != 0)
		return 1;
	result = run(engine);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	return result;
}
