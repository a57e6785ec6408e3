/* SPDX-License-Identifier: MIT */
/*
 * Tickwheel in a loop of io_uring: the ring waits until the engine's next due time.
 *
 * If the kernel does not allow rings, the program prints the reason and exits with code 77.
 */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

enum { SKIP = 77, ENTRIES = 8, NS_PER_S = 1000000000 };

static int left = 3;

static void on_tick(struct tw_handle self, void *arg)
{
	struct tw_run run = {.size = sizeof(run)};

	(void)self;
	(void)arg;
	printf("tick %d\n", left--);
	if (left > 0 && tw_run_get(&run) == 0)
		tw_schedule(run.engine, TW_MS(20), run.kind, NULL, NULL);
}

static const struct tw_kind tick = TW_KIND_OWNER_ONLY(on_tick, NULL);

/* Returns how long the ring may wait. */
static struct __kernel_timespec wait_until(struct tw_engine *engine, int64_t due_ns)
{
	int64_t now_ns = tw_engine_now(engine);
	int64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : 0;

	return (struct __kernel_timespec){wait_ns / NS_PER_S, wait_ns % NS_PER_S};
}

/* One iteration: waits for a completion or the next due time, and runs the timeouts that are
 * due. */
static int turn(struct io_uring *ring, struct tw_engine *engine)
{
	int64_t due_ns = tw_engine_next_due(engine);
	struct __kernel_timespec wait = wait_until(engine, due_ns);
	struct io_uring_cqe *cqe = NULL;
	/* Without a timeout that will be due, the wait has no time limit. */
	int code = io_uring_wait_cqe_timeout(ring, &cqe, due_ns == TW_NEVER ? NULL : &wait);

	if (code == 0)
		io_uring_cqe_seen(ring, cqe); /* here a server handles the completion */
	else if (code != -ETIME && code != -EINTR)
		return code;
	return tw_engine_poll(engine, 0) < 0 ? -EIO : 0;
}

static int run(struct io_uring *ring, struct tw_engine *engine)
{
	int code = tw_loop_enter(engine);

	if (code == 0)
		code = tw_schedule(engine, TW_MS(20), &tick, NULL, NULL);
	while (code == 0 && left > 0)
		code = turn(ring, engine);
	return code;
}

int main(void)
{
	struct tw_options options;
	struct tw_engine *engine;
	struct io_uring ring;
	int code = io_uring_queue_init(ENTRIES, &ring, 0);

	if (code < 0) {
		printf("skipped: the kernel gives out no ring: %s\n", strerror(-code));
		return SKIP;
	}
	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_engine_create(&options, &engine) != 0)
		return 1;
	code = run(&ring, engine);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	io_uring_queue_exit(&ring);
	return code == 0 ? 0 : 1;
}
