/* SPDX-License-Identifier: MIT */
/*
 * Forked children of a test: how one is made and waited for, what it may assert, how it ends.
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
	/* A child that hangs ends so, whatever slows it down. */
	CHILD_SECONDS = 100,
};

/* In a child, in place of the assertions, which are not for forked processes. */
#define child_need(actual, expected)                                                               \
	do {                                                                                       \
		long long child_actual = (long long)(actual);                                      \
		if (child_actual != (long long)(expected)) {                                       \
			fprintf(stderr, "# %s:%d: %s is %lld\n", __FILE__, __LINE__, #actual,      \
				child_actual);                                                     \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* At once, without what the test's runner has registered for an end of its own. */
static inline void child_end(int code)
{
#if defined(TESTS_COVERAGE)
	/* What the child has covered is written by exit. */
	exit(code);
#elif defined(TESTS_THREAD_SANITIZER)
	/* Its _exit takes a worker that has ended, and that the parent has yet to join, for a leak. */
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

/* Runs `body` in a child, which must come to its end. */
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
