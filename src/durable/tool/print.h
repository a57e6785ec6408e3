/* SPDX-License-Identifier: MIT */
/* Prints timers as lines of text or of JSON. */
#ifndef TWI_DURABLE_TOOL_PRINT_H
#define TWI_DURABLE_TOOL_PRINT_H

#include "durable/tool/kinds.h"

#include <stdbool.h>
#include <stdio.h>
#include <tickwheel/durable_store.h>

/* The most bytes of an id ("PLACE-SERIAL") or a time as text, with the NUL. */
enum { TWI_TOOL_TEXT = 48 };

void twi_tool_id_text(struct tw_durable_id id, char text[TWI_TOOL_TEXT]);
/* Reads an id. Returns false if the text is not one. */
bool twi_tool_id_read(const char *text, struct tw_durable_id *ret);
/* Writes "2026-11-26T09:00:00.000Z", or the nanoseconds if the time is beyond the year 9999. */
void twi_tool_time_text(int64_t due_ns, char text[TWI_TOOL_TEXT]);

/* Writes a text in quotes. Bytes that are not printable are written as \u00XX. */
void twi_tool_json_text(FILE *out, const char *text, size_t bytes);
/*
 * Prints a timer as one line. `ended_ns` points to the time when it became a dead letter, or is
 * NULL.
 */
void twi_tool_print(FILE *out, const struct twi_tool_kinds *kinds, const struct tw_durable_row *row,
		    const int64_t *ended_ns, bool json);
/*
 * Prints how many timers of a kind are due in an hour. `hour` counts from 1970. If `hour` is NULL,
 * prints how many dead letters the kind has. `kind` is NULL if its name is not known.
 */
void twi_tool_print_count(FILE *out, const char *kind, const int64_t *hour, uint64_t count,
			  bool json);
/* Prints a line for each paused kind that is wanted. */
void twi_tool_print_paused(FILE *out, const struct twi_tool_kinds *kinds, const char *wanted,
			   bool json);
/* Prints the result of a check. */
void twi_tool_print_checked(FILE *out, uint64_t rows, uint64_t defects, bool json);
/* Prints the names of all kinds, or of the paused ones, as a JSON array. */
void twi_tool_print_kinds(FILE *out, const struct twi_tool_kinds *kinds, bool paused);

#endif
