/* SPDX-License-Identifier: MIT */
/*
 * The function whose instructions valgrind counts. It is in a file of its own, so that no compiler
 * makes specialised copies of it.
 */
#ifndef TESTS_COUNTED_H
#define TESTS_COUNTED_H

#include <stdint.h>

struct scene;

typedef int64_t counted_path(struct scene *scene);

/*
 * Runs the path. valgrind counts from the beginning of this function to its end, then writes its
 * counts.
 */
int64_t counted_call(counted_path *path, struct scene *scene);

#endif
