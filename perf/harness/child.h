/* SPDX-License-Identifier: MIT */
/*
 * Runs a function in a child process, so that the function starts with cold caches, and the child's
 * peak of memory belongs to it alone. The parent must never use the library, because then a forked
 * child could not use the library.
 */
#ifndef PERF_HARNESS_CHILD_H
#define PERF_HARNESS_CHILD_H

#include <stddef.h>

/* Fills in `result`. Returns 0 or a negative errno value. */
typedef int child_body(const void *arg, void *result);

/*
 * Runs `body` in a child and copies its `ret_result` back. Returns the value that `body` returned.
 * If the child died, prints a message on stderr and returns -EIO.
 */
int child_run(child_body *body, const void *arg, void *ret_result, size_t result_bytes);

#endif
