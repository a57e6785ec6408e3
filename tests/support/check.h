/* SPDX-License-Identifier: MIT */
/*
 * Assertions that report the values. Only the thread that runs the test may use them, because a
 * failure leaves that thread by a long jump. Callbacks and helper threads record, the test asserts.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

static inline void check_relation(bool holds, const char *where, int line, const char *what,
				  const char *relation, long long actual, long long limit)
{
	cr_assert(holds, "%s:%d: %s is %lld, must be %s %lld", where, line, what, actual, relation,
		  limit);
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
	cr_assert((condition), "%s:%d: does not hold: %s", __FILE__, __LINE__, #condition)

#endif
