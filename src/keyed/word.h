/* SPDX-License-Identifier: MIT */
/*
 * The state word of an entry. One compare-and-swap decides each race about the entry.
 *
 *     bits 63..8 step | bit 7 replaced | bit 6 stop | bit 5 ended | bit 4 gone | bit 3 out |
 *     bits 1..0 state
 *
 * The step goes up when a thread takes hold of the entry (HELD). Only this thread, the holder,
 * changes the fields. So if a reader finds the same state word before and after it reads the
 * fields, the fields belong together. A replacer is a thread in tw_keyed_replace. LIN marks the
 * linearization point of a call.
 *
 *     from     to        by                            when
 *     free     HELD      scheduler                     a store, before another thread has it
 *     HELD     WAITING   holder                        its timer is set: LIN of a replace in place
 *     WAITING  HELD      its timer, expired            LIN of a run
 *     WAITING  HELD      replacer, in place            sets the new kind and argument, then lets go
 *     WAITING  OWNED     canceller, hand-back, or a    LIN of its end (for the replacer,
 *                        replacer in the table         twi_hash_replace is the LIN)
 *     HELD     OWNED     holder                        its last run is over, or stop is set
 *     HELD     stop set  canceller, or a replacer in   the holder must end it
 *                        the table
 *     WAITING, HELD      replacer in the table         in the swap to OWNED or stop: its key has
 *              repl. set                               another entry
 *     any      out set   the thread that took it out   exactly one thread: the table decides which
 *                        of the table
 *     any      gone set  its timer                     it has expired or was handed back
 *     OWNED    ended set owner                         its hook has run
 *     OWNED    retired   the thread that sets the      no thread will touch it, except readers that
 *                        last of out, gone, ended      found it in the table: free when they leave
 *
 * A retired or free entry keeps its last state word, and so its step. State FREE occurs only in
 * memory that has never been an entry.
 *
 * The state word decides, and the hash table follows. An entry is dead if it is OWNED or if stop is
 * set, even if the table still contains it. A lookup ignores a dead entry, and a scheduler replaces
 * it by its own entry in the table. The table decides only one thing: the replace of an entry that
 * another thread holds. If the state word decided that too, a lookup between the change of the
 * state word and the change of the table could find no living entry for the key.
 *
 * The timer. A living entry has one timeout in the engine, its timer, which is due at the entry's
 * deadline. `gone` means that the timer has expired or was handed back. That may happen while the
 * call that made the timer still holds the entry. Then the timer's callback finds HELD and sets
 * `gone`, and the holder makes another timer. If an entry ends before its timer, tw_cancel reports
 * whether the timer's callback will still run. If so, that callback is the last to touch the entry.
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
/* All of these flags must be set before the entry is retired. */
#define TWI_KEYED_ALL (TWI_KEYED_OUT | TWI_KEYED_GONE | TWI_KEYED_ENDED)

static inline enum twi_keyed_state twi_keyed_state(uint64_t word)
{
	return (enum twi_keyed_state)(word & TWI_KEYED_STATE_MASK);
}

/* Returns the state word changed to another state, with the same step and flags. */
static inline uint64_t twi_keyed_to(uint64_t word, enum twi_keyed_state state)
{
	return (word & ~TWI_KEYED_STATE_MASK) | (uint64_t)state;
}

/* Returns the state word of a new hold: HELD, with the next step. */
static inline uint64_t twi_keyed_hold(uint64_t word)
{
	return twi_keyed_to(word, TWI_KEYED_HELD) + TWI_KEYED_STEP;
}

/* Returns the first state word of an entry that was free before. */
static inline uint64_t twi_keyed_begin(uint64_t word)
{
	return (word & ~(TWI_KEYED_STEP - 1)) + TWI_KEYED_STEP + (uint64_t)TWI_KEYED_HELD;
}

/* Returns whether the entry has ended, or must end when its present hold is released. */
static inline bool twi_keyed_dead(uint64_t word)
{
	return twi_keyed_state(word) == TWI_KEYED_OWNED ||
	       twi_keyed_state(word) == TWI_KEYED_FREE || (word & TWI_KEYED_STOP) != 0;
}

#endif
