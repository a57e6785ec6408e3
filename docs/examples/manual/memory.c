/* SPDX-License-Identifier: MIT */
/* Memory that is reserved in advance, bounded, or taken from the
 * program's own allocator. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_size_t counted_bytes;

static void *counted_allocate(void *context, size_t bytes,
			      size_t align)
{
	void *memory = NULL;

	atomic_fetch_add((atomic_size_t *)context, bytes);
	return posix_memalign(&memory,
			      align < sizeof(void *)
				      ? sizeof(void *)
				      : align,
			      bytes) == 0
		       ? memory
		       : NULL;
}

static void counted_release(void *context, void *memory,
			    size_t bytes, size_t align)
{
	(void)align;
	atomic_fetch_sub((atomic_size_t *)context, bytes);
	free(memory);
}

/* example: tw_memory_allocator_set */
static const struct tw_allocator counted = {
	.allocate = counted_allocate,
	.release = counted_release,
	.context = &counted_bytes,
};

/* Call it before the first engine is created. */
static int memory_count(void)
{
	return tw_memory_allocator_set(&counted);
}
/* end */

/* example: tw_memory_reserve tw_memory_cap_set */
/* Reserves memory for a million timeouts now, and allows no
 * more. */
static int memory_fix(void)
{
	int code = tw_memory_reserve(1000000);

	if (code == 0)
		code = tw_memory_cap_set(tw_memory_slab_bytes());
	return code;
}
/* end */

/* example: tw_memory_slab_bytes */
static void memory_report(void)
{
	uint64_t bytes = tw_memory_slab_bytes();

	printf("timeouts: %" PRIu64 " MiB\n", bytes >> 20);
}
/* end */

static void on_late(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
}

static const struct tw_kind late = TW_KIND(on_late, NULL);

static void requests_serve(struct tw_engine *engine)
{
	struct tw_handle timeout;

	CHECK(tw_schedule(engine, TW_S(2), &late, NULL, &timeout) ==
	      0);
	CHECK(tw_cancel(timeout) == TW_CANCEL_DONE);
}

/* example: tw_thread_attach tw_thread_detach */
/* A thread whose first request must not be slow, and which
 * continues to run after its last one. */
static void *thread_main(void *arg)
{
	if (tw_thread_attach() < 0)
		fputs("the first request will be slower\n", stderr);
	requests_serve(arg);
	tw_thread_detach();
	return NULL;
}
/* end */

int main(void)
{
	struct bench bench;
	pthread_t thread;

	CHECK(memory_count() == 0);
	CHECK(memory_fix() == 0 && tw_memory_slab_bytes() > 0);
	memory_report();
	CHECK(atomic_load(&counted_bytes) >=
	      tw_memory_slab_bytes());
	bench = bench_open(bench_options());
	CHECK(pthread_create(&thread, NULL, thread_main,
			     bench.engine) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(tw_engine_pending(bench.engine) == 0);
	bench_stop(&bench);
	bench_close(&bench);
	return 0;
}
