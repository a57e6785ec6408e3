/* SPDX-License-Identifier: MIT */
/*
 * The figures that the harness reads from the system. If the system does not report a figure, it is
 * 0.
 */
#include "harness/measure.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, NS_PER_US = 1000 };

int64_t measure_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t timeval_ns(struct timeval value)
{
	return (int64_t)value.tv_sec * NS_PER_S + (int64_t)value.tv_usec * NS_PER_US;
}

int64_t measure_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

uint64_t measure_rss_bytes(void)
{
	unsigned long long size_pages = 0;
	unsigned long long resident_pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &size_pages, &resident_pages) != 2)
		resident_pages = 0;
	fclose(file);
	return resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t measure_rss_peak_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

static uint64_t thread_sleeps(const char *thread_id)
{
	static const char key[] = "voluntary_ctxt_switches:";
	char path[300];
	char line[256];
	uint64_t count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread_id);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			count = strtoull(line + sizeof(key) - 1, NULL, 10);
	fclose(file);
	return count;
}

uint64_t measure_other_threads_sleeps(void)
{
	uint64_t count = 0;
	struct dirent *entry;
	DIR *tasks = opendir("/proc/self/task");

	if (!tasks)
		return 0;
	while ((entry = readdir(tasks)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != gettid())
			count += thread_sleeps(entry->d_name);
	closedir(tasks);
	return count;
}

unsigned measure_cpu_count(void)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return 1;
	return (unsigned)CPU_COUNT(&allowed);
}

void measure_sleep_ns(int64_t duration_ns)
{
	measure_sleep_until_ns(measure_now_ns() + duration_ns);
}

void measure_sleep_until_ns(int64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = until_ns / NS_PER_S,
		.tv_nsec = until_ns % NS_PER_S,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}
