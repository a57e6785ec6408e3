/* SPDX-License-Identifier: MIT */
/*
 * An executor for the race programs: a ring which the worker puts into, and any number of threads take
 * from. It knows no locks, so what is ordered beside it is so by the library, and not by us.
 */
#ifndef DUES_H
#define DUES_H

#include <stdbool.h>
#include <stddef.h>
#include <tickwheel.h>

enum { DUES = 64 };

/* Empty, and open. */
void dues_open(void);

/* By the worker: as many of them as there is room for; how many that were. */
size_t dues_put(const struct tw_due *due, size_t count);

/* The main function of a thread: runs what comes, until it is closed and nothing is left. */
void *dues_main(void *argument);

/* No more will come. */
void dues_close(void);

/* A dispatch hook that takes all that there is room for. */
tw_dispatch_hook dues_dispatch;

#endif
