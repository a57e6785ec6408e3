/* SPDX-License-Identifier: MIT */
/*
 * Readers lie in blocks that are never freed, in a list that only grows. A thread takes a free
 * reader by a swap, and gives it back when it exits. So the list is whole at every moment, also in
 * the copy that a forked child gets of it. The child frees the readers of all other threads.
 */
#include "thread/rcu.h"

#include "base/test_point.h"
#include "thread/barrier.h"
#include "thread/futex.h"

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <urcu/flavor.h>

#if !defined(TWI_RCU_BY_CALL)

/* How many readers the first block has. This block is static. */
#if !defined(TWI_READERS_NEAR)
#define TWI_READERS_NEAR 63
#endif
/* How often a grace period looks at a section before it sleeps. */
#if !defined(TWI_READER_LOOKS)
#define TWI_READER_LOOKS 100
#endif

enum {
	READERS_NEAR = TWI_READERS_NEAR,
	BLOCK_BYTES = 128 * 1024, /* of each further block */
	LOOKS = TWI_READER_LOOKS,
	LOOK_AGAIN_NS = 100 * 1000,
	/* In the last round of destructors, a thread's exit is not reported any more. */
	ROUNDS_SEEN = PTHREAD_DESTRUCTOR_ITERATIONS - 1,
};

struct twi_readers {
	_Atomic(struct twi_readers *) next; /* [atomic E160] */
	uint32_t size;                      /* [const] */
	/* [atomic] how many readers are taken, or are about to be: at most `size` */
	_Atomic uint32_t used;
	struct twi_reader reader[];
};

/* The first block: its head, and room for its readers. */
static union {
	_Alignas(TWI_CACHE_LINE) char bytes[sizeof(struct twi_readers) +
					    READERS_NEAR * sizeof(struct twi_reader)];
	struct twi_readers readers;
} near = {.readers = {.size = READERS_NEAR}};

/*
 * How many threads without a reader are inside a section. A section counts in one of two words. A
 * grace period waits for one word at a time, and meanwhile later sections count in the other.
 */
static struct {
	TWI_CACHE_ALIGNED _Atomic uint64_t inside[2]; /* [atomic E10] */
	_Atomic uint32_t next; /* [atomic] the word for the sections that begin; only a hint */
} shared;

_Thread_local struct twi_reader *twi_reader_self;
bool twi_rcu_light;

static _Thread_local uint32_t shared_depth;
static _Thread_local uint32_t shared_at; /* the word in which this thread's section counts */
static _Thread_local uint32_t exit_rounds;

static pthread_key_t exit_key; /* [const] after load */
static bool exit_key_made;     /* [const] after load */

static struct twi_readers *readers_next(struct twi_readers *readers)
{
	/* E160: pairs with readers_add(), so that the block's head is visible. */
	return twi_load_acquire(&readers->next);
}

static struct twi_readers *readers_make(void)
{
	struct twi_readers *readers =
		mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (readers == MAP_FAILED)
		return NULL;
	readers->size = (BLOCK_BYTES - sizeof *readers) / sizeof readers->reader[0];
	return readers;
}

/* Adds a block to the list, after `last`. Returns the block after `last`, or NULL. */
static TWI_COLD struct twi_readers *readers_add(struct twi_readers *last)
{
	struct twi_readers *made = readers_make();
	struct twi_readers *next = NULL;

	if (made == NULL)
		return readers_next(last);
	/* E160: publishes the block's head. If another thread was first, acquires its block. */
	if (twi_cas_acq_rel(&last->next, &next, made))
		return made;
	(void)munmap(made, BLOCK_BYTES);
	return next;
}

/* Reserves one reader of the block. Returns false if it has none. */
static bool readers_reserve(struct twi_readers *readers)
{
	/* RELAXED: the number only promises that reader_find() finds a free reader. */
	uint32_t used = twi_load_relaxed(&readers->used);

	do {
		if (used >= readers->size)
			return false;
		/* RELAXED: as above. */
	} while (!twi_cas_relaxed(&readers->used, &used, used + 1));
	return true;
}

static bool reader_claim(struct twi_reader *reader)
{
	uint32_t taken = 0;

	/* RELAXED: a first look. E160: acquires the word as the last owner left it. */
	return twi_load_relaxed(&reader->taken) == 0 && twi_cas_acquire(&reader->taken, &taken, 1);
}

/*
 * Finds a free reader. The caller has reserved one, so at each moment at least one is free, but
 * other threads may take it first.
 */
static struct twi_reader *reader_find(struct twi_readers *readers)
{
	for (uint32_t at = 0;; at = at + 1 < readers->size ? at + 1 : 0)
		if (reader_claim(&readers->reader[at])) {
			readers->reader[at].home = readers;
			return &readers->reader[at];
		}
}

static struct twi_reader *reader_take(void)
{
	struct twi_readers *readers = &near.readers;

	while (readers != NULL && !readers_reserve(readers)) {
		struct twi_readers *next = readers_next(readers);

		readers = next != NULL ? next : readers_add(readers);
	}
	return readers != NULL ? reader_find(readers) : NULL;
}

static void reader_give(struct twi_reader *reader)
{
	struct twi_readers *home = reader->home;
	uint64_t word = twi_load_relaxed(&reader->word); /* RELAXED: this thread writes it. */

	/* E10: a section that the thread has left open ends here. */
	twi_store_release(&reader->word, word & ~TWI_READER_DEPTH);
	twi_store_release(&reader->taken, 0);        /* E160: pairs with reader_claim(). */
	(void)twi_fetch_sub_relaxed(&home->used, 1); /* RELAXED: as in readers_reserve. */
}

TWI_COLD void twi_rcu_register_thread(void)
{
	if (twi_reader_self != NULL || shared_depth > 0 || exit_rounds >= ROUNDS_SEEN)
		return;
	if (exit_key_made && pthread_setspecific(exit_key, &twi_reader_self) == 0)
		twi_reader_self = reader_take();
}

TWI_COLD void twi_rcu_enter_first(void)
{
	twi_rcu_register_thread();
	if (twi_reader_self != NULL) {
		twi_rcu_enter(); /* E10 */
		return;
	}
	if (shared_depth++ > 0)
		return;
	shared_at =
		twi_load_relaxed(&shared.next); /* RELAXED: a grace period looks at both words. */
	/* RELAXED: the fence below orders it. */
	(void)twi_fetch_add_relaxed(&shared.inside[shared_at], 1);
	ck_pr_fence_strict_memory(); /* E10: as in twi_rcu_begin_barrier(). */
}

TWI_COLD void twi_rcu_leave_shared(void)
{
	if (--shared_depth == 0)
		/* E10: pairs with shared_wait(). */
		(void)twi_fetch_sub_release(&shared.inside[shared_at], 1);
}

bool twi_rcu_inside(void)
{
	/* RELAXED: only this thread writes the word. */
	return shared_depth > 0 ||
	       (twi_reader_self != NULL &&
		(twi_load_relaxed(&twi_reader_self->word) & TWI_READER_DEPTH) != 0);
}

/* Lets other threads continue, before the caller looks again. Returns false at `until_ns`. */
static bool look_again(uint32_t look, int64_t until_ns)
{
	if (look >= LOOKS)
		return twi_futex_rest_until(LOOK_AGAIN_NS, until_ns);
	TWI_PAUSE();
	return true;
}

/*
 * Waits until the thread has left the section that it is in, if it is in one. Returns false if it
 * has not left at `until_ns`.
 */
static bool reader_wait(struct twi_reader *reader, int64_t until_ns)
{
	/* E10: pairs with twi_rcu_leave(), also if the next section has begun since. */
	uint64_t first = twi_load_acquire(&reader->word);
	uint64_t word = first;

	for (uint32_t look = 0;
	     (word & TWI_READER_DEPTH) != 0 && ((word ^ first) & ~TWI_READER_DEPTH) == 0; look++) {
		TWI_TEST_POINT("rcu:waiting");
		if (!look_again(look, until_ns))
			return false;
		word = twi_load_acquire(&reader->word); /* E10 */
	}
	return true;
}

static bool readers_wait(int64_t until_ns)
{
	struct twi_readers *readers = &near.readers;

	for (; readers != NULL; readers = readers_next(readers))
		for (uint32_t at = 0; at < readers->size; at++)
			if (!reader_wait(&readers->reader[at], until_ns))
				return false;
	return true;
}

/* Waits for the sections that count in a word. Returns false if some are left at `until_ns`. */
static bool shared_wait(uint32_t at, int64_t until_ns)
{
	/* E10: pairs with twi_rcu_leave_shared(). */
	for (uint32_t look = 0; twi_load_acquire(&shared.inside[at]) != 0; look++) {
		/*
		 * RELAXED: only a hint. Without it, sections that overlap could keep this word
		 * above 0, and the wait would not end.
		 */
		twi_store_relaxed(&shared.next, 1 - at);
		if (!look_again(look, until_ns))
			return false;
	}
	return true;
}

/*
 * Makes the barrier in all threads. A forked child may have to register for it again. If the system
 * granted the barrier before but refuses it now (a sandbox that began later), the process ends: the
 * sections have no barrier of their own, so no grace period could wait for them.
 */
static void barrier_make(void)
{
	/* E10: pairs with the fences of twi_rcu_begin_barrier() and twi_rcu_enter_first(). */
	ck_pr_fence_strict_memory();
	/* E10: pairs with the compiler fence of twi_rcu_begin_barrier(). */
	if (twi_rcu_light && !twi_barrier_all() && !(twi_barrier_register() && twi_barrier_all()))
		abort();
}

bool twi_rcu_synchronize_until(int64_t until_ns)
{
	uint32_t next;

	barrier_make();
	if (!readers_wait(until_ns))
		return false;
	/* RELAXED: only a hint. First comes the word in which no section begins now. */
	next = twi_load_relaxed(&shared.next);
	return shared_wait(1 - next, until_ns) && shared_wait(next, until_ns);
}

void twi_rcu_synchronize(void)
{
	(void)twi_rcu_synchronize_until(INT64_MAX); /* E10 */
}

/*
 * Gives back the reader of an ending thread. Called in each round of destructors, because other
 * destructors may use the library after this one.
 */
static void thread_exits(void *unused)
{
	struct twi_reader *reader = twi_reader_self;

	twi_reader_self = NULL;
	if (reader != NULL)
		reader_give(reader);
	if (++exit_rounds < ROUNDS_SEEN)
		(void)pthread_setspecific(exit_key, unused);
}

/* Frees the readers of the threads that a forked child does not have. */
static void block_inherit(struct twi_readers *readers)
{
	uint32_t used = 0;

	for (uint32_t at = 0; at < readers->size; at++) {
		struct twi_reader *reader = &readers->reader[at];
		/* RELAXED, all loads and stores here: no other thread exists. */
		uint32_t taken = twi_load_relaxed(&reader->taken);

		if (reader == twi_reader_self) {
			used++;
		} else if (taken != 0) {
			twi_store_relaxed(&reader->word, 0);  /* RELAXED */
			twi_store_relaxed(&reader->taken, 0); /* RELAXED */
		}
	}
	twi_store_relaxed(&readers->used, used); /* RELAXED */
}

static void child_begins(void)
{
	struct twi_readers *readers = &near.readers;

	for (; readers != NULL; readers = readers_next(readers))
		block_inherit(readers);
	for (uint32_t at = 0; at < 2; at++)
		/* RELAXED: as above. */
		twi_store_relaxed(&shared.inside[at], shared_depth > 0 && shared_at == at);
}

static TWI_CONSTRUCTOR_FIRST void load(void)
{
	exit_key_made = pthread_key_create(&exit_key, thread_exits) == 0;
	(void)pthread_atfork(NULL, NULL, child_begins);
	twi_rcu_light = twi_barrier_register();
}

static int section_ongoing(void)
{
	return twi_rcu_inside() ? 1 : 0;
}

static void nothing(void)
{
}

/*
 * liburcu's hash table, if its size is fixed, has no thread of its own and defers nothing. So it
 * never calls the members that are missing.
 */
const struct rcu_flavor_struct twi_rcu_flavor = {
	.read_lock = twi_rcu_enter,
	.read_unlock = twi_rcu_leave,
	.read_ongoing = section_ongoing,
	.read_quiescent_state = nothing,
	.update_synchronize_rcu = twi_rcu_synchronize,
	.thread_offline = nothing,
	.thread_online = nothing,
	.register_thread = twi_rcu_register_thread,
	.unregister_thread = nothing,
};

#endif
