/* SPDX-License-Identifier: MIT */
/* How a forked child of a test ends. */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <stdlib.h>
#include <unistd.h>

/* At once, without what the test's runner has registered for an end of its own. */
static inline void child_end(int code)
{
#ifdef TESTS_COVERAGE
	/* What the child has covered is written by exit. */
	exit(code);
#else
	_exit(code);
#endif
}

#endif
