/* SPDX-License-Identifier: MIT */
/*
 * An entry, and the table that has it (protocol: word.h).
 *
 * Who owns what. The fields of an entry belong to who holds it (HELD) or owns its end (OWNED); they
 * travel by the word (E50). Some are read by lookups too, at any time: those are atomics, and count
 * only if the word is the same afterwards (E51). Key and table are constant from before the entry is
 * in the table until no lookup can find it.
 *
 * Memory. Entries lie in chunks and are the table's. One that has ended is retired: the reclaimer
 * (reclaim.h) waits for a grace period and puts it among the free ones. So who is inside a read-side
 * section may look at any entry that it has found there.
 */
#ifndef TWI_KEYED_ENTRY_H
#define TWI_KEYED_ENTRY_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "keyed/word.h"
#include "mech/rcu.h"

#include <string.h>
#include <tickwheel.h>
#include <urcu/rculfhash.h>

enum {
	TWI_KEYED_ENTRY_BYTES = 2 * TWI_CACHE_LINE,
	TWI_KEY_NEAR_BYTES = 36,
	TWI_KEYED_STRIPES = 16,
	TWI_KEYED_CHUNK_ENTRIES = 64, /* the least */
	TWI_KEYED_CHUNK_BYTES_MAX = 2 * 1024 * 1024,
};

struct twi_keyed_entry {
	_Alignas(TWI_KEYED_ENTRY_BYTES) struct cds_lfht_node node; /* the hash's */
	_Atomic(void *) timer_node;                                /* [handoff E50] [atomic E51] */
	_Atomic uint64_t timer_birth;                              /* [handoff E50] [atomic E51] */
	_Atomic uint64_t word;                                     /* [atomic E50] */
	uint16_t key_bytes;                                        /* [const], as what follows */
	uint16_t stripe;
	union {
		char near[TWI_KEY_NEAR_BYTES];
		char far[sizeof(void *)]; /* a pointer, by memcpy: it is not aligned */
	} key;
	struct tw_keyed *table;
	_Atomic(const struct tw_keyed_kind *)
		kind; /* [handoff E50] [atomic E51], as what follows */
	_Atomic(void *) arg;
	_Atomic uint64_t life;
	_Atomic(struct twi_keyed_entry *) next; /* [atomic E52] among the free, or the retired */
	union {
		uint64_t runs; /* [handoff E50] alive */
		struct twi_keyed_entry
			*last; /* [handoff E52] retired: of the list that begins here */
	};
};

_Static_assert(sizeof(struct twi_keyed_entry) == TWI_KEYED_ENTRY_BYTES, "two lines");

/* Entries come in chunks, larger ones as there are more: up to a huge page. */
struct twi_keyed_chunk {
	struct twi_keyed_chunk *next; /* [const] of the table's */
	size_t bytes;                 /* [const] */
	struct twi_keyed_entry entry[];
};

/* What is counted of the keys whose hash ends so. */
struct twi_keyed_stripe {
	/* [atomic E53] 2^32 for each entry that is not free, and 1 for each key in the table. */
	TWI_CACHE_ALIGNED _Atomic uint64_t count;
	_Atomic uint64_t lives; /* [atomic] */
};

#define TWI_COUNT_ENTRY (UINT64_C(1) << 32)
#define TWI_COUNT_KEY UINT64_C(1)

struct tw_keyed {
	struct tw_engine *engine;             /* [const] as what follows */
	const struct tw_allocator *allocator; /* never NULL */
	struct cds_lfht *hash;
	uint64_t seed;
	uint32_t key_bytes_max;
	uint32_t fork_epoch;
	/* [atomic E52] */
	TWI_CACHE_ALIGNED _Atomic(struct twi_keyed_entry *) free;
	_Atomic(struct twi_keyed_chunk *) chunks; /* [atomic E52] */
	_Atomic uint64_t entries;                 /* [atomic] in all chunks */
	/* [atomic E52] whose grace period has not begun */
	TWI_CACHE_ALIGNED _Atomic(struct twi_keyed_entry *) retired;
	_Atomic uint32_t reclaims; /* [atomic E54] times that it is with the reclaimer */
	struct tw_keyed
		*work_next; /* [handoff E54] among those that the reclaimer has to look at */
	struct tw_keyed *grace_next;   /* the reclaimer's, as what follows */
	struct twi_keyed_entry *grace; /* whose grace period it waits for */
	struct twi_keyed_stripe stripe[TWI_KEYED_STRIPES];
};

/* A key, as a caller gives it. */
struct twi_key {
	const void *bytes;
	size_t count;
	uint64_t hash;
};

static inline const void *twi_keyed_key(const struct twi_keyed_entry *entry)
{
	void *far;

	if (entry->key_bytes <= TWI_KEY_NEAR_BYTES)
		return entry->key.near;
	memcpy(&far, entry->key.far, sizeof far);
	return far;
}

/* LIN, mostly. E50, pairs with the same and with twi_keyed_look: the fields, and what was done with
 * the argument. False: *word is what is there instead. */
static inline bool twi_keyed_swap(struct twi_keyed_entry *entry, uint64_t *word, uint64_t next)
{
	bool swapped;

	twi_tsan_release(&entry->word);
	swapped = twi_cas_acq_rel(&entry->word, word, next); /* E50 */
	twi_tsan_acquire(&entry->word);
	return swapped;
}

static inline uint64_t twi_keyed_look(struct twi_keyed_entry *entry)
{
	uint64_t word = twi_load_acquire(&entry->word); /* E50 */

	twi_tsan_acquire(&entry->word);
	return word;
}

/*
 * By a reader that lets go of the key: who gives the entry's memory back, or another key, comes after a grace
 * period, which ThreadSanitizer does not see (base/tsan.h).
 */
static inline void twi_keyed_key_release(const struct twi_keyed_entry *entry)
{
	twi_tsan_release(&entry->next);
}

static inline void twi_keyed_key_acquire(const struct twi_keyed_entry *entry)
{
	twi_tsan_acquire(&entry->next);
}

/* Whether all that was read of it since belongs together. */
static inline bool twi_keyed_same(struct twi_keyed_entry *entry, uint64_t word)
{
	/* RELAXED: what was read was acquired (E51); if it is of a later hold, so is the word. */
	return twi_load_relaxed(&entry->word) == word;
}

/* The handle of its timer, for whoever looks at the word again afterwards; and for its owner. */
static inline struct tw_handle twi_keyed_timer(struct twi_keyed_entry *entry)
{
	/* E51, both, pair with twi_keyed_set_timer: the hold that they were written in. */
	return (struct tw_handle){.node = twi_load_acquire(&entry->timer_node),
				  .birth = twi_load_acquire(&entry->timer_birth)}; /* E51 */
}

/* table.c */

/* A table and a key that are right: 0 and the key with its hash; -EINVAL, -ECHILD. */
int twi_key_check(struct tw_keyed *table, const void *key, size_t key_bytes,
		  struct twi_key *ret_key);

/* pool.c: where entries come from and go to. */

/* A free entry with a copy of the key and a hold on it, or NULL: no memory. */
struct twi_keyed_entry *twi_keyed_take(struct tw_keyed *table, const struct twi_key *key);

/* So many more; false: no memory. */
bool twi_keyed_grow(struct tw_keyed *table, uint64_t entries);

/* Nobody but late readers sees it: the last touch of the entry, and of its table. */
void twi_keyed_retire(struct twi_keyed_entry *entry);

/* By the reclaimer: what no reader can see any more. */
void twi_keyed_entries_free(struct tw_keyed *table, struct twi_keyed_entry *first);

void twi_keyed_entries_release(struct tw_keyed *table);

/* life.c: the life of an entry. */

/* The kind of all timers. */
extern const struct tw_kind twi_keyed_timer_kind;

/* See on_timer_end. */
extern _Thread_local void *twi_keyed_seen;

/* A timer, by who holds the entry. 0, or what tw_schedule returns. */
int twi_keyed_set_timer(struct twi_keyed_entry *entry, int64_t delay_ns);

/* The same for one whose timer has come. */
int twi_keyed_renew_timer(struct twi_keyed_entry *entry, int64_t delay_ns);

/* HELD to WAITING. False: its timer has come, or it was told to stop; *ret_word says which. */
bool twi_keyed_wait(struct twi_keyed_entry *entry, uint64_t *ret_word);

/*
 * Lets go of an entry that has its timer: it waits then, or it was told to stop meanwhile, and has
 * ended.
 */
void twi_keyed_let_go(struct twi_keyed_entry *entry);

/* By who has taken it out of the table: notes that. True: that was the last. */
void twi_keyed_out(struct twi_keyed_entry *entry);

/* By its owner (OWNED): its timer, its place in the table, its hook. Never inside a section. */
void twi_keyed_end(struct twi_keyed_entry *entry, uint64_t word, enum tw_keyed_end end);

/* The same by who holds it; and because it was told to stop. */
void twi_keyed_end_held(struct twi_keyed_entry *entry, enum tw_keyed_end end);
void twi_keyed_end_stopped(struct twi_keyed_entry *entry, uint64_t word);

/* How an entry ends whose timer was refused so. */
enum tw_keyed_end twi_keyed_end_without_timer(int error);

/* What its hook and its callback are told. */
struct tw_keyed_self twi_keyed_self(struct twi_keyed_entry *entry);

#endif
