/* SPDX-License-Identifier: MIT */
/*
 * Runs a function in a child process, so that it starts cold and has its own peak memory. The
 * parent must never use the library, because a forked child could not use it then.
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
