/* SPDX-License-Identifier: MIT */
/*
 * After warm-up, schedule, replace, cancel, further runs and ends of keyed timeouts must not
 * allocate memory. The only exceptions are copies of keys that do not fit into an entry. This
 * program replaces the C library's malloc family to count the calls.
 *
 * Seen to fail with these defects: entries are not given back; a copy is not released.
 */
#include "keyed_scene.h"

#include "slowdown.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static atomic_long allocations, releases;

#ifndef SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *memory);

void *malloc(size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_malloc(bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_memalign(align, bytes);
}

void free(void *memory)
{
	atomic_fetch_add(&releases, 1);
	__libc_free(memory);
}
#endif

enum { COUNT = 1000, LONG_BYTES = 100, WARM_ROUNDS = 25, ROUNDS = 25 };

static struct item items[COUNT], others[COUNT];

/*
 * Returns 1 if the program can count allocations. It cannot if a sanitizer or valgrind has its own
 * allocator.
 */
static long counted(void)
{
	long before = atomic_load(&allocations);
	void *volatile memory = aligned_alloc(64, 64);

	free(memory);
	return atomic_load(&allocations) - before;
}

/* Replaces some entries, cancels some, and lets some run twice. */
static void use_once(struct fixture *fixture, struct tw_keyed *table, size_t key_bytes)
{
	char key[LONG_BYTES] = "";

	for (int i = 0; i < COUNT; i++) {
		item_init(&items[i], fixture->engine);
		item_init(&others[i], fixture->engine);
		memcpy(key, &i, sizeof i);
		items[i].scripted = i % 2;
		items[i].again_ns[0] = NS_PER_MS;
		check_int(tw_keyed_schedule(table, key, key_bytes, NS_PER_MS, &item_kind, &items[i],
					    NULL),
			  TW_KEYED_DONE);
		if (i % 3 == 0)
			check_int(tw_keyed_replace(table, key, key_bytes, 1, &item_kind, &others[i],
						   NULL),
				  TW_KEYED_REPLACED);
		if (i % 5 == 0)
			check_int(tw_keyed_cancel(table, key, key_bytes, TW_KEYED_ANY),
				  TW_KEYED_DONE);
	}
	for (int i = 0; i < 5; i++)
		fixture_advance(fixture, NS_PER_MS);
	/*
	 * Gives the reclaimer time for a turn, which gives back entries. The reserve would last for
	 * 40 rounds without any turn.
	 */
	sleep_ns(3 * NS_PER_MS);
	check_int(tw_keyed_count(table), 0);
	for (int i = 0; i < COUNT; i++)
		check_int(items[i].ended, 1);
}

static struct tw_keyed *steady_open(struct fixture *fixture)
{
	struct tw_options options = fixture_options();
	struct tw_keyed_options table_options;
	struct tw_keyed *table = NULL;

	options.check = TW_CHECK_NONE;
	options.slots = 64;
	check_int(tw_memory_reserve(8 * COUNT), 0);
	fixture_open(fixture, &options);
	check_int(tw_keyed_options_init(&table_options, sizeof table_options), 0);
	/*
	 * The reserve is too small for all rounds, so entries that were given back must be used
	 * again. It is so large that the reclaimer may miss some rounds.
	 */
	table_options.reserve = 40 * COUNT;
	check_int(tw_keyed_create(fixture->engine, &table_options, &table), 0);
	return table;
}

Test(keyed_steady, steady_state_allocates_nothing)
{
	struct fixture fixture;
	struct tw_keyed *table = steady_open(&fixture);
	uint64_t slabs;
	long before;

	for (int i = 0; i < WARM_ROUNDS; i++)
		use_once(&fixture, table, sizeof(int));
	before = atomic_load(&allocations);
	slabs = tw_memory_slab_bytes();
	for (int i = 0; i < ROUNDS; i++)
		use_once(&fixture, table, sizeof(int));
	check_int(atomic_load(&allocations) - before, 0);
	check_int(tw_memory_slab_bytes(), slabs);
	scene_close(&fixture, table);
}

/*
 * Each entry must copy its key once, and release the copy. A replace must not copy the key again.
 */
Test(keyed_steady, long_key_is_copied_once)
{
	struct fixture fixture;
	struct tw_keyed *table = steady_open(&fixture);
	long allocated, released;

	for (int i = 0; i < WARM_ROUNDS; i++)
		use_once(&fixture, table, LONG_BYTES);
	allocated = atomic_load(&allocations);
	released = atomic_load(&releases);
	for (int i = 0; i < ROUNDS; i++)
		use_once(&fixture, table, LONG_BYTES);
	/*
	 * valgrind shows only the program's own allocations, not a library's, so the check is left
	 * out there.
	 */
	if (slowdown() == 1)
		check_int(atomic_load(&allocations) - allocated, ROUNDS * COUNT * counted());
	for (int i = 0; i < 10000 && slowdown() == 1 && counted() != 0; i++) {
		if (atomic_load(&releases) - released >= ROUNDS * COUNT)
			break;
		sleep_ns(NS_PER_MS);
	}
	if (slowdown() == 1 && counted() != 0)
		check_at_least(atomic_load(&releases) - released, ROUNDS * COUNT);
	scene_close(&fixture, table);
}

#ifndef SANITIZED
/* The counter must notice an allocation. Otherwise a count of 0 would prove nothing. */
Test(keyed_steady, counter_sees_an_allocation)
{
	if (slowdown() == 1)
		check_int(counted(), 1);
}
#endif
