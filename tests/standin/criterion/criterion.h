/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the part of Criterion that the tests use, for builds where Criterion cannot run
 * (ThreadSanitizer, cross builds). Each test runs in a forked process, one after the other; the
 * output is TAP. The test sources mean the same as with Criterion: a failed cr_assert ends its
 * test.
 */
#ifndef STANDIN_CRITERION_H
#define STANDIN_CRITERION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct standin_options {
	void (*init)(void);
	void (*fini)(void);
	/* the time limit in seconds; 0: only the test runner's limit */
	double timeout;
	bool disabled;
	const char *description;
};

struct standin_test {
	const char *suite;
	const char *name;
	void (*body)(void);
	struct standin_options options;
	struct standin_test *next;
};

void standin_register(struct standin_test *test);

/* Prints the reason, and marks the test as failed. The test continues. */
__attribute__((format(printf, 4, 5))) void standin_fail(const char *file, int line,
							const char *what, const char *format, ...);

/* Ends the test as failed. */
__attribute__((noreturn)) void standin_abort(void);

/* Ends the test as skipped. */
__attribute__((noreturn, format(printf, 1, 2))) void standin_skip(const char *format, ...);

#define Test(suite_name, test_name, ...)                                                           \
	static void suite_name##_##test_name##_body(void);                                         \
	static struct standin_test suite_name##_##test_name##_test = {                             \
		.suite = #suite_name,                                                              \
		.name = #test_name,                                                                \
		.body = suite_name##_##test_name##_body,                                           \
		.options = {__VA_ARGS__},                                                          \
	};                                                                                         \
	__attribute__((constructor)) static void suite_name##_##test_name##_register(void)         \
	{                                                                                          \
		standin_register(&suite_name##_##test_name##_test);                                \
	}                                                                                          \
	static void suite_name##_##test_name##_body(void)

#define standin_check(fatal, what, condition, ...)                                                 \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			standin_fail(__FILE__, __LINE__, what, "" __VA_ARGS__);                    \
			if (fatal)                                                                 \
				standin_abort();                                                   \
		}                                                                                  \
	} while (0)

#define cr_assert(condition, ...) standin_check(true, #condition, condition, __VA_ARGS__)
#define cr_expect(condition, ...) standin_check(false, #condition, condition, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...) cr_assert((a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...) cr_assert((a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...) cr_assert((a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...) cr_assert((a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...) cr_assert((a) >= (b), __VA_ARGS__)
#define cr_assert_fail(...) cr_assert(false, __VA_ARGS__)
#define cr_skip_test(...) standin_skip("" __VA_ARGS__)

#endif
