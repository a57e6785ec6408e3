/* SPDX-License-Identifier: MIT */
/* What valgrind counts. In a file of its own, so that no compiler makes versions of it. */
#ifndef TESTS_COUNTED_H
#define TESTS_COUNTED_H

#include <stdint.h>

struct scene;

typedef int64_t counted_path(struct scene *scene);

/* Runs it. From its begin to its end valgrind counts, and then writes its counts down. */
int64_t counted_call(counted_path *path, struct scene *scene);

#endif
