/* SPDX-License-Identifier: MIT */
/*
 * Replaces liburcu's hash table by a table with a few places; the hash of a key selects its place.
 * Two keys in one place end the search with an error, so a harness must choose keys with different
 * places. Each change is one swap, which publishes the node; a lookup acquires it.
 */
#include "base/atomic.h"
#include "model.h"

#include <errno.h>
#include <urcu/rculfhash.h>

enum { PLACES = 4 };

struct cds_lfht {
	_Atomic(struct cds_lfht_node *) place[PLACES];
};

/* The only table. There is never more than one at a time. */
static struct cds_lfht only;

struct cds_lfht *model_hash_new(void)
{
	for (int i = 0; i < PLACES; i++)
		twi_store_relaxed(&only.place[i], NULL);
	return &only;
}

/* Forgets the entries, so that all places are free. */
int cds_lfht_destroy(struct cds_lfht *table, pthread_attr_t **attributes)
{
	(void)attributes;
	for (int i = 0; i < PLACES; i++)
		MODEL_CHECK(twi_load_relaxed(&table->place[i]) == NULL);
	return 0;
}

static void iter_fill(struct cds_lfht_iter *iter, struct cds_lfht_node *node)
{
	iter->node = node;
	iter->next = NULL;
}

void cds_lfht_lookup(struct cds_lfht *table, unsigned long hash, cds_lfht_match_fct match,
		     const void *key, struct cds_lfht_iter *iter)
{
	struct cds_lfht_node *node = twi_load_acquire(&table->place[hash % PLACES]);

	iter_fill(iter, node != NULL && match(node, key) ? node : NULL);
}

static struct cds_lfht_node *node_from(struct cds_lfht *table, unsigned long place)
{
	struct cds_lfht_node *node = NULL;

	while (node == NULL && place < PLACES)
		node = twi_load_acquire(&table->place[place++]);
	return node;
}

void cds_lfht_first(struct cds_lfht *table, struct cds_lfht_iter *iter)
{
	iter_fill(iter, node_from(table, 0));
}

void cds_lfht_next(struct cds_lfht *table, struct cds_lfht_iter *iter)
{
	iter_fill(iter, node_from(table, iter->node->hash % PLACES + 1));
}

struct cds_lfht_node *cds_lfht_add_unique(struct cds_lfht *table, unsigned long hash,
					  cds_lfht_match_fct match, const void *key,
					  struct cds_lfht_node *node)
{
	struct cds_lfht_node *old = NULL;

	node->hash = hash;
	if (twi_cas_acq_rel(&table->place[hash % PLACES], &old, node))
		return node;
	MODEL_CHECK(match(old, key));
	return old;
}

void cds_lfht_add(struct cds_lfht *table, unsigned long hash, struct cds_lfht_node *node)
{
	struct cds_lfht_node *old = NULL;

	node->hash = hash;
	MODEL_CHECK(twi_cas_acq_rel(&table->place[hash % PLACES], &old, node));
}

int cds_lfht_replace(struct cds_lfht *table, struct cds_lfht_iter *old, unsigned long hash,
		     cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node)
{
	struct cds_lfht_node *seen = old->node;

	(void)match;
	(void)key;
	node->hash = hash;
	return twi_cas_acq_rel(&table->place[hash % PLACES], &seen, node) ? 0 : -ENOENT;
}

int cds_lfht_del(struct cds_lfht *table, struct cds_lfht_node *node)
{
	struct cds_lfht_node *seen = node;

	return twi_cas_acq_rel(&table->place[node->hash % PLACES], &seen, NULL) ? 0 : -ENOENT;
}
