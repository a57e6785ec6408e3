/* SPDX-License-Identifier: MIT */
/*
 * An executor for the race programs: the worker puts due timeouts (dues) into a ring, and any
 * number of threads take them out and run them. The ring's accesses order nothing else. So if
 * accesses of the threads to other memory are ordered, the library has ordered them.
 */
#ifndef DUES_H
#define DUES_H

#include <stdbool.h>
#include <stddef.h>
#include <tickwheel.h>

enum { DUES = 64 };

/* Makes the executor empty and open. */
void dues_open(void);

/* Called by the worker. Puts in as many as fit, and returns how many. */
size_t dues_put(const struct tw_due *due, size_t count);

/* The main function of a thread: runs dues until the executor is closed and empty. */
void *dues_main(void *argument);

/* Closes the executor. After this call no dues may be put in. */
void dues_close(void);

/* A dispatch hook that takes as many dues as fit. */
tw_dispatch_hook dues_dispatch;

#endif
