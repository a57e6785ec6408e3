/* SPDX-License-Identifier: MIT */
/*
 * Fresh timers: scheduled, and not taken by the I/O thread yet. The only pointer to a fresh timer
 * is in the entry of the timer's serial. One swap of the entry decides between a canceller and the
 * I/O thread. If the canceller wins, it frees the timer at once, and the I/O thread never touches
 * it.
 *
 * A chunk is up to 64 consecutive serials with their entries. A scheduling thread takes a chunk for
 * its lane and pushes the chunk to the I/O thread, before any of the chunk's serials gets a timer.
 * In each step the I/O thread reads the entries of the pushed chunks, which are consecutive in
 * memory. A chunk is free again when all its serials are used, and the I/O thread has seen each of
 * them. An entry needs no clearing, because its word contains the serial: a word of another serial
 * counts as empty.
 *
 *     from      to        by             when
 *     (empty)   STAGED    the scheduler  the timer is complete
 *     STAGED    ABSORBED  a canceller    LIN of its cancel; the timer belongs to the canceller
 *     STAGED    TAKEN     the I/O thread the timer enters a table of stage.h
 *
 * The memory of the chunks stays until the set is freed. So a canceller with an old id may read an
 * entry that has got another serial; then its swap fails.
 */
#ifndef TWI_DURABLE_FRESH_TABLE_H
#define TWI_DURABLE_FRESH_TABLE_H

#include "durable/set.h"

enum twi_fresh_state {
	TWI_FRESH_STAGED = 1,
	TWI_FRESH_TAKEN = 2,
	TWI_FRESH_ABSORBED = 3,
	TWI_FRESH_STATES = 4, /* the word is the serial times this, plus a state */
	/*
	 * How many staged bytes an absorbed timer counts as, until the I/O thread has seen its
	 * entry.
	 */
	TWI_FRESH_BYTES = 32,
};

struct twi_fresh_entry {
	_Atomic uint64_t word;                     /* [atomic E109] */
	_Atomic(struct twi_durable_timer *) timer; /* [atomic E109], as the two below */
	_Atomic uint64_t place;
	_Atomic(void *) context;
};

struct twi_fresh_chunk {
	struct twi_handover_link link;
	_Atomic uint64_t first;       /* [atomic E109] its first serial, or 0: the chunk is free */
	_Atomic uint32_t given;       /* [atomic] how many of its serials will be given out */
	uint32_t lane;                /* [handoff E66] */
	uint64_t seen;                /* [io] one bit for each entry, as the field below */
	struct twi_fresh_chunk *next; /* the list `fresh_open` of the set */
	TWI_CACHE_ALIGNED struct twi_fresh_entry entries[TWI_DURABLE_CHUNK];
};

/* Makes the table, with `entries` entries. Returns false if there is no memory. */
bool twi_fresh_timers_create(struct tw_durable *set, uint64_t entries);
/* Frees the table and the timers that are still fresh. No other thread may use the set. */
void twi_fresh_timers_destroy(struct tw_durable *set);

/*
 * Takes a serial that has an entry, for a new timer. The caller must pass the entry and the timer
 * with this serial to twi_fresh_timer_put(). Returns NULL if there is no such serial at the moment.
 */
struct twi_fresh_entry *twi_fresh_timer_take(struct tw_durable *set, uint64_t *ret_serial);
/* Puts a timer into its entry. From here on another thread may end and free it. */
void twi_fresh_timer_put(struct tw_durable *set, struct twi_fresh_entry *entry,
			 struct twi_durable_timer *timer);

/* Cancels and frees a timer, if it is fresh. Otherwise returns false. */
bool twi_fresh_timer_absorb(struct tw_durable *set, struct tw_durable_id id);

/*
 * For the I/O thread: gives each fresh timer to `give`, and acknowledges the absorbed ones. Returns
 * whether there were any.
 */
bool twi_fresh_timers_collect(struct tw_durable *set,
			      void (*give)(struct tw_durable *set,
					   struct twi_durable_timer *timer));
/* For the I/O thread: returns whether twi_fresh_timers_collect() would find something now. */
bool twi_fresh_timers_any(struct tw_durable *set);

#endif
