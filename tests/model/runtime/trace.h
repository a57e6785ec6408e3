/* SPDX-License-Identifier: MIT */
/*
 * The steps of a run, which are printed if it fails.
 */
#ifndef MODEL_TRACE_H
#define MODEL_TRACE_H

#include <stddef.h>
#include <stdint.h>

void trace_begin(void);

/* One step. `what` and its text must last. */
void trace_event(const char *what, const void *address, uint64_t value, const void *pc);

/* An atomic access; `from_newest`: 0, or how far from the newest store. */
void trace_access(const char *what, const void *address, int order, uint64_t value,
		  unsigned from_newest, const void *pc);

/* Printed behind the steps. */
void trace_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

void trace_print(void);

/* Where code or data is, as text; lasts until a few calls later. */
const char *trace_symbol(const void *address);

#endif
