/* SPDX-License-Identifier: MIT */
/*
 * A function in a process of its own: nothing is warm, and its peak memory is its own. The calling
 * process never uses the library, so that its children may.
 */
#ifndef PERF_HARNESS_CHILD_H
#define PERF_HARNESS_CHILD_H

#include <stddef.h>

/* Fills `result`; 0 or a negative errno value. */
typedef int child_body(const void *arg, void *result);

/*
 * Runs `body` in a child and copies its `ret_result` back. Returns the value that `body` returned.
 * If the child died, prints a message on stderr and returns -EIO.
 */
int child_run(child_body *body, const void *arg, void *ret_result, size_t result_bytes);

#endif
