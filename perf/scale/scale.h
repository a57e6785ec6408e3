/* SPDX-License-Identifier: MIT */
/*
 * Curves show how the cost of an operation depends on one size at a time, and what unfavourable
 * shapes cost. A part is a set of points. Each repeat is made for all points in turn before the
 * next repeat, so that other load on the machine affects all points.
 */
#ifndef PERF_SCALE_SCALE_H
#define PERF_SCALE_SCALE_H

#include "harness/options.h"
#include "harness/sample.h"
#include "report/row.h"

#include <stdbool.h>
#include <stdint.h>

enum { SCALE_POINTS_MAX = 24, SCALE_NAME_BYTES = 48 };

struct scale_point {
	/* The last part of the name in the JSON, scale-PART-NAME. */
	char name[SCALE_NAME_BYTES];
	/* The point's place on the curve. */
	uint64_t at;
	/* Runs one repeat, as in struct workload. */
	int (*run)(const struct options *options, uint64_t parameter, struct sample *ret_sample);
	uint64_t parameter;
	struct options options;
	struct sample *samples;
	struct row row;
};

struct scale_set {
	const struct options *asked;
	const char *part;
	struct scale_point point[SCALE_POINTS_MAX];
	unsigned count;
};

struct scale_part {
	const char *name;
	const char *summary;
	/* Adds the points. Returns 0, or an exit code after a message. */
	int (*fill)(struct scale_set *set);
	/*
	 * Prints the curve when all rows are complete. May add figures to a row, which then appear
	 * in its JSON.
	 */
	void (*tell)(struct scale_set *set);
};

/* Ends with a NULL name. */
extern const struct scale_part scale_parts[];

/* Checks the operands, which name parts; none stands for all. Returns 0, or -1 after a message. */
int scale_check(const struct options *options);

/* Returns an exit code. */
int scale_run(const struct options *options);

/*
 * Adds a point, complete except for `run`. The user's options take precedence over `ops` and
 * `repeat`.
 */
struct scale_point *scale_add(struct scale_set *set, const char *name, uint64_t at, uint64_t ops,
			      unsigned repeat);

/* Returns `count`, or the user's limit of pending timeouts if that is lower. */
uint64_t scale_pending(const struct scale_set *set, uint64_t count);

/* Writes a size in short form: 10k, 5m. */
const char *scale_size(uint64_t value, char buffer[SCALE_NAME_BYTES]);

/*
 * scale/work.c. Makes pairs as fast as possible, together with a few timeouts of 1-50 ms whose
 * lateness is measured.
 */
int scale_trickle(const struct options *options, uint64_t unused, struct sample *ret_sample);
/*
 * scale/work.c. A ring of 1 M live timeouts, or fewer, with delays of one range; and timeouts of a
 * range that all fire.
 */
int scale_ring(const struct options *options, uint64_t range, struct sample *ret_sample);
int scale_fire(const struct options *options, uint64_t range, struct sample *ret_sample);

struct scale_range {
	const char *name;
	int64_t from_ns;
	int64_t to_ns;
};

/* Both end with a NULL name. */
extern const struct scale_range scale_ring_ranges[];
extern const struct scale_range scale_fire_ranges[];

/* scale/shapes.c */
enum scale_op { SCALE_SCHEDULE, SCALE_CANCEL, SCALE_EXPIRE, SCALE_OPS };
enum scale_shape {
	SCALE_MEAN,
	SCALE_ONE_SLOT,
	SCALE_ONE_INSTANT,
	SCALE_PERIODS,
	SCALE_REVERSE,
	SCALE_RANDOM,
	SCALE_SHAPES,
};

extern const char *const scale_op_names[SCALE_OPS];
extern const char *const scale_shape_names[SCALE_SHAPES];

/*
 * Runs one operation on as many timeouts at once as the options have operations. `which`: shape *
 * SCALE_OPS + operation.
 */
int scale_shape_run(const struct options *options, uint64_t which, struct sample *ret_sample);

/* scale/model.c. Returns the available memory, or 0 if it is not known. */
uint64_t scale_memory_available_bytes(void);
/*
 * scale/model.c. Measures the machine once per process, and prints the results. Returns an exit
 * code.
 */
int scale_model_begin(void);
/*
 * scale/model.c. Returns how much more a read at a random place of a set of `bytes` costs than a
 * read in the first cache.
 */
double scale_model_extra_ns(uint64_t bytes);

#endif
