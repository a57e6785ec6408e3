/* SPDX-License-Identifier: MIT */
#include "variant.h"

/* The default. */
static void hashed_choose(struct tw_options *options)
{
	(void)options;
}

const struct variant variants[] = {
	{"hashed", hashed_choose},
};

const int variant_count = sizeof(variants) / sizeof(*variants);
