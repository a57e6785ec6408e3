/* SPDX-License-Identifier: MIT */
/*
 * The kinds of engine that the oracle is asked about. Each wheel, with a
 * worker thread and as a loop; a new wheel is two new lines in variant.c.
 */
#ifndef ORACLE_VARIANT_H
#define ORACLE_VARIANT_H

#include <tickwheel.h>

struct variant {
	const char *name;
	/* Sets what makes the engine this one. */
	void (*choose)(struct tw_options *options);
};

extern const struct variant variants[];
extern const int variant_count;

#endif
