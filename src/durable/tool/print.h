/* SPDX-License-Identifier: MIT */
/* Timers as lines of text or of JSON. */
#ifndef TWI_DURABLE_TOOL_PRINT_H
#define TWI_DURABLE_TOOL_PRINT_H

#include "durable/tool/kinds.h"

#include <stdbool.h>
#include <stdio.h>
#include <tickwheel/durable_store.h>

/* Of an id as text, "PLACE-SERIAL", and of a time, with the end. */
enum { TWI_TOOL_TEXT = 48 };

void twi_tool_id_text(struct tw_durable_id id, char text[TWI_TOOL_TEXT]);
/* False: it is not an id. */
bool twi_tool_id_read(const char *text, struct tw_durable_id *ret);
/* "2026-11-26T09:00:00.000Z", or the nanoseconds if the calendar does not have it. */
void twi_tool_time_text(int64_t due_ns, char text[TWI_TOOL_TEXT]);

/* With quotes. Bytes that are not printable are written as \u00XX. */
void twi_tool_json_text(FILE *out, const char *text, size_t bytes);
/* One line. `ended_ns`: when it became a dead letter, or NULL. */
void twi_tool_print(FILE *out, const struct twi_tool_kinds *kinds, const struct tw_durable_row *row,
		    const int64_t *ended_ns, bool json);
/* Timers of a kind (NULL: its name is not known) in an hour since 1970; NULL: dead letters. */
void twi_tool_print_count(FILE *out, const char *kind, const int64_t *hour, uint64_t count,
			  bool json);
/* A line for each paused kind that is wanted. */
void twi_tool_print_paused(FILE *out, const struct twi_tool_kinds *kinds, const char *wanted,
			   bool json);
/* What a check has found. */
void twi_tool_print_checked(FILE *out, uint64_t rows, uint64_t defects, bool json);
/* The names of all kinds, or of the paused ones, as an array of JSON. */
void twi_tool_print_kinds(FILE *out, const struct twi_tool_kinds *kinds, bool paused);

#endif
