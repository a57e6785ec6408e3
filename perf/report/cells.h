/* SPDX-License-Identifier: MIT */
/*
 * What tables are made of.
 */
#ifndef PERF_REPORT_CELLS_H
#define PERF_REPORT_CELLS_H

#include "report/row.h"

/* After a space, in so many columns, with fewer decimals where it is large; NAN is a dash. */
void report_number(int width, double value, int decimals);

/* Takes away what report_progress has left. */
void report_progress_clear(void);

/* A line in the file for JSON, if there is one. */
void report_json(const struct row *row);

#endif
