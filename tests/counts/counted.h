/* SPDX-License-Identifier: MIT */
/*
 * The function whose instructions valgrind counts. It has a file of its own, so that no compiler
 * makes specialised copies of it.
 */
#ifndef TESTS_COUNTED_H
#define TESTS_COUNTED_H

#include <stdint.h>

struct scene;

typedef int64_t counted_path(struct scene *scene);

/* Runs it. From its begin to its end valgrind counts, and then writes its counts down. */
int64_t counted_call(counted_path *path, struct scene *scene);

#endif
