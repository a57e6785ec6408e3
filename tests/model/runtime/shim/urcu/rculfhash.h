/* SPDX-License-Identifier: MIT */
/*
 * Replaces liburcu's header of the same name. The table has a few places (tests/model/hash.c). Each
 * key has one place, and each change is one step. So the model explores the library's steps around
 * the table, but not the table itself, which liburcu must test.
 */
#ifndef MODEL_RCULFHASH_H
#define MODEL_RCULFHASH_H

#include <pthread.h>

struct cds_lfht;

struct cds_lfht_node {
	struct cds_lfht_node *unused;
	unsigned long hash;
} __attribute__((aligned(8)));

struct cds_lfht_iter {
	struct cds_lfht_node *node, *next;
};

typedef int (*cds_lfht_match_fct)(struct cds_lfht_node *node, const void *key);

struct cds_lfht *model_hash_new(void);

#define cds_lfht_new_flavor(buckets, least, most, flags, flavor, attributes)                       \
	((void)(buckets), model_hash_new())

static inline struct cds_lfht_node *cds_lfht_iter_get_node(const struct cds_lfht_iter *iter)
{
	return iter->node;
}
void cds_lfht_add(struct cds_lfht *table, unsigned long hash, struct cds_lfht_node *node);
int cds_lfht_destroy(struct cds_lfht *table, pthread_attr_t **attributes);
void cds_lfht_lookup(struct cds_lfht *table, unsigned long hash, cds_lfht_match_fct match,
		     const void *key, struct cds_lfht_iter *iter);
void cds_lfht_first(struct cds_lfht *table, struct cds_lfht_iter *iter);
void cds_lfht_next(struct cds_lfht *table, struct cds_lfht_iter *iter);
struct cds_lfht_node *cds_lfht_add_unique(struct cds_lfht *table, unsigned long hash,
					  cds_lfht_match_fct match, const void *key,
					  struct cds_lfht_node *node);
int cds_lfht_replace(struct cds_lfht *table, struct cds_lfht_iter *old, unsigned long hash,
		     cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node);
int cds_lfht_del(struct cds_lfht *table, struct cds_lfht_node *node);

#endif
