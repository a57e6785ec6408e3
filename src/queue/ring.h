/* SPDX-License-Identifier: MIT */
/*
 * Bounded queue of one producer and one consumer: a circular array (Lamport, "Specifying Concurrent
 * Program Modules", 1983). The producer reads the consumer's index only when it has used up the
 * free entries that it knows of (Lee, Bu, Chandranmenon, "A lock-free, cache-efficient shared ring
 * buffer", 2009).
 *
 * The ring grows. Entries lie in an array of 2^n places. If the array is full, the producer
 * allocates a larger one and puts the following entries there. The entries are numbered
 * continuously, and the consumer empties the older array first. The producer frees an array when
 * the consumer has taken an entry of the next one.
 *
 * Protocol. `tail` counts the entries that were ever pushed, and `head` those that were taken. The
 * producer writes one entry or several, then raises `tail` by their number (the linearization point
 * of push). The consumer reads entries with numbers below `tail`, then raises `head`. After that
 * the places belong to the producer again.
 *
 * Entries that are used again. The consumer may promise not to read entries from a number on
 * (`unread`). If the producer's last entry is among them, and names what the producer would push now,
 * the producer need not push: the consumer will read that entry later. Before the consumer reads an
 * entry, it takes the promise back, and makes a barrier in all threads. If a producer has seen the
 * promise, its writes before that look are visible to the consumer after the barrier. If it looks
 * later, it sees that there is no promise (E163).
 *
 * Ownership. `tail`, `room` and the list of arrays belong to the producer. `head` and the
 * consumer's position in that list belong to the consumer. The entries from `head` up to `tail`
 * belong to the consumer, all other places to the producer.
 *
 * Progress. All calls are wait-free. A producer that is stopped delays only its own pushes.
 */
#ifndef TWI_QUEUE_RING_H
#define TWI_QUEUE_RING_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/test_point.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tests define smaller rings, so that these soon fill, grow and wrap around. */
#ifndef TWI_RING_BITS
#define TWI_RING_BITS 16
#endif
#ifndef TWI_RING_LEAST_BITS
#define TWI_RING_LEAST_BITS (TWI_RING_BITS < 9 ? TWI_RING_BITS : 9)
#endif

enum {
	/* The number of entries in the largest array: 512 KiB. */
	TWI_RING_ENTRIES = 1 << TWI_RING_BITS,
	/* The number of entries in the first array: 4 KiB. */
	TWI_RING_LEAST = 1 << TWI_RING_LEAST_BITS,
	/*
	 * The producer prefetches entries this far ahead, because their cache lines are in the
	 * consumer's core.
	 */
	TWI_RING_AHEAD = 32,
};

struct twi_ring_array {
	uint64_t from; /* [const] the number of its first entry */
	uint64_t mask; /* [const] its number of places, minus 1 */
	/* [handoff E131] the next array, which has the entries from its own `from` on, or NULL */
	_Atomic(struct twi_ring_array *) next;
	TWI_CACHE_ALIGNED _Atomic uintptr_t entry[];
};

/* The producer's hot fields. All of them are 0 as long as there is no array. */
struct twi_ring_in {
	_Atomic uint64_t tail;    /* [producer E19] */
	_Atomic uintptr_t *entry; /* [producer] the places of the newest array, or NULL */
	uint32_t mask;            /* [producer] number of places of the newest array, minus 1 */
	uint32_t room; /* [producer] low half of the number up to which entries are free */
};

/* The arrays that are not free yet, oldest first. */
struct twi_ring_arrays {
	_Atomic(struct twi_ring_array *) first; /* [producer E131] */
	uint32_t calm; /* [producer] how often in a row the producer found few entries waiting */
	bool stuck;    /* [producer] there was no memory for a larger array */
};

struct twi_ring_out {
	_Atomic uint64_t head; /* [worker E20] */
	/*
	 * [worker E163] 1 more than the number of the first entry that the consumer promises not to
	 * read; 0: no promise
	 */
	_Atomic uint64_t unread;
	/* [worker] the array of the last entry taken, or NULL for the first array */
	struct twi_ring_array *array;
};

static inline size_t twi_ring_bytes(uint64_t mask)
{
	return sizeof(struct twi_ring_array) + (mask + 1) * sizeof(uintptr_t);
}

static inline struct twi_ring_array *twi_ring_newest(const struct twi_ring_in *in)
{
	return TWI_CONTAINER_OF(in->entry, struct twi_ring_array, entry);
}

/*
 * For the producer. Returns whether it knows of a free entry. RELAXED: only the producer writes
 * `tail`.
 */
static inline bool twi_ring_knows_room(const struct twi_ring_in *in)
{
	return (uint32_t)twi_load_relaxed(&in->tail) != in->room;
}

/* For the producer. Returns how many free entries it knows of. RELAXED: as above. */
static inline uint32_t twi_ring_known_room(const struct twi_ring_in *in)
{
	return in->room - (uint32_t)twi_load_relaxed(&in->tail);
}

/*
 * For the producer, which must have an array. Reads how many entries the consumer has taken,
 * updates `room`, and returns that number. Entries in older arrays count, too: never more entries
 * may wait than the newest array has places.
 */
static inline uint64_t twi_ring_look(struct twi_ring_in *in, const struct twi_ring_out *out)
{
	/*
	 * E20: pairs with twi_ring_take(). The consumer must have read the entries before the
	 * producer writes to their places again.
	 */
	uint64_t head = twi_load_acquire(&out->head);

	in->room = (uint32_t)head + in->mask + 1;
	return head;
}

/*
 * For the producer. Makes `array` the newest one: entries from the tail on go there. The caller has
 * allocated it for `mask` + 1 entries. If the consumer sees an entry in it, it also sees the array.
 */
static inline void twi_ring_extend(struct twi_ring_in *in, struct twi_ring_arrays *arrays,
				   struct twi_ring_array *array, uint64_t mask)
{
	/* RELAXED: only the producer writes this field. */
	array->from = twi_load_relaxed(&in->tail);
	array->mask = mask;
	/* RELAXED: published with the array itself. */
	twi_store_relaxed(&array->next, NULL);
	/*
	 * E131: publishes the array to the consumer, and to a forked child, which frees all arrays
	 * that it finds.
	 */
	if (in->entry == NULL)
		twi_store_release(&arrays->first, array);
	else
		twi_store_release(&twi_ring_newest(in)->next, array); /* E131 */
	/* The place before its first entry names nothing (twi_ring_will_read). RELAXED: as above. */
	twi_store_relaxed(&array->entry[(array->from - 1) & mask], (uintptr_t)0);
	in->entry = array->entry;
	in->mask = (uint32_t)mask;
}

/*
 * For the producer. If the consumer has left the oldest array, removes that array from the list and
 * returns it, so that the caller frees it. Otherwise returns NULL. `head`: from twi_ring_look().
 */
static inline struct twi_ring_array *twi_ring_left(struct twi_ring_arrays *arrays, uint64_t head)
{
	/* RELAXED: only the producer writes this field. */
	struct twi_ring_array *array = twi_load_relaxed(&arrays->first);
	/* RELAXED: as above. */
	struct twi_ring_array *next = twi_load_relaxed(&array->next);

	/*
	 * The consumer has left an array as soon as it has taken the first entry of the next one.
	 */
	if (next == NULL || head <= next->from)
		return NULL;
	/* RELAXED: the consumer does not read this field again. */
	twi_store_relaxed(&arrays->first, next);
	return array;
}

/*
 * For the producer, which must have a free entry. Writes entry `number`. The consumer sees the
 * entry when the tail is raised above `number`.
 */
static inline void twi_ring_put(_Atomic uintptr_t *entry, uint32_t mask, uint64_t number,
				uintptr_t word)
{
	TWI_PREFETCH_WRITE(&entry[(number + TWI_RING_AHEAD) & mask]);
	/* RELAXED: twi_ring_raise() publishes this store. */
	twi_store_relaxed(&entry[number & mask], word);
	TWI_TEST_POINT("ring_push:written");
}

/*
 * For the producer. Lets the consumer read the entries below `tail`. If `unfenced`, the store has
 * no fence. Then the consumer must make a barrier in all threads before its last look ahead of a
 * sleep (E8, turn/sleep.c).
 */
static inline void twi_ring_raise(struct twi_ring_in *in, uint64_t tail, bool unfenced)
{
	/*
	 * E19: pairs with twi_ring_pushed(). Publishes the entries and the objects that they name.
	 */
	if (TWI_LIKELY(unfenced))
		twi_store_release(&in->tail, tail);
	else
		/* E8: the push must come before the check whether the worker sleeps. */
		(void)twi_exchange_seq_cst(&in->tail, tail);
	/*
	 * Next, the producer checks whether the worker sleeps. Without a fence, the processor may
	 * make that check before other threads see the push. The barrier that the worker makes
	 * before it sleeps repairs that. But the compiler must not move the check before the push.
	 */
	twi_fence_compiler();
}

/* For the producer, which must have a free entry. Pushes one entry. */
static inline void twi_ring_push(struct twi_ring_in *in, uintptr_t word, bool unfenced)
{
	/* RELAXED: only the producer writes this field. */
	uint64_t tail = twi_load_relaxed(&in->tail);

	twi_ring_put(in->entry, in->mask, tail, word);
	twi_ring_raise(in, tail + 1, unfenced);
}

/*
 * For the producer, which must have an array. Returns whether its last entry names `word`, and the
 * consumer will read that entry later than all that the producer has written before this call.
 */
static inline bool twi_ring_will_read(const struct twi_ring_in *in, const struct twi_ring_out *out,
				      uintptr_t word)
{
	/* RELAXED: only the producer writes this field. */
	uint64_t tail = twi_load_relaxed(&in->tail);

	/*
	 * E163: the consumer's barrier orders the writes before the look at its promise, but the
	 * compiler must not move that look.
	 */
	twi_fence_compiler();
	/* RELAXED, both: the first is the producer's own, and the barrier orders the second. */
	return twi_load_relaxed(&in->entry[(tail - 1) & in->mask]) == word &&
	       twi_load_relaxed(&out->unread) - 1 < tail;
}

/*
 * For the consumer. Promises not to read the entries from `number` on. RELAXED: the promise
 * publishes nothing.
 */
static inline void twi_ring_promise(struct twi_ring_out *out, uint64_t number)
{
	twi_store_relaxed(&out->unread, number + 1);
}

/*
 * For the consumer. Takes the promise back. Returns whether there was one. Then the consumer must
 * make a barrier in all threads before it reads an entry. RELAXED: the barrier orders the store.
 */
static inline bool twi_ring_promise_end(struct twi_ring_out *out)
{
	if (twi_load_relaxed(&out->unread) == 0)
		return false;
	twi_store_relaxed(&out->unread, UINT64_C(0));
	return true;
}

/*
 * For the consumer. Returns how many entries were ever pushed. The consumer may read the entries
 * below that number.
 */
static inline uint64_t twi_ring_pushed(const struct twi_ring_in *in)
{
	/*
	 * E19: pairs with twi_ring_raise(), so that the entries can be read. E8: this load is also
	 * part of the consumer's last look before it sleeps.
	 */
	return twi_load_seq_cst(&in->tail);
}

/*
 * For the consumer. Returns how many entries it has taken. RELAXED: only the consumer writes
 * `head`.
 */
static inline uint64_t twi_ring_taken(const struct twi_ring_out *out)
{
	return twi_load_relaxed(&out->head);
}

/* Entries that lie next to each other in memory. */
struct twi_ring_part {
	const _Atomic uintptr_t *at, *end;
};

/*
 * For the consumer. Returns the entries from `at` on that lie next to each other in memory, at most
 * up to `end`. At least one entry must be there, and all must have been pushed. `*array`: the array
 * at which the search begins, or NULL for the first one. Afterwards it is the array of the part.
 */
static inline struct twi_ring_part twi_ring_part(const struct twi_ring_arrays *arrays,
						 struct twi_ring_array **array, uint64_t at,
						 uint64_t end)
{
	struct twi_ring_array *own = *array, *next;
	const _Atomic uintptr_t *first;
	uint64_t count, to_wrap;

	/*
	 * RELAXED: the load in twi_ring_pushed() (E19) has acquired this pointer with the first
	 * entry.
	 */
	if (own == NULL)
		own = twi_load_relaxed(&arrays->first);
	/* E131: pairs with twi_ring_extend(). */
	while ((next = twi_load_acquire(&own->next)) != NULL && next->from <= at)
		own = next;
	*array = own;
	count = (next != NULL && next->from < end ? next->from : end) - at;
	to_wrap = own->mask + 1 - (at & own->mask);
	first = &own->entry[at & own->mask];
	return (struct twi_ring_part){first, first + (count < to_wrap ? count : to_wrap)};
}

static inline uint64_t twi_ring_part_count(struct twi_ring_part part)
{
	return (uint64_t)(part.end - part.at);
}

/*
 * For the consumer. Returns an entry of a part. RELAXED: E19 has acquired the entry, and the
 * producer does not write to it before the consumer gives it back.
 */
static inline uintptr_t twi_ring_entry(const _Atomic uintptr_t *at)
{
	return twi_load_relaxed(at);
}

/* For the consumer. Gives the places of all entries below `number` back to the producer. */
static inline void twi_ring_take(struct twi_ring_out *out, uint64_t number)
{
	/*
	 * E20: pairs with twi_ring_look(). The entries must be read before the producer
	 * overwrites them.
	 */
	twi_store_release(&out->head, number);
}

#endif
