/* SPDX-License-Identifier: MIT */
/*
 * Reports results: tables on stdout, JSON lines in a file, and progress on stderr if that is a
 * terminal.
 */
#ifndef PERF_REPORT_REPORT_H
#define PERF_REPORT_REPORT_H

#include "report/row.h"

#include <stdio.h>

/*
 * Opens the file for JSON. If the path is NULL, there is no such file. Returns 0, or -1 after a
 * message.
 */
int report_open(const char *json_path);

/* Closes the file. Returns 0, or -1 after a message if the output could not be written. */
int report_close(void);

/* Prints the machine and the version. */
void report_title(void);

/* Print the head of a table of probes, and of a table of workloads. */
void report_probes_begin(const char *title, unsigned repeat);
void report_rows_begin(void);

/* Write one row to the table and to the JSON. */
void report_probe(const struct row *row, const char *summary);
void report_row(const struct row *row);

/*
 * Print the head of a contest's table, from the contest's first row, and report the contest's rows.
 */
void report_contest_begin(const struct row *row, const char *summary);
void report_contest_row(const struct row *row);
/*
 * Print the head of a curve, and write a row only to the JSON, because each part of `scale` prints
 * its own table.
 */
void report_curve_begin(const char *name, const char *summary);
void report_json(const struct row *row);

/* Prints the present step. The next output overwrites it. */
void report_progress(const char *workload, unsigned repeat, unsigned of);

/* Writes the row as a JSON object and a newline. */
void json_write(FILE *file, const struct row *row);

#endif
