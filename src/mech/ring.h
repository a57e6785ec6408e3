/* SPDX-License-Identifier: MIT */
/*
 * Bounded queue of one producer and one consumer: an array that is used round and round (Lamport,
 * "Specifying Concurrent Program Modules", 1983), where the producer looks at the consumer's index only
 * when the room that it knows of is used up (Lee, Bu, Chandranmenon, "A lock-free, cache-efficient
 * shared ring buffer", 2009).
 *
 * Protocol. `tail` and `head` count what was ever pushed and taken. The producer writes an entry, or
 * several, then raises `tail` over them (LIN of push); the consumer reads entries below `tail`, then
 * raises `head`, and the places are the producer's again.
 *
 * Who owns what. `tail`, `room`: the producer. `head`: the consumer. An entry: the producer from `head`
 * plus the size on, the consumer below `tail`.
 *
 * Progress. All wait-free. A producer that stands still hides nothing but what it pushes itself.
 */
#ifndef TWI_MECH_RING_H
#define TWI_MECH_RING_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/test_point.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Few where tests want a ring that runs full and round soon. */
#ifndef TWI_RING_BITS
#define TWI_RING_BITS 16
#endif

enum {
	TWI_RING_ENTRIES = 1 << TWI_RING_BITS,
	TWI_RING_BYTES = TWI_RING_ENTRIES * sizeof(uintptr_t),
	/* So far ahead the producer asks for the entries' lines, which the consumer had. */
	TWI_RING_AHEAD = 32,
};

struct twi_ring_in {
	_Atomic uint64_t tail; /* [producer E19] */
	uint64_t room;         /* [producer] there is room below this tail */
	_Atomic(_Atomic uintptr_t *)
		entry; /* [handoff E19] NULL: no memory, nothing is pushed here */
};

struct twi_ring_out {
	_Atomic uint64_t head; /* [worker E20] */
};

static inline _Atomic uintptr_t *twi_ring_place(_Atomic uintptr_t *entry, uint64_t number)
{
	return &entry[number & (TWI_RING_ENTRIES - 1)];
}

/* The producer. Whether there is room for one more, as far as it knows. RELAXED: its own. */
static inline bool twi_ring_knows_room(const struct twi_ring_in *in)
{
	return twi_load_relaxed(&in->tail) != in->room;
}

/* The producer. Whether there is room for one more. */
static inline bool twi_ring_has_room(struct twi_ring_in *in, const struct twi_ring_out *out)
{
	if (TWI_LIKELY(twi_ring_knows_room(in)))
		return true;
	/* RELAXED: the producer's own. */
	if (twi_load_relaxed(&in->entry) == NULL)
		return false;
	/* E20, pairs with the consumer: it has read what was in the places that are free now. */
	in->room = twi_load_acquire(&out->head) + TWI_RING_ENTRIES;
	return twi_ring_knows_room(in);
}

/* The producer, where there is a ring. All the room that it has now: below this tail. */
static inline uint64_t twi_ring_all_room(struct twi_ring_in *in, const struct twi_ring_out *out)
{
	/* E20: as above. */
	return in->room = twi_load_acquire(&out->head) + TWI_RING_ENTRIES;
}

/* The producer, where there is room: entry number `number`, seen as soon as the tail is raised over it. */
static inline void twi_ring_put(_Atomic uintptr_t *entry, uint64_t number, uintptr_t word)
{
	TWI_PREFETCH_WRITE(twi_ring_place(entry, number + TWI_RING_AHEAD));
	/* RELAXED: made visible with the tail. */
	twi_store_relaxed(twi_ring_place(entry, number), word);
	TWI_TEST_POINT("ring_push:written");
}

/*
 * The producer. The entries below `tail` may be read. `unfenced`: a consumer that sleeps makes a barrier
 * in all threads before its last look (E8, worker/sleep.c).
 */
static inline void twi_ring_raise(struct twi_ring_in *in, uint64_t tail, bool unfenced)
{
	/* E19, pairs with the consumer's look: publishes the entries and what they name. */
	if (TWI_LIKELY(unfenced))
		twi_store_release(&in->tail, tail);
	else
		/* E8 as well: the reason to wake up, before the look whether anybody sleeps. */
		(void)twi_exchange_seq_cst(&in->tail, tail);
	/* Unfenced, the processor may look before others see the reason; not the compiler. */
	twi_fence_compiler();
}

/* The producer, where there is room: one entry, seen at once. */
static inline void twi_ring_push(struct twi_ring_in *in, uintptr_t word, bool unfenced)
{
	/* RELAXED: the producer's own. */
	uint64_t tail = twi_load_relaxed(&in->tail);

	/* RELAXED: as above. */
	twi_ring_put(twi_load_relaxed(&in->entry), tail, word);
	twi_ring_raise(in, tail + 1, unfenced);
}

/* The consumer. How many were ever pushed: those below may be read. */
static inline uint64_t twi_ring_pushed(const struct twi_ring_in *in)
{
	/* E19. E8: the sleeper's last look. */
	return twi_load_seq_cst(&in->tail);
}

/* The consumer. RELAXED: its own. */
static inline uint64_t twi_ring_taken(const struct twi_ring_out *out)
{
	return twi_load_relaxed(&out->head);
}

/* The consumer. Where the entries are, once something was pushed. RELAXED: acquired by E19. */
static inline _Atomic uintptr_t *twi_ring_entries(const struct twi_ring_in *in)
{
	return twi_load_relaxed(&in->entry);
}

/* The consumer. An entry below what was pushed. RELAXED: acquired by E19, and not written again. */
static inline uintptr_t twi_ring_entry(_Atomic uintptr_t *entry, uint64_t number)
{
	return twi_load_relaxed(twi_ring_place(entry, number));
}

/* The consumer. Gives back the places below `number`. */
static inline void twi_ring_take(struct twi_ring_out *out, uint64_t number)
{
	/* E20, pairs with the producer's look for room: they are read. */
	twi_store_release(&out->head, number);
}

#endif
