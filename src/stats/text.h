/* SPDX-License-Identifier: MIT */
/*
 * Collects text in pieces, on the caller's stack, and passes each piece to a hook. Numbers are
 * written as integers, so that the locale has no influence.
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

/* Adds text of less than TWI_TEXT_BYTES / 2 bytes. Longer text is cut. */
void twi_text_put(struct twi_text *text, const char *format, ...) TWI_PRINTF(2, 3);
/*
 * Adds words inside quotes. Escapes them as JSON requires if `json`, otherwise as for a label of
 * Prometheus.
 */
void twi_text_quote(struct twi_text *text, const char *words, bool json);
/* Adds nanoseconds as seconds, with nine decimals. */
void twi_text_seconds(struct twi_text *text, uint64_t ns);
/* Passes the remaining text to the hook. */
void twi_text_end(struct twi_text *text);

/* A Prometheus label. If `value` is NULL, "" is written. */
struct twi_label {
	const char *name, *value;
};

/*
 * series.c: write a histogram as one line, as a JSON object, or in Prometheus' buckets. `label` may
 * be NULL.
 */
void twi_histogram_line(struct twi_text *text, const struct tw_histogram *histogram);
void twi_histogram_object(struct twi_text *text, const struct tw_histogram *histogram);
void twi_histogram_series(struct twi_text *text, const struct tw_histogram *histogram,
			  const char *metric, const struct twi_label *label);

#endif
