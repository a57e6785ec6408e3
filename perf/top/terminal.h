/* SPDX-License-Identifier: MIT */
/*
 * A plain terminal (ECMA-48 escape sequences, 80 x 24 and up), or a file that gets one frame after
 * the other without any. One per process.
 */
#ifndef PERF_TOP_TERMINAL_H
#define PERF_TOP_TERMINAL_H

#include "top/page.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Before there are threads: signals that end the program wait for terminal_wait from here on. Where
 * stdout is a terminal, takes the whole screen.
 */
void terminal_open(void);

/* Gives back what was taken, as it was. */
void terminal_close(void);

/* As it is now; 80 x 24 where nobody knows. */
void terminal_size(unsigned *ret_rows, unsigned *ret_columns);

void terminal_show(const struct top_text *text);

/* Until then (CLOCK_MONOTONIC), or a change of size. False: the user wants to end (q, Ctrl-C), or somebody
 * does (SIGTERM, SIGHUP). */
bool terminal_wait(int64_t until_ns);

#endif
