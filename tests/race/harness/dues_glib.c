/* SPDX-License-Identifier: MIT */
/*
 * The executor of the race programs, built on tickwheel-glib. Its threads are those of a
 * GThreadPool, which is created anew for each round.
 */
#include "dues.h"

#include "race.h"

#include <tickwheel/glib.h>

/* so small that the queue is sometimes full */
enum { QUEUE_MAX = 64, THREADS = 3 };

static struct tw_glib *executor;

void dues_open(void)
{
	RACE_CHECK(tw_glib_create(THREADS, QUEUE_MAX, &executor) == 0);
}

size_t dues_put(const struct tw_due *due, size_t count)
{
	return tw_glib_dispatch(executor, due, count);
}

/* Does nothing, because the pool has threads of its own. */
void *dues_main(void *argument)
{
	return argument;
}

/* Waits until the pool's threads have ended. */
void dues_close(void)
{
	RACE_CHECK(tw_glib_destroy(executor) == 0);
}
