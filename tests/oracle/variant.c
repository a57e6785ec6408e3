/* SPDX-License-Identifier: MIT */
#include "variant.h"

static void hashed_choose(struct tw_options *options)
{
	options->wheel = TW_WHEEL_HASHED;
}

static void hierarchical_choose(struct tw_options *options)
{
	options->wheel = TW_WHEEL_HIERARCHICAL;
}

static void hashed_loop_choose(struct tw_options *options)
{
	hashed_choose(options);
	options->flags = TW_ENGINE_LOOP;
}

static void hierarchical_loop_choose(struct tw_options *options)
{
	hierarchical_choose(options);
	options->flags = TW_ENGINE_LOOP;
}

const struct variant variants[] = {
	{"hashed", hashed_choose},
	{"hierarchical", hierarchical_choose},
	{"hashed-loop", hashed_loop_choose},
	{"hierarchical-loop", hierarchical_loop_choose},
};

const int variant_count = sizeof(variants) / sizeof(*variants);
