/* SPDX-License-Identifier: MIT */
/* The runner of the stand-in: forks once per test and writes TAP. */
#include <criterion/criterion.h>

#include "../support/slowdown.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_SKIPPED = 77 };

static struct standin_test *first;
static struct standin_test **last = &first;
static bool failed;

void standin_register(struct standin_test *test)
{
	*last = test;
	last = &test->next;
}

void standin_fail(const char *file, int line, const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# %s:%d: %s: ", file, line, what);
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
	failed = true;
}

void standin_abort(void)
{
	_exit(EXIT_FAILED);
}

void standin_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
	_exit(EXIT_SKIPPED);
}

/*
 * Returns the test's time limit. TESTS_ALARM_S bounds every test. So if a test hangs, the runner
 * still has time for the next tests, which may show the cause.
 */
static unsigned int seconds_of(const struct standin_test *test)
{
	unsigned int seconds = (unsigned int)test->options.timeout * slowdown();
	const char *text = getenv("TESTS_ALARM_S");
	unsigned int most = text != NULL ? (unsigned int)strtoul(text, NULL, 10) : 0;

	return most != 0 && (seconds == 0 || seconds > most) ? most : seconds;
}

static void run_body(const struct standin_test *test)
{
	alarm(seconds_of(test));
	if (test->options.init)
		test->options.init();
	test->body();
	if (test->options.fini)
		test->options.fini();
	fflush(stdout);
	/* Calls exit instead of _exit, because a sanitizer reports leaks and late races at exit. */
	exit(failed ? EXIT_FAILED : 0);
}

static int run_forked(const struct standin_test *test)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		run_body(test);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return EXIT_FAILED;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("# ended by signal %d\n", WTERMSIG(status));
	return EXIT_FAILED;
}

static bool run_one(const struct standin_test *test, int number)
{
	int code = test->options.disabled ? EXIT_SKIPPED : run_forked(test);
	bool good = code == 0 || code == EXIT_SKIPPED;

	printf("%s %d - %s::%s%s\n", good ? "ok" : "not ok", number, test->suite, test->name,
	       code == EXIT_SKIPPED ? " # SKIP" : "");
	return good;
}

int main(void)
{
	const struct standin_test *test;
	bool all_good = true;
	int number = 0;

	for (test = first; test; test = test->next)
		number++;
	printf("1..%d\n", number);
	number = 0;
	for (test = first; test; test = test->next)
		all_good = run_one(test, ++number) && all_good;
	return all_good ? 0 : EXIT_FAILED;
}
