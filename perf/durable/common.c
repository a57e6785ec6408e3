/* SPDX-License-Identifier: MIT */
#include "durable/common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

char path[512], beside_path[520];

void paths_set(const char *folder)
{
	snprintf(path, sizeof(path), "%s/durable-perf", folder);
	snprintf(beside_path, sizeof(beside_path), "%s-beside", path);
}

static void remove_all(const char *name)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-lock", "-reserve"};
	char whole[600];

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(whole, sizeof(whole), "%s%s", name, endings[i]);
		unlink(whole);
	}
}

void files_remove(void)
{
	remove_all(path);
	remove_all(beside_path);
}

void forget(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)fdatasync(fd);
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	exit(1);
}

double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

uint64_t random_next(void)
{
	static uint64_t state = 1;
	uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t written(void)
{
	FILE *file = fopen("/proc/self/io", "r");
	unsigned long long value = 0, found = 0;
	char name[32];

	while (file != NULL && fscanf(file, "%31s %llu", name, &value) == 2)
		if (strcmp(name, "wchar:") == 0)
			found = value;
	if (file != NULL)
		fclose(file);
	return found;
}

static int compare(const void *one, const void *other)
{
	const double *left = one, *right = other;

	return *left < *right ? -1 : *left > *right;
}

double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}
