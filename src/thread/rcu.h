/* SPDX-License-Identifier: MIT */
/*
 * Read-side critical sections ("RCU sections") and grace periods of this library.
 *
 * Purpose. A thread that pushes to an engine's queues is inside an RCU section from its look at the
 * engine's state to the end of its push. Stop changes the state and waits for a grace period. Then
 * every push that saw the old state is complete, and no later one can begin (edge E10). The quick
 * paths use a presence instead (thread/presence.h), which takes fewer instructions.
 *
 * Why not liburcu's. A forked child can repair liburcu-bp only if its fork handlers ran around the
 * fork. They hang in fork if they run twice, and a library cannot know whether the program has
 * registered them (docs/fork.md). Here a fork needs no handler before it: no lock protects the
 * list of readers, so no thread of the parent can hold one.
 *
 * Protocol. Each thread has a reader, whose word only this thread writes: the low half is how deep
 * its sections nest, the high half counts the outermost ones. A grace period looks at each reader
 * once. If the thread is inside a section, it waits until the word says that the thread has left
 * it, or has begun another one. At the beginning of a section, and of a grace period, a thread
 * first stores, and then loads what the other side has stored. So both sides need a full barrier
 * between these two steps. The grace period makes the barrier for both (thread/barrier.h), or each
 * makes its own.
 *
 * A thread without a reader (there was no memory, or its exit would not be reported) counts its
 * sections in one of two words that all such threads share. A grace period waits until it has seen
 * each of the two words 0. While it waits for one word, new sections count in the other one.
 *
 * Progress. enter and leave are wait-free. A thread's first enter takes a reader, which is
 * lock-free; tw_thread_attach does that in advance. synchronize blocks until other threads leave
 * the sections that they were in.
 */
#ifndef TWI_THREAD_RCU_H
#define TWI_THREAD_RCU_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rcu_flavor_struct;
struct twi_readers;

/* A thread's reader. Its memory is never freed. */
struct twi_reader {
	/* [producer E10] depth, and TWI_READER_SECTION for each outermost section */
	TWI_CACHE_ALIGNED _Atomic uint64_t word;
	_Atomic uint32_t taken;   /* [atomic E160] whether a thread has it */
	struct twi_readers *home; /* [const] while it is taken */
};

#define TWI_READER_SECTION (UINT64_C(1) << 32)
#define TWI_READER_DEPTH (TWI_READER_SECTION - 1)

/* The calling thread's reader, or NULL. */
extern _Thread_local struct twi_reader *twi_reader_self;

/* [const] after load. Whether a grace period makes the barriers of sections, too. */
extern bool twi_rcu_light;

/*
 * rcu.c: begin and end a section of a thread that has no reader. twi_rcu_enter_first may give the
 * thread a reader.
 */
void twi_rcu_enter_first(void);
void twi_rcu_leave_shared(void);

/* rcu.c: gives the thread a reader, so that its first section does not have to. */
void twi_rcu_register_thread(void);

/*
 * rcu.c: E10: waits for a grace period: until each RCU section that began before has ended. Must
 * not be called inside an RCU section.
 */
void twi_rcu_synchronize(void);

/*
 * rcu.c: E10: does the same, but waits only until CLOCK_MONOTONIC reaches `until_ns` (INT64_MAX: no
 * limit). Returns false if a section has not ended by then.
 */
bool twi_rcu_synchronize_until(int64_t until_ns);

/* rcu.c: returns whether the calling thread is inside a section. */
bool twi_rcu_inside(void);

/* rcu.c: the functions of these sections, in the form that liburcu's hash table needs. */
extern const struct rcu_flavor_struct twi_rcu_flavor;

#if defined(TWI_RCU_BY_CALL)

/* The model check has its own sections. */
void twi_rcu_call_enter(void);
void twi_rcu_call_leave(void);

static inline void twi_rcu_enter(void)
{
	twi_rcu_call_enter();
}

static inline void twi_rcu_leave(void)
{
	twi_rcu_call_leave();
}

#else

/* The barrier between the beginning of a section and the accesses in it. */
static inline void twi_rcu_begin_barrier(void)
{
	if (TWI_LIKELY(twi_rcu_light))
		twi_fence_compiler();
	else
		ck_pr_fence_strict_memory();
}

static inline void twi_rcu_enter(void)
{
	struct twi_reader *reader = twi_reader_self;
	uint64_t word;

	if (TWI_UNLIKELY(reader == NULL)) {
		twi_rcu_enter_first();
		return;
	}
	/* RELAXED: only this thread writes the word. */
	word = twi_load_relaxed(&reader->word);
	if (TWI_UNLIKELY((word & TWI_READER_DEPTH) != 0)) {
		/* E10: a grace period that reads this word also sees the end of the section before. */
		twi_store_release(&reader->word, word + 1);
		return;
	}
	/* E10: a grace period that reads this word also sees the end of the section before. */
	twi_store_release(&reader->word, word + TWI_READER_SECTION + 1);
	twi_rcu_begin_barrier();
}

static inline void twi_rcu_leave(void)
{
	struct twi_reader *reader = twi_reader_self;

	if (TWI_UNLIKELY(reader == NULL)) {
		twi_rcu_leave_shared();
		return;
	}
	/*
	 * E10: pairs with reader_wait(). All that was done in the section comes before the end of
	 * the grace period. RELAXED, the load: only this thread writes the word.
	 */
	twi_store_release(&reader->word, twi_load_relaxed(&reader->word) - 1);
}

#endif
#endif
