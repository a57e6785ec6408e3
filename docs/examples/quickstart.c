/* SPDX-License-Identifier: MIT */
/* The README's example: one request gets its reply, the other one times out. */
/* clang-format off */
#include <stdio.h>
#include <tickwheel.h>
#include <unistd.h>

struct request { int id; struct tw_handle timeout; };

/* The reply has not come in time. Runs on the engine's thread. */
static void on_timeout(struct tw_handle self, void *arg)
{
	struct request *request = arg;
	(void)self;
	printf("request %d: timed out\n", request->id);
}
static const struct tw_kind request_timeout = TW_KIND(on_timeout, NULL);

/* The reply has come. Any thread may call this. */
static void on_reply(struct request *request)
{
	if (tw_cancel(request->timeout) == TW_CANCEL_DONE)
		printf("request %d: answered\n", request->id);
}

int main(void)
{
	struct request first = {.id = 1}, second = {.id = 2};
	struct tw_engine *engine;

	if (tw_engine_create(NULL, &engine) < 0) return 1;
	/* Send each request here, and schedule its timeout. */
	if (tw_schedule(engine, TW_S(30), &request_timeout, &first, &first.timeout) < 0) return 1;
	on_reply(&first);
	if (tw_schedule(engine, TW_MS(100), &request_timeout, &second, &second.timeout) < 0) return 1;
	while (tw_timeout_state(second.timeout) == TW_STATE_INIT) usleep(1000); /* no reply comes */
	/* Returns when no callback runs any more. */
	return tw_engine_stop(engine, NULL, NULL, TW_NEVER) < 0 || tw_engine_destroy(engine) < 0;
}
