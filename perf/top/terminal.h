/* SPDX-License-Identifier: MIT */
/*
 * The output of a process: a plain terminal (ECMA-48 escape sequences, 80 x 24 or more), or a file
 * that gets the frames without escape sequences.
 */
#ifndef PERF_TOP_TERMINAL_H
#define PERF_TOP_TERMINAL_H

#include "top/page.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Must be called before there are other threads. From then on, signals that end the program are
 * delivered only in terminal_wait. If stdout is a terminal, takes the whole screen.
 */
void terminal_open(void);

/* Restores the terminal. */
void terminal_close(void);

/* Stores the present size, or 80 x 24 if it is not known. */
void terminal_size(unsigned *ret_rows, unsigned *ret_columns);

void terminal_show(const struct top_text *text);

/*
 * Waits until `until_ns` (CLOCK_MONOTONIC), or until the size changes. Returns false if the user
 * (q, Ctrl-C) or another process (SIGTERM, SIGHUP) ends the program.
 */
bool terminal_wait(int64_t until_ns);

#endif
