/* SPDX-License-Identifier: MIT */
/*
 * Bounded queue of one producer and one consumer: a circular array (Lamport, "Specifying Concurrent
 * Program Modules", 1983). The producer looks at the consumer's index only when it has used up the
 * free entries that it knows of (Lee, Bu, Chandranmenon, "A lock-free, cache-efficient shared ring
 * buffer", 2009).
 *
 * It grows. Entries lie in an array of 2^n places. If that one is full, the producer goes on with a
 * larger one. The numbers of the entries run on, and the consumer empties the older array first. The
 * producer frees an array when the consumer has taken an entry of the next one.
 *
 * Protocol. `tail` and `head` count the entries that were ever pushed and taken. The producer
 * writes one entry or several, then raises `tail` over them (LIN of push). The consumer reads
 * entries below `tail`, then raises `head`. After that the places belong to the producer again.
 *
 * Ownership. `tail`, `room` and the list of arrays belong to the producer, `head` and the place in
 * that list to the consumer. The entries from `head` up to `tail` belong to the consumer, all other
 * places to the producer.
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

/* Tests define smaller rings, so that they are soon full, grow soon and wrap around soon. */
#ifndef TWI_RING_BITS
#define TWI_RING_BITS 16
#endif
#ifndef TWI_RING_LEAST_BITS
#define TWI_RING_LEAST_BITS (TWI_RING_BITS < 9 ? TWI_RING_BITS : 9)
#endif

enum {
	/* The size of the largest array: 512 KiB. */
	TWI_RING_ENTRIES = 1 << TWI_RING_BITS,
	/* That of the first one: 4 KiB. */
	TWI_RING_LEAST = 1 << TWI_RING_LEAST_BITS,
	/*
	 * How many entries ahead the producer prefetches, because the consumer's core has their
	 * lines.
	 */
	TWI_RING_AHEAD = 32,
};

struct twi_ring_array {
	uint64_t from; /* [const] the number of its first entry */
	uint64_t mask; /* [const] its size less 1 */
	/* [handoff E131] the array that follows, from its own `from` on; NULL: none */
	_Atomic(struct twi_ring_array *) next;
	TWI_CACHE_ALIGNED _Atomic uintptr_t entry[];
};

/* The producer's hot fields. All of them are 0 as long as there is no array. */
struct twi_ring_in {
	_Atomic uint64_t tail;    /* [producer E19] */
	_Atomic uintptr_t *entry; /* [producer] of the newest array; NULL: nothing is pushed here */
	uint32_t mask;            /* [producer] of the newest array */
	uint32_t room; /* [producer] low half of the number below which entries are free */
};

/* The arrays that are not free yet, oldest first. */
struct twi_ring_arrays {
	_Atomic(struct twi_ring_array *) first; /* [producer E131] */
	uint32_t calm; /* [producer] looks in a row that found few entries */
	bool stuck;    /* [producer] there was no memory for a larger array */
};

struct twi_ring_out {
	_Atomic uint64_t head;        /* [worker E20] */
	struct twi_ring_array *array; /* [worker] of the last entry taken; NULL: the first one */
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
 * For the producer. Returns whether it knows of a free entry. RELAXED: only the producer writes it.
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
 * For the producer, which must have an array. Learns how many entries were taken, and returns it. As
 * many may wait as the newest array has places, also while some of them lie in older ones.
 */
static inline uint64_t twi_ring_look(struct twi_ring_in *in, const struct twi_ring_out *out)
{
	/*
	 * E20: pairs with twi_ring_take(). The consumer must have read the entries before their
	 * places are free.
	 */
	uint64_t head = twi_load_acquire(&out->head);

	in->room = (uint32_t)head + in->mask + 1;
	return head;
}

/*
 * For the producer. The entries from the tail on go to `array`, which the caller has allocated for
 * `mask` + 1 of them. A consumer that sees an entry beyond the older array sees this one, too.
 */
static inline void twi_ring_extend(struct twi_ring_in *in, struct twi_ring_arrays *arrays,
				   struct twi_ring_array *array, uint64_t mask)
{
	/* RELAXED: only the producer writes it. */
	array->from = twi_load_relaxed(&in->tail);
	array->mask = mask;
	/* RELAXED: published with the array itself. */
	twi_store_relaxed(&array->next, NULL);
	/* E131: to the consumer, and to a forked child, which frees all that it finds. */
	if (in->entry == NULL)
		twi_store_release(&arrays->first, array);
	else
		twi_store_release(&twi_ring_newest(in)->next, array); /* E131 */
	in->entry = array->entry;
	in->mask = (uint32_t)mask;
}

/*
 * For the producer. Returns an array that the consumer has left, for the caller to free, or NULL.
 * `head`: from twi_ring_look().
 */
static inline struct twi_ring_array *twi_ring_left(struct twi_ring_arrays *arrays, uint64_t head)
{
	/* RELAXED: only the producer writes it. */
	struct twi_ring_array *array = twi_load_relaxed(&arrays->first);
	/* RELAXED: as above. */
	struct twi_ring_array *next = twi_load_relaxed(&array->next);

	/* The consumer goes on to the next array when it takes the first entry there. */
	if (next == NULL || head <= next->from)
		return NULL;
	/* RELAXED: the consumer does not look at it again. */
	twi_store_relaxed(&arrays->first, next);
	return array;
}

/*
 * For the producer, which must have a free entry. Writes entry `number`. The consumer sees it as
 * soon as the tail is raised over it.
 */
static inline void twi_ring_put(_Atomic uintptr_t *entry, uint32_t mask, uint64_t number,
				uintptr_t word)
{
	TWI_PREFETCH_WRITE(&entry[(number + TWI_RING_AHEAD) & mask]);
	/* RELAXED: the raise of the tail makes it visible. */
	twi_store_relaxed(&entry[number & mask], word);
	TWI_TEST_POINT("ring_push:written");
}

/*
 * For the producer. Lets the consumer read the entries below `tail`. If `unfenced`, the store has
 * no fence. Then a consumer that sleeps must make a barrier in all threads before its last look
 * (E8, turn/sleep.c).
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
	 * Without a fence the processor may check before other threads see the push, and the
	 * barrier allows for that. But the compiler must not move the check.
	 */
	twi_fence_compiler();
}

/* For the producer, which must have a free entry. The consumer sees the new entry at once. */
static inline void twi_ring_push(struct twi_ring_in *in, uintptr_t word, bool unfenced)
{
	/* RELAXED: only the producer writes it. */
	uint64_t tail = twi_load_relaxed(&in->tail);

	twi_ring_put(in->entry, in->mask, tail, word);
	twi_ring_raise(in, tail + 1, unfenced);
}

/*
 * For the consumer. Returns how many entries were ever pushed. It may read those below that number.
 */
static inline uint64_t twi_ring_pushed(const struct twi_ring_in *in)
{
	/*
	 * E19: pairs with twi_ring_raise(), so that the entries are readable. E8: the sleeper's
	 * last look.
	 */
	return twi_load_seq_cst(&in->tail);
}

/* For the consumer. RELAXED: only the consumer writes it. */
static inline uint64_t twi_ring_taken(const struct twi_ring_out *out)
{
	return twi_load_relaxed(&out->head);
}

/* Entries that lie one behind the other. */
struct twi_ring_part {
	const _Atomic uintptr_t *at, *end;
};

/*
 * For the consumer. Returns the part of the entries from `at` up to `end` that begins at `at`. There
 * must be one, and all of them must have been pushed. `*array`: where to begin to look; NULL: at the
 * first array. It becomes the array of the part.
 */
static inline struct twi_ring_part twi_ring_part(const struct twi_ring_arrays *arrays,
						 struct twi_ring_array **array, uint64_t at,
						 uint64_t end)
{
	struct twi_ring_array *own = *array, *next;
	const _Atomic uintptr_t *first;
	uint64_t count, to_wrap;

	/* RELAXED: E19 has acquired it, with the first entry. */
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
 * For the consumer. Returns an entry of a part. RELAXED: E19 has acquired it, and it is not written
 * again.
 */
static inline uintptr_t twi_ring_entry(const _Atomic uintptr_t *at)
{
	return twi_load_relaxed(at);
}

/* For the consumer. Gives back the places below `number`. */
static inline void twi_ring_take(struct twi_ring_out *out, uint64_t number)
{
	/*
	 * E20: pairs with twi_ring_look(). The entries must be read before the producer
	 * overwrites them.
	 */
	twi_store_release(&out->head, number);
}

#endif
