/* SPDX-License-Identifier: MIT */
/*
 * What it costs to read a line of memory that is in no cache and whose page is in no TLB: a walk over
 * half a gigabyte of small pages, each step of which needs what the one before has read.
 */
#include "measure.h"
#include "probe.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE_BYTES = 64, STEPS = PROBE_OPS };
#define LINES (UINT64_C(1) << 23)

/* A full period over all lines (Knuth, The Art of Computer Programming 2, 3.2.1.2). */
static double walk_ns(const unsigned char *lines)
{
	int64_t started_ns = measure_now_ns();
	uint64_t at = 0;

	/* The lines hold zeros, which only this loop does not know. */
	for (int i = 0; i < STEPS; i++)
		at = (at * 6364136223846793005u + 1442695040888963407u +
		      *(const volatile unsigned char *)&lines[at % LINES * LINE_BYTES]) %
		     LINES;
	return (double)(measure_now_ns() - started_ns) / STEPS;
}

double probe_miss(const struct probe *probe)
{
	size_t bytes = LINES * LINE_BYTES;
	void *lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double ns;

	(void)probe;
	if (lines == MAP_FAILED)
		return NAN;
	(void)madvise(lines, bytes, MADV_NOHUGEPAGE);
	/* Each page its own. */
	memset(lines, 0, bytes);
	ns = walk_ns(lines);
	munmap(lines, bytes);
	return ns;
}
