/* SPDX-License-Identifier: MIT */
/* What the measurements of durable timers share. */
#ifndef PERF_DURABLE_COMMON_H
#define PERF_DURABLE_COMMON_H

#include <stddef.h>
#include <stdint.h>

/* The file under test, and one beside it for what is compared with it. */
extern char path[512], beside_path[520];

void paths_set(const char *folder);
/* Both, with all that belongs to them. */
void files_remove(void);
/* Drops the pages of the file from memory, as far as they are written. */
void forget(void);

/* Prints, and ends the process. */
void fail(const char *what, int error);
double now_s(void);
uint64_t random_next(void);
/* Bytes that this process has handed to write calls. */
uint64_t written(void);
/* Sorts. */
double median(double *values, int count);

#endif
