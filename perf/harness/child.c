/* SPDX-License-Identifier: MIT */
/*
 * Runs a function in a child process. The child sends the function's return value and its result
 * through a pipe. The child's timer slack is 1 ns, so that the system does not lengthen the child's
 * sleeps.
 */
#include "harness/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes > 0) {
		ssize_t written = write(fd, at, bytes);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		at += written;
		bytes -= (size_t)written;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t bytes)
{
	char *at = data;

	while (bytes > 0) {
		ssize_t got = read(fd, at, bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EIO;
		at += got;
		bytes -= (size_t)got;
	}
	return 0;
}

/* Uses _exit, because the child must not flush the parent's buffers or run its exit handlers. */
static _Noreturn void child_main(int fd, child_body *body, const void *arg, void *result,
				 size_t result_bytes)
{
	int outcome;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/*
	 * Without this the system may lengthen each sleep by 50 us. The threads of all engines
	 * inherit the setting, and so do the engines that are programs. Of all engines, only
	 * tickwheel's worker would set it by itself.
	 */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	outcome = body(arg, result);
	if (write_all(fd, &outcome, sizeof(outcome)) || write_all(fd, result, result_bytes))
		_exit(1);
	_exit(0);
}

static void tell_death(int status)
{
	if (WIFSIGNALED(status))
		fprintf(stderr, "tickwheel-perf: a measuring process died: %s\n",
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "tickwheel-perf: a measuring process ended with code %d\n",
			WEXITSTATUS(status));
}

static int collect(pid_t child, int fd, void *result, size_t result_bytes)
{
	int outcome = -EIO;
	int status = 0;
	int error = read_all(fd, &outcome, sizeof(outcome));

	if (!error)
		error = read_all(fd, result, result_bytes);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (error || status != 0) {
		tell_death(status);
		return -EIO;
	}
	return outcome;
}

int child_run(child_body *body, const void *arg, void *ret_result, size_t result_bytes)
{
	int ends[2];
	int outcome;
	pid_t child;

	fflush(NULL);
	if (pipe(ends))
		return -errno;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		child_main(ends[1], body, arg, ret_result, result_bytes);
	}
	outcome = child < 0 ? -errno : 0;
	close(ends[1]);
	if (child > 0)
		outcome = collect(child, ends[0], ret_result, result_bytes);
	close(ends[0]);
	return outcome;
}
