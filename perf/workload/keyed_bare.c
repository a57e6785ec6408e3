/* SPDX-License-Identifier: MIT */
/*
 * The lower bound of the cost of keyed timeouts: liburcu's hash table alone. Its nodes hold only a
 * key. They are taken from a stock. Many at a time return to the stock, after a grace period that
 * is not timed.
 *
 * This file defines _LGPL_SOURCE, so that read-side sections are inlined. The inlined functions are
 * small. The harness comes with its source, so it meets the LGPL's terms for these functions.
 */
#define _LGPL_SOURCE

#include "workload/keyed.h"

#include <errno.h>
#include <string.h>
#include <urcu-bp.h>
#include <urcu/rculfhash.h>

enum { STOCK = 16 * KEYED_BATCH };

struct bare {
	struct cds_lfht_node node;
	struct keyed_key key;
};

/* One producer's free nodes, and its nodes that wait for a grace period. */
struct stock {
	struct bare *free[STOCK];
	struct bare *used[STOCK];
	uint64_t free_count, used_count;
	struct bare *nodes;
};

static struct cds_lfht *table;
static struct stock *stocks;
static uint64_t stock_count;

static unsigned long hash_of(const struct keyed_key *key)
{
	__extension__ unsigned __int128 product =
		(unsigned __int128)(key->half[0] ^ UINT64_C(0xa0761d6478bd642f)) *
		(key->half[1] ^ UINT64_C(0xe7037ed1a0b428db));

	return (unsigned long)(product ^ (product >> 64));
}

static int matches(struct cds_lfht_node *node, const void *key)
{
	return memcmp(&((struct bare *)(void *)node)->key, key, sizeof(struct keyed_key)) == 0;
}

int keyed_bare_open(uint64_t keys, uint64_t producers)
{
	uint64_t nodes = keys / producers + 1 + STOCK;

	table = cds_lfht_new_flavor(1UL << (64 - __builtin_clzl(keys - 1)), 1, 0, 0,
				    &urcu_bp_flavor, NULL);
	stocks = calloc(producers, sizeof(*stocks));
	stock_count = producers;
	for (uint64_t i = 0; stocks != NULL && i < producers; i++) {
		stocks[i].nodes = calloc(nodes, sizeof(struct bare));
		if (stocks[i].nodes == NULL)
			return -ENOMEM;
		for (uint64_t n = 0; n < STOCK; n++)
			stocks[i].free[n] = &stocks[i].nodes[keys / producers + 1 + n];
		stocks[i].free_count = STOCK;
	}
	return table != NULL && stocks != NULL ? 0 : -ENOMEM;
}

void keyed_bare_close(void)
{
	for (uint64_t i = 0; i < stock_count; i++)
		free(stocks[i].nodes);
	free(stocks);
}

void keyed_bare_flush(unsigned producer)
{
	struct stock *stock = &stocks[producer];

	if (stock->free_count >= 2 * KEYED_BATCH)
		return;
	urcu_bp_synchronize_rcu();
	while (stock->used_count > 0)
		stock->free[stock->free_count++] = stock->used[--stock->used_count];
}

static void replace(struct stock *stock, uint32_t number)
{
	struct bare *bare = stock->free[--stock->free_count];
	struct cds_lfht_node *old;

	bare->key = keyed_key(number);
	urcu_bp_read_lock();
	old = cds_lfht_add_replace(table, hash_of(&bare->key), matches, &bare->key, &bare->node);
	urcu_bp_read_unlock();
	if (old != NULL)
		stock->used[stock->used_count++] = (struct bare *)(void *)old;
}

static void cancel(struct stock *stock, uint32_t number)
{
	struct keyed_key key = keyed_key(number);
	struct cds_lfht_iter place;

	urcu_bp_read_lock();
	cds_lfht_lookup(table, hash_of(&key), matches, &key, &place);
	if (place.node != NULL && cds_lfht_del(table, place.node) == 0)
		stock->used[stock->used_count++] = (struct bare *)(void *)place.node;
	urcu_bp_read_unlock();
}

static void get(uint32_t number)
{
	struct keyed_key key = keyed_key(number);
	struct cds_lfht_iter place;

	urcu_bp_read_lock();
	cds_lfht_lookup(table, hash_of(&key), matches, &key, &place);
	urcu_bp_read_unlock();
	if (place.node == NULL)
		abort();
}

void keyed_bare_put(unsigned producer, const uint32_t *order, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (count > STOCK) /* only the first put, for all keys */
			stocks[producer].free[stocks[producer].free_count++] =
				&stocks[producer].nodes[i];
		replace(&stocks[producer], order[i]);
	}
}

void keyed_bare_step(enum keyed_work work, unsigned producer, const uint32_t *order, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (work == KEYED_REPLACE || work == KEYED_REPLACE_ANY)
			replace(&stocks[producer], order[i]);
		else if (work == KEYED_CANCEL)
			cancel(&stocks[producer], order[i]);
		else
			get(order[i]);
	}
}
