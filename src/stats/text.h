/* SPDX-License-Identifier: MIT */
/*
 * Text on its way to a hook, gathered in pieces. The caller's own, on its stack. Numbers are written as
 * integers, so that no locale has a say.
 */
#ifndef TWI_STATS_TEXT_H
#define TWI_STATS_TEXT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/print.h>

enum { TWI_TEXT_BYTES = 512 };

struct twi_text {
	tw_dump_hook *hook;
	void *context;
	size_t used;
	char piece[TWI_TEXT_BYTES];
};

/* No more than half a piece. */
void twi_text_put(struct twi_text *text, const char *format, ...) TWI_PRINTF(2, 3);
/* Inside quotes, as JSON or the labels of Prometheus want it. */
void twi_text_quote(struct twi_text *text, const char *words, bool json);
/* Nanoseconds as seconds, with nine decimals. */
void twi_text_seconds(struct twi_text *text, uint64_t ns);
/* The rest. */
void twi_text_end(struct twi_text *text);

/* print_histogram.c: in one line, and as an object; in Prometheus' buckets, for a label or "". */
void twi_histogram_line(struct twi_text *text, const struct tw_histogram *histogram);
void twi_histogram_object(struct twi_text *text, const struct tw_histogram *histogram);
void twi_histogram_series(struct twi_text *text, const struct tw_histogram *histogram,
			  const char *metric, const char *engine);

#endif
