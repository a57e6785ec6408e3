/* SPDX-License-Identifier: MIT */
/*
 * A table: its options, how it is created and destroyed.
 *
 * liburcu ends the process if it finds no memory for its hash table. So tw_keyed_create first
 * allocates as much memory itself, and frees it again. If that fails, the call returns an error. If
 * another thread takes the memory in between, liburcu still ends the process.
 */
#include "base/bits.h"
#include "base/sized.h"
#include "keyed/entry.h"
#include "keyed/hash.h"
#include "keyed/reclaim.h"
#include "memory/memory.h"
#include "thread/fork.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	EXPECTED_KEYS_DEFAULT = 1024,
	KEY_BYTES_MAX_DEFAULT = 256,
	/* An upper bound for the fixed part of liburcu's hash table. */
	HASH_BYTES = 4096,
};

static const struct tw_keyed_options defaults = {
	.size = sizeof defaults,
	.expected_keys = EXPECTED_KEYS_DEFAULT,
	.key_bytes_max = KEY_BYTES_MAX_DEFAULT,
};

static void *c_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	return align <= _Alignof(max_align_t) ? malloc(bytes) : aligned_alloc(align, bytes);
}

static void c_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

static const struct tw_allocator c_allocator = {.allocate = c_allocate, .release = c_release};

int tw_keyed_options_init(struct tw_keyed_options *ret_options, size_t size)
{
	return twi_options_fill(ret_options, size, sizeof defaults, &defaults, sizeof defaults);
}

static int options_check(const struct tw_keyed_options *options)
{
	int error = twi_size_check(options, options->size, sizeof *options, sizeof *options);

	if (error != 0)
		return error;
	if (options->flags != 0 || options->expected_keys == 0 ||
	    options->expected_keys > TW_KEYED_KEYS_MAX || options->reserve > TW_KEYED_KEYS_MAX ||
	    options->key_bytes_max == 0 || options->key_bytes_max > TW_KEYED_KEY_BYTES_MAX)
		return -EINVAL;
	if (options->allocator != NULL &&
	    (options->allocator->allocate == NULL || options->allocator->release == NULL))
		return -EINVAL;
	return 0;
}

/*
 * Returns a seed for the hash. If the system has no randomness yet, the seed at least differs from
 * table to table. (The function getrandom must not be used, because it is a cancellation point.)
 */
static uint64_t seed_make(const struct tw_keyed *table, int64_t now_ns)
{
	uint64_t seed;

	if (syscall(SYS_getrandom, &seed, sizeof seed, GRND_NONBLOCK) != (long)sizeof seed)
		seed = twi_fold((uint64_t)(uintptr_t)table, (uint64_t)now_ns | 1);
	return seed;
}

static struct cds_lfht *hash_make(uint32_t expected_keys)
{
	unsigned long buckets = twi_round_up_pow2(expected_keys);
	void *probe = malloc(buckets * sizeof(struct cds_lfht_node) + HASH_BYTES);

	if (probe == NULL)
		return NULL;
	free(probe);
	return cds_lfht_new_flavor(buckets, buckets, buckets, 0, &twi_rcu_flavor, NULL);
}

static void table_release(struct tw_keyed *table)
{
	if (table->hash != NULL)
		(void)cds_lfht_destroy(table->hash, NULL);
	twi_keyed_entries_release(table);
	twi_release(table->allocator, table, sizeof *table, TWI_CACHE_LINE);
}

static int table_fill(struct tw_keyed *table, const struct tw_keyed_options *options)
{
	table->seed =
		options->seed != 0 ? options->seed : seed_make(table, tw_engine_now(table->engine));
	table->key_bytes_max = options->key_bytes_max;
	table->fork_epoch = twi_fork_epoch;
	table->hash = hash_make(options->expected_keys);
	if (table->hash == NULL || !twi_keyed_grow(table, options->reserve))
		return -ENOMEM;
	return twi_reclaim_open();
}

static int table_create(struct tw_engine *engine, const struct tw_keyed_options *options,
			struct tw_keyed **ret_table)
{
	const struct tw_allocator *allocator =
		options->allocator != NULL ? options->allocator : &c_allocator;
	struct tw_keyed *table = twi_allocate_zeroed(allocator, sizeof *table, TWI_CACHE_LINE);
	int error;

	if (table == NULL)
		return -ENOMEM;
	table->engine = engine;
	table->allocator = allocator;
	error = table_fill(table, options);
	if (error == 0)
		*ret_table = table;
	else
		table_release(table);
	return error;
}

int tw_keyed_create(struct tw_engine *engine, const struct tw_keyed_options *options,
		    struct tw_keyed **ret_table)
{
	int error = options != NULL ? options_check(options) : 0;
	int state = tw_engine_state(engine);

	if (ret_table == NULL || error != 0)
		return ret_table == NULL ? -EINVAL : error;
	if (state < 0)
		return state;
	return table_create(engine, options != NULL ? options : &defaults, ret_table);
}

static bool entries_out(struct tw_keyed *table)
{
	for (size_t i = 0; i < TWI_KEYED_STRIPES; i++) {
		/*
		 * E53: pairs with twi_keyed_retire. All threads that had an entry must be done with
		 * the table.
		 */
		if (twi_load_acquire(&table->stripe[i].count) >= TWI_COUNT_ENTRY)
			return true;
		twi_tsan_acquire(&table->stripe[i].count);
	}
	return false;
}

int tw_keyed_destroy(struct tw_keyed *table)
{
	bool forked;

	if (table == NULL)
		return 0;
	if (entries_out(table))
		return -EBUSY;
	forked = table->fork_epoch != twi_fork_epoch;
	/* In a forked child there is no reclaimer to wait for, and no thread looks anything up. */
	if (!forked)
		twi_reclaim_wait(table);
	table_release(table);
	if (!forked)
		twi_reclaim_close();
	return 0;
}

int twi_key_check(struct tw_keyed *table, const void *key, size_t key_bytes,
		  struct twi_key *ret_key)
{
	if (table == NULL || key == NULL || key_bytes == 0 || key_bytes > table->key_bytes_max)
		return -EINVAL;
	if (TWI_UNLIKELY(table->fork_epoch != twi_fork_epoch))
		return -ECHILD;
	*ret_key = (struct twi_key){key, key_bytes, twi_key_hash(table->seed, key, key_bytes)};
	return 0;
}
