/* SPDX-License-Identifier: MIT */
/*
 * Each thread of the process gets a signal every millisecond, and the process gets SIGPROF from
 * setitimer, with SA_RESTART and without. No worker may handle a signal, because a worker blocks
 * all signals.
 *
 * Seen to fail with these defects: a worker does not block signals, so its thread handles them;
 * EINTR is treated as the end of a wait, so cancel_wait returns -ETIMEDOUT too early.
 */
#include "family.h"
#include "race.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static atomic_llong handled, handled_on_worker;
static atomic_bool over;
static pthread_t pest;
static int flags;

static void on_signal(int signal)
{
	char name[16] = "";

	(void)signal;
	(void)prctl(PR_GET_NAME, name, 0UL, 0UL, 0UL);
	atomic_fetch_add(&handled, 1);
	if (strcmp(name, "tickwheel") == 0)
		atomic_fetch_add(&handled_on_worker, 1);
}

static void threads_pester(void)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *task;

	RACE_CHECK(folder != NULL);
	while ((task = readdir(folder)) != NULL)
		if (task->d_name[0] != '.')
			(void)syscall(SYS_tgkill, getpid(), atoi(task->d_name), SIGUSR1);
	(void)closedir(folder);
}

static void *pest_body(void *arg)
{
	while (!over) {
		threads_pester();
		tour_sleep_ns(1000000);
	}
	return arg;
}

static void arm(void *context)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
	const struct itimerval each_ms = {{0, 1000}, {0, 1000}};

	(void)context;
	RACE_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	RACE_CHECK(sigaction(SIGPROF, &action, NULL) == 0);
	RACE_CHECK(setitimer(ITIMER_PROF, &each_ms, NULL) == 0);
	atomic_store(&over, false);
	RACE_CHECK(tour_thread_make(pest_body, NULL, &pest));
}

static void relent(void *context)
{
	(void)context;
	if (atomic_exchange(&over, true))
		return;
	RACE_CHECK(pthread_join(pest, NULL) == 0);
	RACE_CHECK(setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL) == 0);
}

static long long injected(void *context)
{
	(void)context;
	RACE_CHECK(handled_on_worker == 0);
	return handled;
}

static void signals_run(struct report *report, const char *name, int action_flags)
{
	struct tour_plan plan = {
		.name = name,
		.course = TOUR_STOPS_IN_FAULT,
		.arm = arm,
		.relent = relent,
		.injected = injected,
		.repeats = report->exhaustive ? 1000 : 80,
	};

	flags = action_flags;
	report_tour(report, &plan);
}

void family_signals(struct report *report)
{
	signals_run(report, "signals each ms to each thread", 0);
	signals_run(report, "the same, SA_RESTART", SA_RESTART);
}
