/* SPDX-License-Identifier: MIT */
/*
 * Hours of mixed load. usage: soak [seconds] [seed] [crowd]. Threads come and go. They schedule
 * near, far and endless timeouts, cancel them, cancel and wait, and schedule them again. The crowd
 * (default 0, at most 1024) are threads that do little; a tenth of them is replaced each second.
 * One engine runs callbacks itself, and one dispatches them. Both are stopped and created again,
 * over and over.
 *
 * It fails if a timeout ends twice or not at all, runs early, or is forgotten; if an engine's
 * counters do not balance; or if the memory of the process grows over the second half (slope.h, one
 * sample a second).
 *
 * Seen to fail with these defects: reclaim, or expiry, does not free one node in 16, so memory
 * grows; transfer drops one node in a million, so a timeout is lost; a due tick is one too small,
 * which the engine's own check counts.
 */
#include "soak.h"
#include "slope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum {
	SHORT_RUN_S = 300,
	/* The slope needs enough samples, so a shorter run checks only the counts. */
	SECONDS_OF_SLOPE = 20,
	/*
	 * The growth allowed in the second half. A thread's stack and arena may be touched late.
	 * Rings may become full for the first time because the machine was busy, and then grow to
	 * 8,192 places. tests/internal/lane/test_rings.c checks that they are given back.
	 */
	GROWTH_FLOOR_BYTES = (64 << 10) + SEATS * ENGINES * (64 << 10),
	RENEWAL_S = 5,
	/*
	 * This memory is touched before the start. It is enough for the timeouts that are cancelled
	 * and not yet reclaimed if the machine stands still for a quarter of a second. So such a
	 * peak is no growth. A leak must use up this memory first.
	 */
	RESERVED = 4 * SEATS * ITEMS,
};

/*
 * Returns the resident memory. smaps_rollup walks the page tables; the kernel's quick figure is not
 * exact.
 */
static double rss_bytes(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	unsigned long kilobytes = 0;
	char line[256];

	RACE_CHECK(file != NULL);
	while (kilobytes == 0 && fgets(line, sizeof line, file) != NULL)
		(void)sscanf(line, "Rss: %lu kB", &kilobytes);
	(void)fclose(file);
	RACE_CHECK(kilobytes > 0);
	return (double)kilobytes * 1024;
}

static void report(uint64_t second, double rss)
{
	printf("%6lu s: scheduled %lu expired %lu cancelled %lu handed back %lu pending %lu; "
	       "threads %lu engines %lu; rss %.0f KiB; ",
	       (unsigned long)second, (unsigned long)atomic_load(&books.scheduled),
	       (unsigned long)atomic_load(&books.expired),
	       (unsigned long)atomic_load(&books.cancelled),
	       (unsigned long)atomic_load(&books.unexpired), (unsigned long)engines_pending(),
	       (unsigned long)atomic_load(&books.threads),
	       (unsigned long)atomic_load(&books.engines), rss / 1024);
	lateness_tell();
	printf("\n");
	fflush(stdout);
}

static void until(int64_t begin_ns, uint64_t second)
{
	int64_t left_ns = begin_ns + (int64_t)second * 1000000000 - race_now_ns();

	if (left_ns > 0)
		(void)nanosleep(&(struct timespec){.tv_sec = left_ns / 1000000000,
						   .tv_nsec = left_ns % 1000000000},
				NULL);
}

static void run(uint64_t seconds, double *samples)
{
	uint64_t period_s = seconds <= SHORT_RUN_S ? 10 : 60;
	int64_t begin_ns = race_now_ns();

	for (uint64_t second = 1; second <= seconds; second++) {
		until(begin_ns, second);
		samples[second - 1] = rss_bytes();
		if (second % period_s == 0)
			report(second, samples[second - 1]);
		/*
		 * Renews one engine every RENEWAL_S seconds, in turn. The sample of this second has
		 * already been taken, so a renewal in the last second does not count.
		 */
		if (second % RENEWAL_S == 0)
			engine_renew((uint32_t)(second / RENEWAL_S % ENGINES));
	}
}

/* Returns true if memory is constant. */
static bool memory_judge(const double *samples, uint64_t seconds)
{
	uint64_t half = seconds / 2;
	struct slope slope = slope_fit(samples + (seconds - half), half);
	bool grows = slope_grows(&slope, GROWTH_FLOOR_BYTES);

	printf("memory, second half: %+.0f bytes a second, standard error %.0f, %+.0f KiB in all: "
	       "%s\n",
	       slope.per_sample, slope.error, slope.growth / 1024, grows ? "GROWS" : "constant");
	return !grows;
}

static void books_check(void)
{
	uint64_t ended = atomic_load(&books.expired) + atomic_load(&books.cancelled) +
			 atomic_load(&books.unexpired);

	printf("scheduled %lu = expired %lu + cancelled %lu + handed back %lu; rejected %lu; lost "
	       "%ld\n",
	       (unsigned long)books.scheduled, (unsigned long)books.expired,
	       (unsigned long)books.cancelled, (unsigned long)books.unexpired,
	       (unsigned long)books.rejected, (long)(books.scheduled - ended));
	RACE_CHECK(books.scheduled == ended);
	RACE_CHECK(books.expired > 0 && books.cancelled > 0 && books.unexpired > 0);
}

int main(int argc, char **argv)
{
	uint64_t seconds = race_argument(argc, argv, 1, 60), seed = race_argument(argc, argv, 2, 1);
	uint64_t crowd = race_argument(argc, argv, 3, 0);
	double *samples = calloc(seconds, sizeof *samples);
	bool constant;

	RACE_CHECK(seconds > 0 && samples != NULL && crowd <= CROWD_MAX);
	/* Touches the series' own memory before the start, because it must not count as growth. */
	memset(samples, 1, seconds * sizeof *samples);
	/*
	 * Switches off huge pages, because a huge page would hide a leak until the leak has filled
	 * 2 MiB.
	 */
	RACE_CHECK(prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL) == 0);
	RACE_CHECK(tw_memory_reserve(RESERVED) == 0);
	race_watchdog((unsigned)seconds + 120);
	engines_open();
	seats_open(seed);
	crowd_open((uint32_t)crowd, seed);
	run(seconds, samples);
	seats_close();
	crowd_close();
	engines_close();
	books_check();
	constant = seconds < SECONDS_OF_SLOPE || memory_judge(samples, seconds);
	free(samples);
	return constant ? 0 : 1;
}
