/* SPDX-License-Identifier: MIT */
/*
 * hosts [REPEATS]: compares the timers of event loops with those of tickwheel that can replace
 * them.
 *
 * Each figure is the median of the repeats. The loop's timers and ours take turns, each run in its
 * own process, so that other load on the machine affects both. The loops read a simulated time, so
 * a second of timers takes no longer than its work.
 */
#include "hosts/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, REPEATS = 9, REPEATS_MOST = 99, OPERATIONS = 2000000 };

int64_t hosts_now_ns = INT64_C(1000) * NS_PER_S;

/* Replaces the C library's function, so that the loops read the simulated time. */
int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	(void)id;
	ret_time->tv_sec = hosts_now_ns / NS_PER_S;
	ret_time->tv_nsec = hosts_now_ns % NS_PER_S;
	return 0;
}

int64_t hosts_true_ns(void)
{
	struct timespec now;

	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct hosts_figures measure(const struct hosts_subject *subject, size_t count)
{
	struct hosts_figures figures = {-1, -1};
	int ends[2];
	pid_t child;

	if (pipe(ends) != 0)
		return figures;
	child = fork();
	if (child == 0) {
		figures = subject->run(count, OPERATIONS);
		_exit(write(ends[1], &figures, sizeof figures) == sizeof figures ? 0 : 1);
	}
	(void)close(ends[1]);
	if (child < 0 || read(ends[0], &figures, sizeof figures) != sizeof figures)
		(void)fprintf(stderr, "%s: nothing measured\n", subject->name);
	(void)close(ends[0]);
	(void)waitpid(child, NULL, 0);
	return figures;
}

static int by_value(const void *left, const void *right)
{
	const double *one = left;
	const double *other = right;

	return (*one > *other) - (*one < *other);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[count / 2];
}

static void compare(const struct hosts_subject *own, const struct hosts_subject *ours, size_t count,
		    size_t repeats)
{
	const struct hosts_subject *subject[] = {own, ours};
	double restart[2][REPEATS_MOST];
	double fire[2][REPEATS_MOST];

	for (size_t n = 0; n < repeats; n++) {
		for (size_t i = 0; i < 2; i++) {
			struct hosts_figures figures = measure(subject[i], count);

			restart[i][n] = figures.restart_ns;
			fire[i][n] = figures.fire_ns;
		}
	}
	for (size_t i = 0; i < 2; i++) {
		double restarted = median(restart[i], repeats);
		double fired = median(fire[i], repeats);

		(void)printf("%-10s %9zu  %-12s %8.1f %6.2f %8.1f %6.2f\n", own->host, count,
			     subject[i]->name, restarted, restarted / median(restart[0], repeats),
			     fired, fired / median(fire[0], repeats));
	}
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct hosts_subject *const pairs[][2] = {
#if defined(PERF_HOSTS_UV)
		{&hosts_uv_own, &hosts_uv_ours},
#endif
#if defined(PERF_HOSTS_EVENT)
		{&hosts_event_own, &hosts_event_ours},
#endif
	};
	static const size_t counts[] = {1000, 100000, 1000000};
	size_t repeats = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : REPEATS;

	if (repeats == 0 || repeats > REPEATS_MOST)
		return 2;
	(void)printf("%-10s %9s  %-12s %8s %6s %8s %6s\n", "loop", "timers", "by", "restart",
		     "ratio", "fire", "ratio");
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++)
			compare(pairs[i][0], pairs[i][1], counts[n], repeats);
	return 0;
}
