/* SPDX-License-Identifier: MIT */
/*
 * Assertions that print the values. Criterion ignores an assertion that fails in a test's teardown.
 * There it fails the test only if the process crashes. So a failed assertion here ends the process.
 * Only the thread that runs the test may assert. Callbacks and helper threads record values, and
 * that thread asserts on them.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

static inline void check_abort_unless(bool holds)
{
	if (holds)
		return;
	(void)fflush(stdout);
	abort();
}

static inline void check_relation(bool holds, const char *where, int line, const char *what,
				  const char *relation, long long actual, long long limit)
{
	cr_expect(holds, "%s:%d: %s is %lld, must be %s %lld", where, line, what, actual, relation,
		  limit);
	check_abort_unless(holds);
}

#define check_int(actual, expected)                                                                \
	do {                                                                                       \
		long long check_actual = (long long)(actual);                                      \
		long long check_limit = (long long)(expected);                                     \
		check_relation(check_actual == check_limit, __FILE__, __LINE__, #actual, "=",      \
			       check_actual, check_limit);                                         \
	} while (0)

#define check_at_most(actual, limit)                                                               \
	do {                                                                                       \
		long long check_actual = (long long)(actual);                                      \
		long long check_limit = (long long)(limit);                                        \
		check_relation(check_actual <= check_limit, __FILE__, __LINE__, #actual,           \
			       "<=", check_actual, check_limit);                                   \
	} while (0)

#define check_at_least(actual, limit)                                                              \
	do {                                                                                       \
		long long check_actual = (long long)(actual);                                      \
		long long check_limit = (long long)(limit);                                        \
		check_relation(check_actual >= check_limit, __FILE__, __LINE__, #actual,           \
			       ">=", check_actual, check_limit);                                   \
	} while (0)

#define check_true(condition)                                                                      \
	do {                                                                                       \
		bool check_holds = (condition);                                                    \
		cr_expect(check_holds, "%s:%d: does not hold: %s", __FILE__, __LINE__,             \
			  #condition);                                                             \
		check_abort_unless(check_holds);                                                   \
	} while (0)

#endif
