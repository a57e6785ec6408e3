/* SPDX-License-Identifier: MIT */
/* Functions that print the cells of tables. */
#ifndef PERF_REPORT_CELLS_H
#define PERF_REPORT_CELLS_H

#include "report/row.h"

/*
 * Prints a space and a number in `width` columns. A large number has fewer decimals. NAN is a dash.
 */
void report_number(int width, double value, int decimals);

/* Clears the line that report_progress has printed. */
void report_progress_clear(void);

/* Writes a row to the JSON file, if there is one. */
void report_json(const struct row *row);

#endif
