/* SPDX-License-Identifier: MIT */
/*
 * An entry, and the table that it is in (protocol: word.h).
 *
 * Ownership. The fields of an entry belong to the thread that holds it (HELD) or owns its end
 * (OWNED). The change of the state word passes them from one thread to the next (E50). Lookups also
 * read some of these fields, at any time. The fields that they read are atomic, and a lookup may
 * use the values only if the state word has not changed afterwards (E51). The fields `key` and
 * `table` are set before the entry is in the table, and do not change until no lookup can find the
 * entry.
 *
 * Memory. Entries lie in chunks, which belong to the table. An entry that has ended is retired: the
 * reclaimer (reclaim.h) waits for a grace period and then frees it. So a thread inside a read-side
 * section may look at any entry that it has found there.
 */
#ifndef TWI_KEYED_ENTRY_H
#define TWI_KEYED_ENTRY_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "keyed/word.h"
#include "thread/rcu.h"

#include <string.h>
#include <tickwheel.h>
#include <urcu/rculfhash.h>

enum {
	TWI_KEYED_ENTRY_BYTES = 2 * TWI_CACHE_LINE,
	TWI_KEY_NEAR_BYTES = 36,
	TWI_KEYED_STRIPES = 16,
	TWI_KEYED_CHUNK_ENTRIES = 64, /* The least number of entries in a chunk. */
	TWI_KEYED_CHUNK_BYTES_MAX = 2 * 1024 * 1024,
};

struct twi_keyed_entry {
	_Alignas(TWI_KEYED_ENTRY_BYTES) struct cds_lfht_node node; /* the link of the hash table */
	_Atomic(void *) timer_node;                                /* [handoff E50] [atomic E51] */
	_Atomic uint64_t timer_generation;                         /* [handoff E50] [atomic E51] */
	_Atomic uint64_t word;                                     /* [atomic E50] */
	uint16_t key_bytes;                                        /* [const], like those below */
	uint16_t stripe;
	union {
		char near[TWI_KEY_NEAR_BYTES];
		/* a pointer that is read by memcpy, because it is not aligned */
		char far[sizeof(void *)];
	} key;
	struct tw_keyed *table;
	_Atomic(const struct tw_keyed_kind *)
		kind; /* [handoff E50] [atomic E51], like the fields below */
	_Atomic(void *) arg;
	_Atomic uint64_t life;
	_Atomic(struct twi_keyed_entry *)
		next; /* [atomic E52] the next free, or the next retired, entry */
	union {
		uint64_t runs; /* [handoff E50] runs of the present entry, while it is alive */
		struct twi_keyed_entry
			/*
			 * [handoff E52] while retired: the last entry of the list that begins here
			 */
			*last;
	};
};

_Static_assert(sizeof(struct twi_keyed_entry) == TWI_KEYED_ENTRY_BYTES, "two lines");

/*
 * Entries come in chunks. The more entries there are, the larger the next chunk, up to a huge page.
 */
struct twi_keyed_chunk {
	struct twi_keyed_chunk *next; /* [const] the next chunk of the table */
	size_t bytes;                 /* [const] */
	struct twi_keyed_entry entry[];
};

/* Counters for all keys with the same last bits of the hash. */
struct twi_keyed_stripe {
	/* [atomic E53] 2^32 for each entry that is not free, plus 1 for each key in the table */
	TWI_CACHE_ALIGNED _Atomic uint64_t count;
	_Atomic uint64_t lives; /* [atomic] the last `life` that was given to an entry */
};

#define TWI_COUNT_ENTRY (UINT64_C(1) << 32)
#define TWI_COUNT_KEY UINT64_C(1)

struct tw_keyed {
	struct tw_engine *engine;             /* [const], like the fields below */
	const struct tw_allocator *allocator; /* never NULL */
	struct cds_lfht *hash;
	uint64_t seed;
	uint32_t key_bytes_max;
	uint32_t fork_epoch;
	/* [atomic E52] */
	TWI_CACHE_ALIGNED _Atomic(struct twi_keyed_entry *) free;
	_Atomic(struct twi_keyed_chunk *) chunks; /* [atomic E52] */
	_Atomic uint64_t entries;                 /* [atomic] how many entries all chunks have */
	/* [atomic E52] retired entries that the reclaimer has not taken yet */
	TWI_CACHE_ALIGNED _Atomic(struct twi_keyed_entry *) retired;
	_Atomic uint32_t reclaims;   /* [atomic E54] pushes that the reclaimer has not finished */
	struct tw_keyed *work_next;  /* [handoff E54] the next table in the reclaimer's list */
	struct tw_keyed *grace_next; /* only the reclaimer uses this field and the next one */
	struct twi_keyed_entry
		*grace; /* entries in the grace period that the reclaimer waits for */
	struct twi_keyed_stripe stripe[TWI_KEYED_STRIPES];
};

/* A caller's key, with its hash. */
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

/*
 * Changes the state word from *word to `next` (the linearization point of most steps). E50: pairs
 * with itself and with twi_keyed_look; publishes the fields and all that was done with the
 * argument. Returns false if the state word differs; *word is then its new value.
 */
static inline bool twi_keyed_swap(struct twi_keyed_entry *entry, uint64_t *word, uint64_t next)
{
	bool swapped;

	twi_tsan_release(&entry->word);
	swapped = twi_cas_acq_rel(&entry->word, word, next); /* E50: see above */
	twi_tsan_acquire(&entry->word);
	return swapped;
}

static inline uint64_t twi_keyed_look(struct twi_keyed_entry *entry)
{
	uint64_t word = twi_load_acquire(&entry->word); /* E50: pairs with twi_keyed_swap */

	twi_tsan_acquire(&entry->word);
	return word;
}

/*
 * Reports to ThreadSanitizer that a reader has finished with the key. The entry's memory is
 * released, or gets another key, only after a grace period. ThreadSanitizer does not see that
 * period (base/tsan.h).
 */
static inline void twi_keyed_key_release(const struct twi_keyed_entry *entry)
{
	twi_tsan_release(&entry->next);
}

static inline void twi_keyed_key_acquire(const struct twi_keyed_entry *entry)
{
	twi_tsan_acquire(&entry->next);
}

/* Returns whether all fields that were read after `word` belong together. */
static inline bool twi_keyed_same(struct twi_keyed_entry *entry, uint64_t word)
{
	/*
	 * RELAXED: the caller has acquired the fields (E51). If one of them was written in a later
	 * hold, this load sees that hold's state word, which differs.
	 */
	return twi_load_relaxed(&entry->word) == word;
}

/*
 * Returns the handle of the entry's timer. The caller must own the entry, or read the state word
 * again afterwards.
 */
static inline struct tw_handle twi_keyed_timer(struct twi_keyed_entry *entry)
{
	/*
	 * E51, both loads: they pair with twi_keyed_set_timer, and acquire the hold in which the
	 * handle was written.
	 */
	return (struct tw_handle){.node = twi_load_acquire(&entry->timer_node),
				  .generation =
					  twi_load_acquire(&entry->timer_generation)}; /* E51 */
}

/* table.c: checks arguments. */

/* Checks a table and a key. Returns 0 and the key with its hash, or -EINVAL or -ECHILD. */
int twi_key_check(struct tw_keyed *table, const void *key, size_t key_bytes,
		  struct twi_key *ret_key);

/* pool.c: memory for entries. */

/* Returns a free entry, which no other thread has, or NULL if there is none. */
struct twi_keyed_entry *twi_keyed_free_pop(struct tw_keyed *table);

/* Copies the key into an entry. Returns false if there is no memory. */
bool twi_keyed_key_copy(struct twi_keyed_entry *entry, const struct twi_key *key);

/* Adds at least `entries` entries. Returns false if there is no memory. */
bool twi_keyed_grow(struct tw_keyed *table, uint64_t entries);

/*
 * Adds a chunk of about `entries` entries. *ret_entries is the exact number. Returns false if there
 * is no memory.
 */
bool twi_keyed_grow_once(struct tw_keyed *table, uint64_t entries, uint64_t *ret_entries);

/* Frees a list of entries that no reader can see any more. Called by the reclaimer. */
void twi_keyed_entries_free(struct tw_keyed *table, struct twi_keyed_entry *first);

void twi_keyed_entries_release(struct tw_keyed *table);

/* retire.c: takes entries out of the pool, and retires them to the reclaimer. */

/*
 * Returns a free entry that the caller then holds, with a copy of the key, or NULL if there is no
 * memory.
 */
struct twi_keyed_entry *twi_keyed_take(struct tw_keyed *table, const struct twi_key *key);

/*
 * Retires an entry that only readers inside a section may still see. This is the caller's last
 * access to the entry and to its table.
 */
void twi_keyed_retire(struct twi_keyed_entry *entry);

/* life.c: the steps of an entry from its timer to its end. */

/* The kind of all timers. */
extern const struct tw_kind twi_keyed_timer_kind;

/* The entry of this thread's last timer callback; see its definition in life.c. */
extern _Thread_local void *twi_keyed_seen;

/* Sets a timer. The caller must hold the entry. Returns 0, or the error of tw_schedule. */
int twi_keyed_set_timer(struct twi_keyed_entry *entry, int64_t delay_ns);

/* Sets a new timer after the old one has expired or was handed back. */
int twi_keyed_renew_timer(struct twi_keyed_entry *entry, int64_t delay_ns);

/*
 * Steps from HELD to WAITING. Returns false if the timer has already expired or was handed back, or
 * if stop is set; *ret_word shows which.
 */
bool twi_keyed_wait(struct twi_keyed_entry *entry, uint64_t *ret_word);

/*
 * Releases the hold on an entry that has its timer. Then the entry waits, or it has ended, because
 * stop was set or it could not get another timer.
 */
void twi_keyed_let_go(struct twi_keyed_entry *entry);

/*
 * Records that the caller has taken the entry out of the table. Sets the flag out, and retires the
 * entry if the flags gone and ended are set already.
 */
void twi_keyed_out(struct twi_keyed_entry *entry);

/*
 * Ends an entry, for its owner (OWNED): cancels its timer, takes it out of the table, runs its
 * hook. Must not be called inside a section.
 */
void twi_keyed_end(struct twi_keyed_entry *entry, uint64_t word, enum tw_keyed_end end);

/* End an entry for its holder (HELD). The second function is for a holder that has seen stop. */
void twi_keyed_end_held(struct twi_keyed_entry *entry, enum tw_keyed_end end);
void twi_keyed_end_stopped(struct twi_keyed_entry *entry, uint64_t word);

/* Returns how an entry ends if tw_schedule rejected its timer with this error. */
enum tw_keyed_end twi_keyed_end_without_timer(int error);

/* Returns the data that the entry's hook and its callback get. */
struct tw_keyed_self twi_keyed_self(struct twi_keyed_entry *entry);

#endif
