/* SPDX-License-Identifier: MIT */
/*
 * The word of an entry: one compare-and-swap decides each race about it.
 *
 *     bits 63..8 step | bit 7 replaced | bit 6 stop | bit 5 ended | bit 4 gone | bit 3 out | bits 1..0 state
 *
 * The step goes up whenever somebody takes hold of the entry (HELD), and only who holds it changes its
 * fields: a reader that finds the same word before and after has read fields that belong together.
 *
 *     from     to        by                            when
 *     free     HELD      who schedules                 a store; it is its own until it is in the table
 *     HELD     WAITING   who holds it                  its timer is set: LIN of a replace in place
 *     WAITING  HELD      its timer, expired            LIN of a run
 *     WAITING  HELD      who replaces it in place      gives it the new kind and argument, and lets go
 *     WAITING  OWNED     who cancels, hands back, or   LIN of its end (of a replace the table's step is)
 *                        has replaced it in the table
 *     HELD     OWNED     who holds it                  its last run is over; or it was told to stop
 *     HELD     stop set  who cancels, or has replaced  who holds it ends it
 *                        it in the table
 *     WAITING, HELD      who has replaced it in the    with the above: its key has another entry
 *              repl. set table
 *     any      out set   who took it out of the table  exactly one: the table says who
 *     any      gone set  its timer, that came          expired or handed back
 *     OWNED    ended set who owns it                   its hook has run
 *     OWNED    retired   who sets the last of out,     nobody will touch it, but for readers that found
 *                        gone, ended                   it in the table: free after them
 *
 * What is free, or on its way there, keeps its last word, and so its step; FREE is the word of memory that
 * never was an entry.
 *
 * The word decides, and the table follows: an entry that is OWNED or has been told to stop is dead,
 * though the table may have it still. Who looks a key up does not see it, and who wants the key puts
 * its own entry in the place of the dead one. A replace of an entry that somebody holds is the one
 * thing that the table decides, so that no lookup finds the key without an entry between the two.
 *
 * The timer. A live entry has one timeout in the engine, due at its deadline; `gone` says that there
 * is none. It may come (expire, or be handed back) before the call that makes it has let go of the
 * entry: it finds HELD, leaves the mark, and who holds the entry makes another. Where an entry ends
 * before its timer, tw_cancel says whether that is still to come; then it is the last to touch it.
 */
#ifndef TWI_KEYED_WORD_H
#define TWI_KEYED_WORD_H

#include <stdbool.h>
#include <stdint.h>

enum twi_keyed_state {
	TWI_KEYED_FREE = 0,
	TWI_KEYED_HELD = 1,
	TWI_KEYED_WAITING = 2,
	TWI_KEYED_OWNED = 3,
};

#define TWI_KEYED_STATE_MASK UINT64_C(3)
#define TWI_KEYED_OUT UINT64_C(8)
#define TWI_KEYED_GONE UINT64_C(16)
#define TWI_KEYED_ENDED UINT64_C(32)
#define TWI_KEYED_STOP UINT64_C(64)
#define TWI_KEYED_REPLACED UINT64_C(128)
#define TWI_KEYED_STEP UINT64_C(256)
/* What has to be set before it is free. */
#define TWI_KEYED_ALL (TWI_KEYED_OUT | TWI_KEYED_GONE | TWI_KEYED_ENDED)

static inline enum twi_keyed_state twi_keyed_state(uint64_t word)
{
	return (enum twi_keyed_state)(word & TWI_KEYED_STATE_MASK);
}

/* Another state, the same step and flags. */
static inline uint64_t twi_keyed_to(uint64_t word, enum twi_keyed_state state)
{
	return (word & ~TWI_KEYED_STATE_MASK) | (uint64_t)state;
}

/* Held from here on: another step. */
static inline uint64_t twi_keyed_hold(uint64_t word)
{
	return twi_keyed_to(word, TWI_KEYED_HELD) + TWI_KEYED_STEP;
}

/* The word of an entry that begins, after one that was free. */
static inline uint64_t twi_keyed_begin(uint64_t word)
{
	return (word & ~(TWI_KEYED_STEP - 1)) + TWI_KEYED_STEP + (uint64_t)TWI_KEYED_HELD;
}

/* It has ended, or ends with the hold that somebody has on it. */
static inline bool twi_keyed_dead(uint64_t word)
{
	return twi_keyed_state(word) == TWI_KEYED_OWNED ||
	       twi_keyed_state(word) == TWI_KEYED_FREE || (word & TWI_KEYED_STOP) != 0;
}

#endif
