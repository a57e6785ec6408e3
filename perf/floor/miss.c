/* SPDX-License-Identifier: MIT */
/*
 * The cost of reading a line of memory that is in no cache and whose page is in no TLB. The program
 * walks over half a gigabyte of small pages. The address of each step depends on the result of the
 * previous read, so that reads cannot overlap.
 */
#include "harness/measure.h"
#include "harness/probe.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE_BYTES = 64, STEPS = PROBE_OPS };
#define MISS_BYTES (UINT64_C(1) << 29)

/*
 * Reads lines in the order of a generator with full period, which visits every line (Knuth, The Art
 * of Computer Programming 2, 3.2.1.2).
 */
static double walk_ns(const unsigned char *lines, uint64_t count)
{
	/* CPU time, so that time taken by another process does not count as a miss. */
	int64_t started_ns = measure_cpu_ns();
	uint64_t at = 0;

	/*
	 * The lines hold only zeros, but the compiler cannot know that, so each step waits for its
	 * read.
	 */
	for (int i = 0; i < STEPS; i++)
		at = (at * 6364136223846793005u + 1442695040888963407u +
		      *(const volatile unsigned char *)&lines[at * LINE_BYTES]) &
		     (count - 1);
	return (double)(measure_cpu_ns() - started_ns) / STEPS;
}

double probe_walk_ns(uint64_t bytes, bool huge_pages)
{
	void *lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double ns;

	if (lines == MAP_FAILED)
		return NAN;
	(void)madvise(lines, bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	/* Makes every page of memory present. */
	memset(lines, 0, bytes);
	ns = walk_ns(lines, bytes / LINE_BYTES);
	munmap(lines, bytes);
	return ns;
}

double probe_miss(const struct probe *probe)
{
	(void)probe;
	return probe_walk_ns(MISS_BYTES, false);
}
