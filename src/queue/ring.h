/* SPDX-License-Identifier: MIT */
/*
 * Bounded queue of one producer and one consumer: a circular array (Lamport, "Specifying Concurrent
 * Program Modules", 1983). The producer looks at the consumer's index only when it has used up the
 * free entries that it knows of (Lee, Bu, Chandranmenon, "A lock-free, cache-efficient shared ring
 * buffer", 2009).
 *
 * Protocol. `tail` and `head` count the entries that were ever pushed and taken. The producer
 * writes one entry or several, then raises `tail` over them (LIN of push). The consumer reads
 * entries below `tail`, then raises `head`. After that the places belong to the producer again.
 *
 * Ownership. `tail` and `room` belong to the producer, `head` to the consumer. The entries from
 * `head` up to `tail` belong to the consumer, all other places to the producer.
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

/* Tests define a smaller ring, so that it is soon full and wraps around soon. */
#ifndef TWI_RING_BITS
#define TWI_RING_BITS 16
#endif

enum {
	TWI_RING_ENTRIES = 1 << TWI_RING_BITS,
	TWI_RING_BYTES = TWI_RING_ENTRIES * sizeof(uintptr_t),
	/*
	 * How many entries ahead the producer prefetches, because the consumer's core has their
	 * lines.
	 */
	TWI_RING_AHEAD = 32,
};

struct twi_ring_in {
	_Atomic uint64_t tail; /* [producer E19] */
	uint64_t room;         /* [producer] entries below this number are free */
	_Atomic(_Atomic uintptr_t *)
		entry; /* [handoff E19] NULL: there was no memory, so nothing is pushed here */
};

struct twi_ring_out {
	_Atomic uint64_t head; /* [worker E20] */
};

static inline _Atomic uintptr_t *twi_ring_place(_Atomic uintptr_t *entry, uint64_t number)
{
	return &entry[number & (TWI_RING_ENTRIES - 1)];
}

/*
 * For the producer. Returns whether it knows of a free entry. RELAXED: only the producer writes it.
 */
static inline bool twi_ring_knows_room(const struct twi_ring_in *in)
{
	return twi_load_relaxed(&in->tail) != in->room;
}

/* For the producer. Returns whether there is a free entry. */
static inline bool twi_ring_has_room(struct twi_ring_in *in, const struct twi_ring_out *out)
{
	if (TWI_LIKELY(twi_ring_knows_room(in)))
		return true;
	/* RELAXED: only the producer writes it. */
	if (twi_load_relaxed(&in->entry) == NULL)
		return false;
	/*
	 * E20: pairs with twi_ring_take(). The consumer must have read the entries before their
	 * places are free.
	 */
	in->room = twi_load_acquire(&out->head) + TWI_RING_ENTRIES;
	return twi_ring_knows_room(in);
}

/* For the producer, which must have a ring. All entries below the returned number are free now. */
static inline uint64_t twi_ring_all_room(struct twi_ring_in *in, const struct twi_ring_out *out)
{
	/* E20: as above. */
	return in->room = twi_load_acquire(&out->head) + TWI_RING_ENTRIES;
}

/*
 * For the producer, which must have a free entry. Writes entry `number`. The consumer sees it as
 * soon as the tail is raised over it.
 */
static inline void twi_ring_put(_Atomic uintptr_t *entry, uint64_t number, uintptr_t word)
{
	TWI_PREFETCH_WRITE(twi_ring_place(entry, number + TWI_RING_AHEAD));
	/* RELAXED: the raise of the tail makes it visible. */
	twi_store_relaxed(twi_ring_place(entry, number), word);
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

	/* RELAXED: as above. */
	twi_ring_put(twi_load_relaxed(&in->entry), tail, word);
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

/* For the consumer. Returns the array, once an entry was pushed. RELAXED: E19 has acquired it. */
static inline _Atomic uintptr_t *twi_ring_entries(const struct twi_ring_in *in)
{
	return twi_load_relaxed(&in->entry);
}

/*
 * For the consumer. Returns an entry below the number pushed. RELAXED: E19 has acquired it, and it
 * is not written again.
 */
static inline uintptr_t twi_ring_entry(_Atomic uintptr_t *entry, uint64_t number)
{
	return twi_load_relaxed(twi_ring_place(entry, number));
}

/* For the consumer. Gives back the places below `number`. */
static inline void twi_ring_take(struct twi_ring_out *out, uint64_t number)
{
	/*
	 * E20: pairs with twi_ring_has_room(). The entries must be read before the producer
	 * overwrites them.
	 */
	twi_store_release(&out->head, number);
}

#endif
