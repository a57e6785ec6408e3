/* SPDX-License-Identifier: MIT */
/*
 * Schedules known timeouts for fires.py, which counts the hits of trace points. Prints the
 * timeouts, and how each ended.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)
#define FAR_NS (3600000 * NS_PER_MS)
#define PATIENCE_NS (60000 * NS_PER_MS)

static atomic_int runs;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	(void)atomic_fetch_add(&runs, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void must(int result)
{
	if (result < 0) {
		fprintf(stderr, "%s\n", tw_strerror(result));
		exit(1);
	}
}

static struct tw_handle schedule(struct tw_engine *engine, int64_t delay_ns)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};
	struct tw_handle handle;

	must(tw_schedule(engine, delay_ns, &kind, &runs, &handle));
	must(tw_timeout_get(handle, &timeout));
	printf("scheduled %" PRIuPTR " %" PRIu64 " %" PRId64 "\n", (uintptr_t)handle.node,
	       (uint64_t)handle.generation, timeout.deadline_ns);
	return handle;
}

static void cancel(struct tw_handle handle)
{
	must(tw_cancel(handle));
	printf("cancelled %" PRIuPTR " %" PRIu64 "\n", (uintptr_t)handle.node,
	       (uint64_t)handle.generation);
}

/*
 * usage: known FILE. Writes the text to the file, because the watching program uses the standard
 * output.
 */
int main(int argc, char **argv)
{
	struct tw_engine *engine;
	struct tw_handle in_wheel;

	if (argc != 2 || freopen(argv[1], "w", stdout) == NULL)
		return 2;
	must(tw_engine_create(NULL, &engine));
	printf("engine %" PRIuPTR "\nfunction %" PRIuPTR "\narg %" PRIuPTR "\n", (uintptr_t)engine,
	       (uintptr_t)on_expire, (uintptr_t)&runs);
	/* One timeout is beyond the lowest level, so that it cascades; the next is within it. */
	(void)schedule(engine, 600 * NS_PER_MS);
	(void)schedule(engine, 20 * NS_PER_MS);
	in_wheel = schedule(engine, FAR_NS);
	must(tw_engine_flush(engine, PATIENCE_NS));
	cancel(in_wheel);
	must(tw_engine_flush(engine, PATIENCE_NS));
	while (atomic_load(&runs) < 2)
		(void)usleep(1000);
	(void)schedule(engine, FAR_NS);
	must(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS));
	must(tw_engine_destroy(engine));
	return 0;
}
