/* SPDX-License-Identifier: MIT */
/*
 * A constructor of a program that is linked statically calls the library. The library's own
 * constructors must have run before.
 *
 * Seen to fail with this defect: TWI_CONSTRUCTOR has no priority. Then the thread uses the shared
 * lane, and the library does not use membarrier(2) yet.
 */
#include "check.h"

#include "base/compiler.h"
#include "thread/barrier.h"
#include "thread/thread.h"

#include <tickwheel.h>

static int early_error;
static uint32_t early_lane = TWI_LANE_SHARED;
static bool early_able;

static __attribute__((constructor)) void call_early(void)
{
	early_error = tw_thread_attach();
	early_lane = twi_thread()->lane;
	early_able = twi_barrier_able();
}

Test(constructor, finds_the_library_loaded)
{
	check_int(early_error, 0);
	check_true(early_lane != TWI_LANE_SHARED);
	check_true(early_able == twi_barrier_able());
}
