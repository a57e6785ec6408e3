/* SPDX-License-Identifier: MIT */
/*
 * membarrier is unavailable (ENOSYS), as in a sandbox. The threads then make barriers of their own.
 * The library asks the system when it is loaded, so the program must start again under a seccomp
 * filter.
 *
 * Seen to fail with this defect: tw_engine_create asks the system for membarrier, and returns
 * -ENOMEM if there is none.
 */
#include "family.h"
#include "inject.h"
#include "race.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long long injected(void *context)
{
	(void)context;
	return inject_membarrier_errors;
}

/* Makes membarrier return an error, and lets all other calls pass. */
static bool filter_install(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Runs in the program that was started again, under the filter. */
void family_membarrier_gone(struct report *report)
{
	struct tour_plan plan = {
		.name = "membarrier unavailable from the start",
		.course = TOUR_STOPS_IN_FAULT,
		.injected = injected,
		.repeats = report->exhaustive ? 500 : 40,
	};

	report_tour(report, &plan);
}

static void begin_anew(const struct report *report)
{
	if (!filter_install(ENOSYS))
		_exit(EXIT_SKIPPED);
	(void)execl("/proc/self/exe", "faults", MEMBARRIER_GONE,
		    report->exhaustive ? "long" : "quick", (char *)NULL);
	_exit(EXIT_SKIPPED);
}

void family_membarrier(struct report *report)
{
	int status = 1;
	pid_t child;

	if (!inject_possible()) {
		report_left_out(report, "membarrier unavailable", INJECT_IMPOSSIBLE);
		return;
	}
	fflush(NULL);
	child = fork();
	if (child == 0)
		begin_anew(report);
	RACE_CHECK(waitpid(child, &status, 0) == child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) {
		report_left_out(report, "membarrier unavailable", "no seccomp filter here");
		return;
	}
	report->rows++;
	report->bad_rows += status != 0;
}
