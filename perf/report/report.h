/* SPDX-License-Identifier: MIT */
/*
 * Where results go: a table on stdout, JSON lines in a file, progress on stderr if a terminal is
 * there.
 */
#ifndef PERF_REPORT_REPORT_H
#define PERF_REPORT_REPORT_H

#include "report/row.h"

#include <stdio.h>

/* Opens the file for JSON; NULL: none. Returns 0, or -1 after a message. */
int report_open(const char *json_path);

/* Returns 0, or -1 after a message if the output could not be written. */
int report_close(void);

/* Machine and version. */
void report_title(void);

/* Heads of the three kinds of table. */
void report_probes_begin(const char *title, unsigned repeat);
void report_rows_begin(void);

/* One line each, in the table and in the JSON. */
void report_probe(const struct row *row, const char *summary);
void report_row(const struct row *row);

/* A contest's head, by its first row; and its lines. */
void report_contest_begin(const struct row *row, const char *summary);
void report_contest_row(const struct row *row);
/* A curve's head, and a row for the JSON alone: a part of `scale` has a table of its own. */
void report_curve_begin(const char *name, const char *summary);
void report_json(const struct row *row);

/* Prints the present step. The next output overwrites it. */
void report_progress(const char *workload, unsigned repeat, unsigned of);

/* The row as a JSON object and a newline. */
void json_write(FILE *file, const struct row *row);

#endif
