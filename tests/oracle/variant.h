/* SPDX-License-Identifier: MIT */
/*
 * The kinds of engine that the oracle tests: each wheel, with a worker thread and as a loop. A new
 * wheel needs two more lines in variant.c.
 */
#ifndef ORACLE_VARIANT_H
#define ORACLE_VARIANT_H

#include <tickwheel.h>

struct variant {
	const char *name;
	/* Sets the options that make the engine this variant. */
	void (*choose)(struct tw_options *options);
};

extern const struct variant variants[];
extern const int variant_count;

#endif
