/* SPDX-License-Identifier: MIT */
/*
 * Forks the children of a test and waits for them. A child asserts with child_need and ends with
 * child_end.
 */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include "check.h"
#include "quiet_fork.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* A child that runs longer counts as hanging, and is killed. Even slow builds need less
	 * time. */
	CHILD_SECONDS = 100,
};

/* Asserts in a child, because the test's assertions do not work in forked processes. */
#define child_need(actual, expected)                                                               \
	do {                                                                                       \
		long long child_actual = (long long)(actual);                                      \
		if (child_actual != (long long)(expected)) {                                       \
			fprintf(stderr, "# %s:%d: %s is %lld\n", __FILE__, __LINE__, #actual,      \
				child_actual);                                                     \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Ends the child at once, so that exit handlers of the test's runner do not run. */
static inline void child_end(int code)
{
#if defined(TESTS_COVERAGE)
	/* exit must run here because it writes the coverage of the child. */
	exit(code);
#elif defined(TESTS_THREAD_SANITIZER)
	/*
	 * TSan's _exit would report a leak if a worker has ended and the parent has not joined it
	 * yet.
	 */
	(void)syscall(SYS_exit_group, code);
#else
	_exit(code);
#endif
}

static inline void child_await(pid_t child)
{
	int status = 0;

	check_int(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
	check_int(WEXITSTATUS(status), 0);
}

/* Runs `body` in a child, which must end without a failure. */
static inline void in_child(void (*body)(void))
{
	pid_t child;

	fflush(NULL);
	child = quiet_fork();
	if (child == 0) {
		alarm(CHILD_SECONDS);
		body();
		child_end(0);
	}
	child_await(child);
}

#endif
