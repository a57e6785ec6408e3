/* SPDX-License-Identifier: MIT */
/* The curves: their points, and how their results are printed. */
#include "harness/measure.h"
#include "run/runner.h"
#include "scale/scale.h"
#include "workload/workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

enum { REPEAT = 5, REPEAT_HUGE = 3, OPS = 1000000 };
/* With this many timeouts pending, a repeat takes a quarter of a minute or more. */
#define HUGE_PENDING UINT64_C(50000000)
/* The memory for one timeout: its node and slot entry, its handle in the harness, and a reserve. */
#define BYTES_PER_PENDING UINT64_C(110)
#define MEMORY_LEFT_BYTES (UINT64_C(1) << 30)

/* How many bytes each pending timeout adds to the two sets of the model: nodes and slot entries. */
enum { NODE_BYTES = 64 };
#define ENTRY_BYTES 8.4

/*
 * How often a pair reads a line at a random place of a set. A cancel of a random timeout makes
 * these reads: the canceller reads the node, and the worker reads its slot entry and the node whose
 * entry fills the hole. A pair with a fresh timeout makes no such read: the node comes from the
 * thread's stock, and the entry is the last of a slot.
 */
struct misses {
	double producer_nodes;
	double all_nodes;
	double all_entries;
};

static const struct misses random_misses = {.producer_nodes = 1, .all_nodes = 2, .all_entries = 1};
static const struct misses fresh_misses = {0, 0, 0};

static double extra_ns(double nodes, double entries, uint64_t pending)
{
	return nodes * scale_model_extra_ns(pending * NODE_BYTES) +
	       entries * scale_model_extra_ns((uint64_t)((double)pending * ENTRY_BYTES));
}

static bool memory_suffices(uint64_t pending)
{
	uint64_t available = scale_memory_available_bytes();
	uint64_t needed = pending * BYTES_PER_PENDING + MEMORY_LEFT_BYTES;

	if (pending < HUGE_PENDING || available == 0 || available >= needed)
		return true;
	printf("pending: %" PRIu64 " M skipped: needs %" PRIu64 " MiB, %" PRIu64
	       " MiB are available\n",
	       pending / 1000000, needed >> 20, available >> 20);
	return false;
}

static void pending_add(struct scale_set *set, const char *what, uint64_t pending,
			int (*run)(const struct options *, uint64_t, struct sample *))
{
	char size[SCALE_NAME_BYTES], name[SCALE_NAME_BYTES];
	struct scale_point *point;

	snprintf(name, sizeof(name), "%s-%.16s", what, scale_size(pending, size));
	point = scale_add(set, name, pending, OPS, pending < HUGE_PENDING ? REPEAT : REPEAT_HUGE);
	point->run = run;
	point->parameter = pending;
}

static int pending_fill(struct scale_set *set)
{
	static const uint64_t sizes[] = {1000,     10000,    100000,   1000000,
					 10000000, 50000000, 100000000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (sizes[i] != scale_pending(set, sizes[i]) || !memory_suffices(sizes[i]))
			continue;
		pending_add(set, "fresh", sizes[i], workload_pending_fresh);
		pending_add(set, "random", sizes[i], workload_pending);
	}
	return scale_model_begin();
}

/*
 * If fewer are pending, a random timeout is mostly still in ingress when it is cancelled, and never
 * reaches the wheel. That is a different operation.
 */
#define RANDOM_BASE_PENDING UINT64_C(10000)

/*
 * Returns the row from which the prediction for point `i` starts. Points of fresh and of random
 * pairs alternate.
 */
static const struct row *pending_base(const struct scale_set *set, unsigned i)
{
	unsigned base = i % 2;

	if (base == 1 && base + 2 < set->count &&
	    set->point[base].row.part_at < RANDOM_BASE_PENDING)
		base += 2;
	return &set->point[base].row;
}

/*
 * Predicts a row from a measured row with fewer pending timeouts: adds the model's cost of the
 * additional misses.
 */
static void predict(struct row *row, const struct row *first, const struct misses *misses)
{
	uint64_t least = first->part_at;
	double producer = extra_ns(misses->producer_nodes, 0, row->part_at) -
			  extra_ns(misses->producer_nodes, 0, least);
	double all = extra_ns(misses->all_nodes, misses->all_entries, row->part_at) -
		     extra_ns(misses->all_nodes, misses->all_entries, least);

	row->predicted_ns = first->ns_per_op + producer;
	row->predicted_cpu_ns = first->cpu_ns_per_op + all;
}

static void predicted_tell(double ns)
{
	if (ns > 0)
		printf(" %9.1f", ns);
	else
		printf(" %9s", "-");
}

static void pending_tell_one(const struct row *row)
{
	printf("%-26s %9.1f", row->workload, row->ns_per_op);
	predicted_tell(row->predicted_ns);
	printf(" %9.1f", row->cpu_ns_per_op);
	predicted_tell(row->predicted_cpu_ns);
	printf(" %9.1f %8.1f %4u\n", row->ns_per_op_max - row->ns_per_op_min,
	       row->bytes_per_pending, row->repeat);
}

static void pending_tell(struct scale_set *set)
{
	puts("                             wall ns predicted    CPU ns predicted    spread "
	     "bytes/p. rep.");
	for (unsigned i = 0; i < set->count; i++) {
		struct row *row = &set->point[i].row;
		const struct row *base = pending_base(set, i);

		if (row->part_at >= base->part_at)
			predict(row, base, i % 2 ? &random_misses : &fresh_misses);
		pending_tell_one(row);
	}
	puts("Predicted: 1 k (at random: 10 k), and the model's misses beyond it (docs/perf.md).");
}

static int producers_fill(struct scale_set *set)
{
	static const unsigned counts[] = {1, 2, 4, 8};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		char size[SCALE_NAME_BYTES];
		struct scale_point *point =
			scale_add(set, scale_size(counts[i], size), counts[i], 5 * OPS, REPEAT);

		point->run = scale_trickle;
		point->options.producers = counts[i];
	}
	return EXIT_GOOD;
}

/*
 * Predicts the cost of a pair with several producers. A pair costs its producer the time `pair` and
 * the worker the time `worker`. The processors share this work.
 */
static double producers_predicted(const struct row *first, double producers, double processors)
{
	double pair = first->ns_per_op;
	double worker = first->cpu_ns_per_op > pair ? first->cpu_ns_per_op - pair : 0;
	double alone = pair / (producers < processors ? producers : processors);
	double shared = (pair + worker) / processors;
	double ns = alone > shared ? alone : shared;

	return ns > worker ? ns : worker;
}

static double lateness_ms(const struct row *row, double fraction)
{
	return histogram_percentile(&row->lateness_ns, fraction) / 1e6;
}

static void producers_tell_one(const struct row *row)
{
	printf("%9u %9.1f %9.1f %9.1f %9.1f %9.2f %9.2f %9.2f\n", row->producers, row->ns_per_op,
	       row->predicted_ns, row->ns_per_op_max - row->ns_per_op_min, row->cpu_ns_per_op,
	       lateness_ms(row, 0.5), lateness_ms(row, 0.99), (double)row->lateness_ns.max / 1e6);
}

static void producers_tell(struct scale_set *set)
{
	const struct row *first = &set->point[0].row;
	double worker = first->cpu_ns_per_op - first->ns_per_op;

	puts("producers   wall ns predicted    spread    CPU ns   lateness ms: p50, p99, worst");
	for (unsigned i = 0; i < set->count; i++) {
		struct row *row = &set->point[i].row;

		row->predicted_ns = producers_predicted(first, row->producers, measure_cpu_count());
		producers_tell_one(row);
	}
	printf("64 producers on 65 processors, by the same rule: %.1f ns a pair",
	       producers_predicted(first, 64, 65));
	if (worker > 0)
		printf("; the worker's %.1f ns are the bound from %.0f producers on", worker,
		       ceil(first->ns_per_op / worker));
	puts(".");
}

static struct scale_point *add_fire(struct scale_set *set, const char *name, uint64_t at)
{
	struct scale_point *point = scale_add(set, name, at, OPS, REPEAT);

	point->run = scale_fire;
	/* Index of the range 1 ms to 1 s. */
	point->parameter = 2;
	return point;
}

static int slots_fill(struct scale_set *set)
{
	static const uint32_t counts[] = {512, 4096, 32768, 262144, 1048576};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		char name[SCALE_NAME_BYTES];
		struct scale_point *point;

		snprintf(name, sizeof(name), "random-%" PRIu32, counts[i]);
		point = scale_add(set, name, counts[i], OPS, REPEAT);
		point->run = workload_pending;
		point->parameter = scale_pending(set, 1000000);
		point->options.wheel = TW_WHEEL_HASHED;
		point->options.slots = counts[i];
		snprintf(name, sizeof(name), "fire-%" PRIu32, counts[i]);
		point = add_fire(set, name, counts[i]);
		point->options.wheel = TW_WHEEL_HASHED;
		point->options.slots = counts[i];
	}
	return EXIT_GOOD;
}

static int tick_fill(struct scale_set *set)
{
	static const uint64_t ticks_ns[] = {1000, 10000, 100000, 1000000, 10000000, 100000000};

	for (size_t i = 0; i < sizeof(ticks_ns) / sizeof(*ticks_ns); i++) {
		char name[SCALE_NAME_BYTES];

		snprintf(name, sizeof(name), "fire-%" PRIu64 "us", ticks_ns[i] / 1000);
		add_fire(set, name, ticks_ns[i])->options.tick_ns = ticks_ns[i];
	}
	return EXIT_GOOD;
}

static int range_fill(struct scale_set *set)
{
	char name[SCALE_NAME_BYTES];

	for (unsigned i = 0; scale_fire_ranges[i].name; i++) {
		snprintf(name, sizeof(name), "fire-%s", scale_fire_ranges[i].name);
		add_fire(set, name, (uint64_t)scale_fire_ranges[i].to_ns)->parameter = i;
	}
	for (unsigned i = 0; scale_ring_ranges[i].name; i++) {
		struct scale_point *point;

		snprintf(name, sizeof(name), "ring-%s", scale_ring_ranges[i].name);
		point = scale_add(set, name, (uint64_t)scale_ring_ranges[i].to_ns, OPS, REPEAT);
		point->run = scale_ring;
		point->parameter = i;
	}
	return EXIT_GOOD;
}

static void curve_tell(struct scale_set *set)
{
	puts("                                   wall ns    CPU ns    spread bytes/p.  lateness "
	     "ms: p50, p99");
	for (unsigned i = 0; i < set->count; i++) {
		const struct row *row = &set->point[i].row;

		printf("%-32s %9.1f %9.1f %9.1f", row->workload, row->ns_per_op, row->cpu_ns_per_op,
		       row->ns_per_op_max - row->ns_per_op_min);
		if (isfinite(row->bytes_per_pending))
			printf(" %8.1f", row->bytes_per_pending);
		else
			printf(" %8s", "-");
		if (row->lateness_ns.count)
			printf(" %9.3f %9.3f", lateness_ms(row, 0.5), lateness_ms(row, 0.99));
		putchar('\n');
	}
}

/*
 * Returns whether a shape is measured for an operation. Shapes that differ only in the order of
 * cancels are measured only for cancel.
 */
static bool shape_of_op(enum scale_shape shape, enum scale_op op)
{
	return op == SCALE_CANCEL || (shape != SCALE_REVERSE && shape != SCALE_RANDOM);
}

static int shapes_fill(struct scale_set *set)
{
	for (unsigned op = 0; op < SCALE_OPS; op++)
		for (unsigned shape = 0; shape < SCALE_SHAPES; shape++) {
			char name[SCALE_NAME_BYTES];
			struct scale_point *point;

			if (!shape_of_op(shape, op))
				continue;
			snprintf(name, sizeof(name), "%s-%s", scale_op_names[op],
				 scale_shape_names[shape]);
			point = scale_add(set, name, shape, OPS, REPEAT);
			point->run = scale_shape_run;
			point->parameter = shape * SCALE_OPS + op;
		}
	return scale_model_begin();
}

static enum scale_op op_of(const struct scale_point *point)
{
	return (enum scale_op)(point->parameter % SCALE_OPS);
}

static const struct row *mean_of(const struct scale_set *set, enum scale_op op)
{
	unsigned i = 0;

	while (set->point[i].at != SCALE_MEAN || op_of(&set->point[i]) != op)
		i++;
	return &set->point[i].row;
}

static void worst_tell(const struct scale_set *set, enum scale_op op)
{
	const struct row *worst = mean_of(set, op);

	for (unsigned i = 0; i < set->count; i++)
		if (op_of(&set->point[i]) == op && set->point[i].row.over_mean > worst->over_mean)
			worst = &set->point[i].row;
	printf("%-8s worst / mean %.2f (%s; 3 is the target)\n", scale_op_names[op],
	       worst->over_mean, scale_shape_names[worst->part_at]);
}

/*
 * Predicts the cost of cancels in random order, the only shape that the hardware cannot prefetch:
 * the mean plus the model's misses.
 */
static void random_tell(struct scale_set *set)
{
	double mean = mean_of(set, SCALE_CANCEL)->cpu_ns_per_op;

	for (unsigned i = 0; i < set->count; i++) {
		struct row *row = &set->point[i].row;

		if (row->part_at != SCALE_RANDOM)
			continue;
		row->predicted_cpu_ns = mean + extra_ns(random_misses.all_nodes,
							random_misses.all_entries, row->ops);
		printf("cancel at random: %.1f CPU ns; the mean and the model's misses, none of "
		       "them overlapped: %.1f\n",
		       row->cpu_ns_per_op, row->predicted_cpu_ns);
	}
}

static void shapes_tell(struct scale_set *set)
{
	puts("                                   wall ns    CPU ns    spread over mean (CPU)");
	for (unsigned i = 0; i < set->count; i++) {
		struct row *row = &set->point[i].row;

		row->over_mean =
			row->cpu_ns_per_op / mean_of(set, op_of(&set->point[i]))->cpu_ns_per_op;
		printf("%-32s %9.1f %9.1f %9.1f %9.2f\n", row->workload, row->ns_per_op,
		       row->cpu_ns_per_op, row->ns_per_op_max - row->ns_per_op_min, row->over_mean);
	}
	for (unsigned op = 0; op < SCALE_OPS; op++)
		worst_tell(set, op);
	random_tell(set);
}

const struct scale_part scale_parts[] = {
	{"pending", "a pair beside so many pending: a fresh one; cancel at random, schedule",
	 pending_fill, pending_tell},
	{"producers", "pairs as fast as possible, all producers together, and a trickle that fires",
	 producers_fill, producers_tell},
	{"slots", "the hashed wheel: cancel at random of 1 M; fire in 1 ms to 1 s", slots_fill,
	 curve_tell},
	{"tick", "fire in 1 ms to 1 s", tick_fill, curve_tell},
	{"range", "fire; and of 1 M live the oldest out, one in", range_fill, curve_tell},
	{"shapes", "a million at once that are meant to hurt, beside an even spread", shapes_fill,
	 shapes_tell},
	{NULL, NULL, NULL, NULL},
};
