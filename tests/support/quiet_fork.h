/* SPDX-License-Identifier: MIT */
/*
 * Forks while the process has other threads. In a build with a sanitizer it first waits until all
 * of them sleep, because then none of them holds a lock of the allocator (sanitized.h). So the test
 * must let them go to sleep. In other builds this function only calls fork(), because libc takes
 * those locks itself.
 */
#ifndef TESTS_QUIET_FORK_H
#define TESTS_QUIET_FORK_H

#include "sanitized.h"

#include <unistd.h>

#if !defined(TESTS_SANITIZED)

static inline pid_t quiet_fork(void)
{
	return fork();
}

#else

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* Returns whether the thread sleeps. A thread that has ended meanwhile counts as asleep. */
static inline bool quiet_thread_sleeps(const char *id)
{
	char path[300], line[512] = "";
	const char *name_end;
	FILE *file;

	if (id[0] == '.' || atol(id) == (long)syscall(SYS_gettid))
		return true;
	(void)snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
	file = fopen(path, "r");
	if (file == NULL)
		return true;
	(void)fread(line, 1, sizeof line - 1, file);
	(void)fclose(file);
	/*
	 * The state comes after the last parenthesis, because the name may contain any character.
	 */
	name_end = strrchr(line, ')');
	return name_end == NULL || strchr("SZX", name_end[2]) != NULL;
}

static inline bool quiet_all_sleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	bool all = true;

	if (tasks == NULL)
		return true;
	while (all && (task = readdir(tasks)) != NULL)
		all = quiet_thread_sleeps(task->d_name);
	(void)closedir(tasks);
	return all;
}

static inline pid_t quiet_fork(void)
{
	while (!quiet_all_sleep())
		(void)usleep(100);
	return fork();
}

#endif

#endif
