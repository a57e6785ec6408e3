/* SPDX-License-Identifier: MIT */
/*
 * While tw_memory_reserve populates a slab, no thread may get blocks of it. If the kernel cannot
 * populate pages (before Linux 5.14), the library overwrites them, and would destroy such blocks.
 * Seen to fail with this defect: other threads can use the slab before it is populated.
 */
#include "probe.h"

#include <errno.h>
#include <sys/mman.h>

enum { SLAB_TIMEOUTS = 40000, POPULATE_WRITE = 23 };

static struct tw_engine *engine;
static uint64_t bytes_before; /* if not 0, madvise schedules timeouts */
static struct tw_handle handles[SLAB_TIMEOUTS];
static int args[SLAB_TIMEOUTS];

/* Schedules more timeouts than a slab holds, so some get blocks of a new slab. */
static void many_schedule(void)
{
	for (int i = 0; i < SLAB_TIMEOUTS; i++)
		handles[i] = must_schedule(engine, TW_NEVER, &count_kind, &args[i]);
}

/* Replaces the C library's function. It acts like an old kernel, and like another thread that
 * schedules at this moment. */
int madvise(void *address, size_t bytes, int advice)
{
	(void)address;
	(void)bytes;
	if (advice == POPULATE_WRITE && bytes_before != 0 &&
	    tw_memory_slab_bytes() > bytes_before) {
		bytes_before = 0;
		many_schedule();
	}
	errno = EINVAL;
	return -1;
}

Test(reserve, slab_cannot_be_used_before_it_is_touched)
{
	engine = real_engine_open(NULL);
	must_schedule(engine, TW_NEVER, &count_kind, &args[0]);
	bytes_before = tw_memory_slab_bytes();
	check_int(tw_memory_reserve(bytes_before / 64 + 2 * SLAB_TIMEOUTS), 0);
	check_int((int)bytes_before, 0);
	for (int i = 0; i < SLAB_TIMEOUTS; i++) {
		struct tw_timeout seen = {.size = sizeof(seen)};

		check_int(tw_timeout_get(handles[i], &seen), 0);
		cr_assert_eq(seen.arg, &args[i]);
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
	}
	real_engine_close(engine);
}
