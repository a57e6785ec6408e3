/* SPDX-License-Identifier: MIT */
/*
 * The steps of a run, which are printed if it fails.
 */
#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

#include <stddef.h>
#include <stdint.h>

void trace_begin(void);

/* Records one step. `what` and its text must live until the end of the run. */
void trace_event(const char *what, const void *address, uint64_t value, const void *pc);

/* Records an atomic access. `from_newest` is 0 for the newest store, or the distance from it. */
void trace_access(const char *what, const void *address, int order, uint64_t value,
		  unsigned from_newest, const void *pc);

/* Adds a line that is printed after the steps. */
void trace_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

void trace_print(void);

/* Returns the name of code or data as text. A few more calls overwrite the text. */
const char *trace_symbol(const void *address);

#endif
