/* SPDX-License-Identifier: MIT */
/* The memory, mappings, threads and descriptors of a process. A figure is -1 if it cannot be
 * read. */
#ifndef TESTS_FOOTPRINT_H
#define TESTS_FOOTPRINT_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

/* A sanitizer's own memory grows while the process works, so memory cannot be compared exactly. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOOTPRINT_EXACT 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FOOTPRINT_EXACT 0
#endif
#endif
#ifndef FOOTPRINT_EXACT
#define FOOTPRINT_EXACT 1
#endif

struct footprint {
	long long resident_bytes;
	long long mappings;
	long long threads;
	long long descriptors;
};

static inline long long footprint_entries(const char *path)
{
	DIR *folder = opendir(path);
	long long count = 0;

	if (folder == NULL)
		return -1;
	while (readdir(folder) != NULL)
		count++;
	(void)closedir(folder);
	return count;
}

static inline long long footprint_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	long long count = 0;
	int letter;

	if (file == NULL)
		return -1;
	while ((letter = fgetc(file)) != EOF)
		count += letter == '\n';
	(void)fclose(file);
	return count;
}

static inline long long footprint_resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long long pages = 0, resident = -1;

	if (file == NULL)
		return -1;
	if (fscanf(file, "%lld %lld", &pages, &resident) == 2)
		resident *= sysconf(_SC_PAGESIZE);
	(void)fclose(file);
	return resident;
}

static inline struct footprint footprint_take(void)
{
	return (struct footprint){
		.resident_bytes = footprint_resident_bytes(),
		.mappings = footprint_lines("/proc/self/maps"),
		.threads = footprint_entries("/proc/self/task"),
		.descriptors = footprint_entries("/proc/self/fd"),
	};
}

/*
 * Takes a footprint to compare with `before`. Waits first, because for a moment after a join the
 * system still lists the thread.
 */
static inline struct footprint footprint_take_after(const struct footprint *before)
{
	for (int waited_ms = 0; waited_ms < 10000; waited_ms += 10) {
		if (footprint_entries("/proc/self/task") <= before->threads)
			break;
		(void)usleep(10000);
	}
	return footprint_take();
}

#endif
