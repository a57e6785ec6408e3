/* SPDX-License-Identifier: MIT */
/*
 * Several threads make the first call of tw_default_engine at once, while another thread sets
 * options.
 *
 * The test includes its own copy of the source, so that it can repeat the first call as often as it
 * wants.
 *
 * All threads must get the same engine. It must have the options that were accepted, or the default
 * options if none were. The other engines that were made meanwhile must be freed.
 *
 * Seen to fail with these defects: default_make() publishes the engine by a plain store instead of
 * a compare-and-swap; options are accepted after a creator has read them; a creator whose swap
 * fails does not free its engine. Under ThreadSanitizer, also: the engine, or the options, are
 * published or read without a memory order.
 */
#include "check.h"

#define twi_default_engine copy_default_engine
#define twi_default_wish copy_default_wish
#define twi_default_is copy_default_is
#include "../../../src/engine/default.c"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tickwheel.h>

enum { CREATORS = 4, ROUNDS = 500, WISHED_SLOTS = 64 };

static pthread_barrier_t begin;
static struct tw_engine *found[CREATORS];
static int wish_code;
static atomic_llong live;

static void *count_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);

	(void)context;
	atomic_fetch_add(&live, memory != NULL);
	return memory;
}

static void count_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context, (void)bytes, (void)align;
	atomic_fetch_sub(&live, memory != NULL);
	free(memory);
}

static void *creator_body(void *arg)
{
	struct tw_engine **place = arg;

	(void)pthread_barrier_wait(&begin);
	*place = twi_default_engine();
	/* Reads fields that the creator wrote, so that ThreadSanitizer checks their order. */
	check_int((*place)->options.size, sizeof(struct tw_options));
	return NULL;
}

static void *wisher_body(void *arg)
{
	const struct tw_options *options = arg;

	(void)pthread_barrier_wait(&begin);
	wish_code = twi_default_wish(options);
	return NULL;
}

static void round_run(struct tw_options *options)
{
	pthread_t creator[CREATORS], wisher;
	long long before = atomic_load(&live);

	for (int i = 0; i < CREATORS; i++)
		check_int(pthread_create(&creator[i], NULL, creator_body, &found[i]), 0);
	check_int(pthread_create(&wisher, NULL, wisher_body, options), 0);
	for (int i = 0; i < CREATORS; i++)
		check_int(pthread_join(creator[i], NULL), 0);
	check_int(pthread_join(wisher, NULL), 0);
	for (int i = 1; i < CREATORS; i++)
		check_true(found[i] == found[0] && found[i] != NULL);
	check_true(wish_code == 0 || wish_code == -EBUSY);
	check_int(found[0]->options.slots == WISHED_SLOTS, wish_code == 0);
	twi_engine_free(found[0]);
	atomic_store(&made, NULL);
	wish_free(wish_of(atomic_exchange(&wished, 0)));
	check_int(atomic_load(&live), before);
}

Test(default_race, all_get_the_same_engine)
{
	static const struct tw_allocator counting = {.allocate = count_allocate,
						     .release = count_release};
	struct tw_options options;

	check_int(tw_memory_allocator_set(&counting), 0);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.slots = WISHED_SLOTS;
	check_int(pthread_barrier_init(&begin, NULL, CREATORS + 1), 0);
	for (int round = 0; round < ROUNDS; round++)
		round_run(&options);
	check_int(pthread_barrier_destroy(&begin), 0);
}
