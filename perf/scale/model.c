/* SPDX-License-Identifier: MIT */
/*
 * The model that predicts the curve of pending timeouts: cost = base + misses x miss cost.
 *
 * If reads are spread uniformly over a set of W bytes, a read finds its line in a cache of C bytes
 * with probability C / W. So the miss cost of a set follows from two inputs: the sizes of the
 * caches, which the system reports, and the cost of a read in each of them, which a walk measures.
 * How many reads of which set an operation makes is known from the engine's code (scale/parts.c).
 * Reads that overlap cost less. So where the engine prefetches, the model is an upper bound, as
 * long as the set fits into the caches. (A larger set also causes TLB misses, which the model
 * ignores.)
 */
#include "harness/child.h"
#include "harness/measure.h"
#include "harness/probe.h"
#include "report/report.h"
#include "run/runner.h"
#include "scale/scale.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEVELS = 4, MEMORY = 3, PASSES = 3, CACHE_FILES = 8 };
#define MEMORY_MIN_BYTES (UINT64_C(1) << 29)

struct level {
	const char *name;
	uint64_t bytes;
	/* How many bytes the walk covered, and how long one step took. */
	uint64_t walk_bytes;
	double ns;
};

/* The sizes of a common machine. They are used if the system does not report its own. */
static struct level levels[LEVELS] = {
	{.name = "l1", .bytes = 32 << 10},
	{.name = "l2", .bytes = 1 << 20},
	{.name = "l3", .bytes = 32 << 20},
	{.name = "memory", .bytes = UINT64_MAX},
};
static bool told;

static bool cache_word(unsigned index, const char *file, char word[32])
{
	char path[96];
	FILE *stream;
	bool good;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, file);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	good = fscanf(stream, "%31s", word) == 1;
	fclose(stream);
	return good;
}

static uint64_t cache_bytes(const char *word)
{
	uint64_t value = 0;
	char unit = 0;

	(void)sscanf(word, "%" SCNu64 "%c", &value, &unit);
	return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : value;
}

static void sizes_read(void)
{
	char type[32], level[32], size[32];

	for (unsigned i = 0; i < CACHE_FILES; i++) {
		if (!cache_word(i, "type", type) || !cache_word(i, "level", level) ||
		    !cache_word(i, "size", size) || strcmp(type, "Instruction") == 0)
			continue;
		if (level[0] < '1' || level[0] > '3' || cache_bytes(size) == 0)
			continue;
		levels[level[0] - '1'].bytes = cache_bytes(size);
		told = true;
	}
}

static uint64_t power_below(uint64_t bytes)
{
	uint64_t power = 4096;

	while (power <= bytes / 2)
		power *= 2;
	return power;
}

/*
 * Chooses how many bytes each walk covers: half of each cache or less. For memory it is four times
 * the last cache, at least MEMORY_MIN_BYTES, but at most half of the available memory. All are
 * powers of two.
 */
static void walks_choose(void)
{
	uint64_t available = scale_memory_available_bytes();
	uint64_t memory = 4 * power_below(levels[MEMORY - 1].bytes);

	for (int i = 0; i < MEMORY; i++)
		levels[i].walk_bytes = power_below(levels[i].bytes / 2);
	if (memory < MEMORY_MIN_BYTES)
		memory = MEMORY_MIN_BYTES;
	while (available && memory > available / 2)
		memory /= 2;
	levels[MEMORY].walk_bytes = memory;
}

static int walk_body(const void *arg, void *result)
{
	const struct level *level = arg;

	/* Uses huge pages, as the library's slabs do. */
	*(double *)result = probe_walk_ns(level->walk_bytes, true);
	return 0;
}

static void level_report(struct level *level, const struct sample *samples)
{
	char name[SCALE_NAME_BYTES];
	struct row row = {
		.workload = name,
		.engine = "none",
		.wheel = "none",
		.producers = 1,
		.repeat = PASSES,
		.ops = PROBE_OPS,
		.part = "caches",
		.part_at = level->walk_bytes,
	};

	snprintf(name, sizeof(name), "scale-walk-%s", level->name);
	row_fill(&row, samples, PASSES, NAN);
	level->ns = row.ns_per_op;
	printf("%-8s", level->name);
	if (level == &levels[MEMORY])
		printf(" %12s", "");
	else
		printf(" %8" PRIu64 " KiB", level->bytes >> 10);
	printf(" %8.1f ns a read, in %" PRIu64 " KiB\n", level->ns, level->walk_bytes >> 10);
	report_json(&row);
}

static int level_measure(struct level *level)
{
	struct sample samples[PASSES];

	for (int i = 0; i < PASSES; i++) {
		samples[i] = sample_empty();
		if (child_run(walk_body, level, &samples[i].ns_per_op, sizeof(double)) ||
		    isnan(samples[i].ns_per_op)) {
			fprintf(stderr, "tickwheel-perf: scale: the walk failed\n");
			return EXIT_LOST;
		}
	}
	level_report(level, samples);
	return EXIT_GOOD;
}

/*
 * Prints how much memory the TLB covers. sysfs does not report that; /proc/cpuinfo does, for some
 * processors.
 */
static void tlb_tell(void)
{
	char line[256];
	FILE *stream = fopen("/proc/cpuinfo", "re");
	unsigned pages = 0;

	while (stream && pages == 0 && fgets(line, sizeof(line), stream))
		(void)sscanf(line, "TLB size : %u", &pages);
	if (stream)
		fclose(stream);
	if (pages)
		printf("TLB: %u pages, %u MiB of 4 KiB pages, %u of 2 MiB\n", pages, pages / 256,
		       pages * 2);
	else
		puts("TLB: the system does not tell its reach; slabs ask for pages of 2 MiB");
}

uint64_t scale_memory_available_bytes(void)
{
	FILE *stream = fopen("/proc/meminfo", "re");
	char line[128];
	uint64_t kib = 0;

	while (stream && kib == 0 && fgets(line, sizeof(line), stream))
		(void)sscanf(line, "MemAvailable: %" SCNu64, &kib);
	if (stream)
		fclose(stream);
	return kib << 10;
}

int scale_model_begin(void)
{
	static bool done;
	int code = EXIT_GOOD;

	if (done)
		return EXIT_GOOD;
	done = true;
	sizes_read();
	walks_choose();
	report_curve_begin("caches", told ? "their sizes as the system tells them; medians of 3"
					  : "sizes assumed, the system tells none; medians of 3");
	for (int i = 0; i < LEVELS && code == EXIT_GOOD; i++)
		code = level_measure(&levels[i]);
	tlb_tell();
	return code;
}

double scale_model_extra_ns(uint64_t bytes)
{
	double inside = 0;
	double ns = 0;

	for (int i = 0; i < LEVELS; i++) {
		double reach = bytes ? (double)levels[i].bytes / (double)bytes : 1;
		double found = reach < 1 ? reach : 1;

		ns += (found - inside) * (levels[i].ns - levels[0].ns);
		inside = found;
	}
	return ns;
}
