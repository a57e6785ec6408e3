/* SPDX-License-Identifier: MIT */
/* Functions that the measurements of durable timers share. */
#ifndef PERF_DURABLE_COMMON_H
#define PERF_DURABLE_COMMON_H

#include <stddef.h>
#include <stdint.h>

/* The file under test, and a second file for the store that is compared with it. */
extern char path[512], beside_path[520];

void paths_set(const char *folder);
/* Removes both files, and the files that SQLite and the store keep next to them. */
void files_remove(void);
/* Syncs the file under test, and drops its pages from the page cache. */
void forget(void);

/* Prints `what` and the error, and ends the process. */
void fail(const char *what, int error);
double now_s(void);
uint64_t random_next(void);
/* Returns how many bytes this process has passed to write calls. */
uint64_t written(void);
/* Returns the median. Sorts the values. */
double median(double *values, int count);

#endif
