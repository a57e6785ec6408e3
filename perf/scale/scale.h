/* SPDX-License-Identifier: MIT */
/*
 * Curves: what an operation costs against one size at a time, and what the shapes cost that are
 * meant to hurt. A part is a set of points that are measured in turns, repeat by repeat, so that a
 * busy minute of the machine hits all of them.
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
	/* In the JSON: scale-PART-NAME. */
	char name[SCALE_NAME_BYTES];
	/* Where on the curve. */
	uint64_t at;
	/* As in struct workload. */
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
	/* Adds the points; 0, or an exit code after a message. */
	int (*fill)(struct scale_set *set);
	/* The curve, when all rows are there; may add to a row what is told in its JSON. */
	void (*tell)(struct scale_set *set);
};

/* Ends with a NULL name. */
extern const struct scale_part scale_parts[];

/* The operands name parts; none: all of them. 0, or -1 after a message. */
int scale_check(const struct options *options);

/* Returns an exit code. */
int scale_run(const struct options *options);

/* One more point, complete but for `run`; what was asked for goes before `ops` and `repeat`. */
struct scale_point *scale_add(struct scale_set *set, const char *name, uint64_t at, uint64_t ops,
			      unsigned repeat);

/* As many pending as are asked for at most. */
uint64_t scale_pending(const struct scale_set *set, uint64_t count);

/* 10 k, 5 M. */
const char *scale_size(uint64_t value, char buffer[SCALE_NAME_BYTES]);

/* scale/work.c. Pairs as fast as possible beside a trickle of 1-50 ms whose lateness is taken. */
int scale_trickle(const struct options *options, uint64_t unused, struct sample *ret_sample);
/* scale/work.c. A ring of 1 M live, or fewer, of one of the ranges; and all fire. */
int scale_ring(const struct options *options, uint64_t range, struct sample *ret_sample);
int scale_fire(const struct options *options, uint64_t range, struct sample *ret_sample);

struct scale_range {
	const char *name;
	int64_t from_ns;
	int64_t to_ns;
};

/* End with a NULL name. */
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

/* `which`: shape * SCALE_OPS + operation. As many at once as the options have operations. */
int scale_shape_run(const struct options *options, uint64_t which, struct sample *ret_sample);

/* scale/model.c. 0: not known. */
uint64_t scale_memory_available_bytes(void);
/* scale/model.c. Measures the machine, once, and says what it has found. An exit code. */
int scale_model_begin(void);
/* What a read costs beyond the first cache, in a set of so many bytes, evenly at random. */
double scale_model_extra_ns(uint64_t bytes);

#endif
