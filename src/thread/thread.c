/* SPDX-License-Identifier: MIT */
#include "thread/thread.h"

#include "base/tsan.h"
#include "thread/fork.h"
#include "thread/pin.h"
#include "thread/presence.h"
#include "thread/rcu.h"

#include <limits.h>
#include <pthread.h>

_Thread_local struct twi_thread twi_thread_self;

enum {
	/*
	 * The last round of destructors is not used, because sanitizers free their own data of the
	 * thread in it.
	 */
	ROUNDS_SEEN = PTHREAD_DESTRUCTOR_ITERATIONS - 1,
	LANE_WORDS = TWI_LANES_MAX / 64,
};

static pthread_key_t exit_key; /* [const] after load */
static bool exit_key_made;     /* [const] after load */
static _Atomic bool used;      /* [atomic] whether a thread was ever attached */
/* A bit for each lane number. The bit of the shared lane is never set. */
static _Atomic uint64_t lanes_taken[LANE_WORDS]; /* [atomic E7] */

/* Returns the bits of a word that stand for exclusive lane numbers: all except the shared one. */
static uint64_t lanes_of_word(uint32_t word)
{
	return word == TWI_LANE_SHARED / 64 ? ~(UINT64_C(1) << TWI_LANE_SHARED % 64) : UINT64_MAX;
}

/* Takes a free lane number of one word. Returns TWI_LANE_SHARED if none is free. */
static uint32_t lane_take_in(uint32_t word)
{
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	uint64_t taken = twi_load_relaxed(&lanes_taken[word]);
	uint32_t bit;

	do {
		uint64_t open = ~taken & lanes_of_word(word);

		if (open == 0)
			return TWI_LANE_SHARED;
		bit = (uint32_t)__builtin_ctzll(open);
		/*
		 * E7: pairs with lane_give(). Acquires the last owner's writes to the lane. Without
		 * it this thread could continue from an older counter or tail.
		 */
	} while (!twi_cas_acquire(&lanes_taken[word], &taken, taken | UINT64_C(1) << bit));
	return word * 64 + bit;
}

static uint32_t lane_take(void)
{
	uint32_t lane = TWI_LANE_SHARED;

	for (uint32_t word = 0; word < LANE_WORDS && lane == TWI_LANE_SHARED; word++)
		lane = lane_take_in(word);
	return lane;
}

static void lane_give(uint32_t lane)
{
	if (lane != TWI_LANE_SHARED)
		/* E7: pairs with lane_take_in(), so that the next owner sees our last writes. */
		(void)twi_fetch_and_release(&lanes_taken[lane / 64], ~(UINT64_C(1) << lane % 64));
}

/* Returns the thread's lane number, near or far. */
static uint32_t lane_number(const struct twi_thread *thread)
{
	return thread->far != 0 ? thread->far : thread->lane;
}

static void lane_set(struct twi_thread *thread, uint32_t lane)
{
	bool far = lane >= TWI_LANES;

	thread->lane = far ? TWI_LANE_SHARED : lane;
	thread->far = far ? lane : 0;
}

static void *latest_wheel(const struct twi_thread *thread)
{
	return thread->holds != NULL ? thread->holds->worker : NULL;
}

TWI_COLD void twi_thread_attach(struct twi_thread *thread)
{
	bool reported = exit_key_made && thread->exit_rounds < ROUNDS_SEEN &&
			pthread_setspecific(exit_key, thread) == 0;

	/* RELAXED: only a forked child reads it, and libc's lock around fork orders the two. */
	twi_store_relaxed(&used, true);
	twi_rcu_register_thread();
	lane_set(thread, reported ? lane_take() : TWI_LANE_SHARED);
	/*
	 * Under ThreadSanitizer the stock keeps nothing. Then no short code path is taken, and each
	 * block that is taken is reported (base/tsan.h).
	 */
	twi_stock_init(&thread->stock, !reported || twi_tsan_there());
	thread->pin = twi_pin_of_lane(thread->lane);
	thread->presence = twi_presence_of_lane(thread->lane);
	thread->wheel_of = latest_wheel(thread);
	thread->attached = true;
}

void twi_hold_open(struct twi_thread *thread, struct twi_hold *hold)
{
	hold->next = thread->holds;
	thread->holds = hold;
	thread->wheel_of = hold->worker;
}

void twi_hold_close(struct twi_thread *thread, struct twi_hold *hold)
{
	struct twi_hold **place = &thread->holds;

	while (*place != NULL && *place != hold)
		place = &(*place)->next;
	if (*place == NULL)
		return;
	*place = hold->next;
	if (thread->wheel_of == hold->worker)
		thread->wheel_of = latest_wheel(thread);
}

/*
 * Closes the holds that an ending thread has left open. The hold of a worker's thread has no
 * function `close`, because the worker's own end handles it (worker/role.h).
 */
static void holds_close(struct twi_thread *thread)
{
	while (thread->holds != NULL && thread->holds->close != NULL)
		thread->holds->close(thread->holds->worker);
}

void twi_thread_release(struct twi_thread *thread)
{
	if (!thread->attached)
		return;
	/*
	 * E162: a quick call that the thread has left in the middle (by siglongjmp, or by
	 * pthread_exit in a signal handler) ends here. Otherwise every stop would wait for its mark.
	 */
	if (thread->presence != NULL)
		twi_presence_leave(thread->presence);
	twi_stock_flush(&thread->stock);
	lane_give(lane_number(thread));
	thread->attached = false;
	thread->pin = NULL;
	thread->presence = NULL;
	/* The next attach sets wheel_of again from the holds. */
	thread->wheel_of = NULL;
}

/* Returns the bit of the calling thread's own number in a word of lanes_taken, or 0. */
static uint64_t own_lane(uint32_t word)
{
	const struct twi_thread *thread = &twi_thread_self;
	uint32_t lane = lane_number(thread);

	if (!thread->attached || lane == TWI_LANE_SHARED || lane / 64 != word)
		return 0;
	return UINT64_C(1) << lane % 64;
}

static void thread_inherit(void)
{
	for (uint32_t word = 0; word < LANE_WORDS; word++)
		/* RELAXED: no other thread exists. */
		twi_store_relaxed(&lanes_taken[word], own_lane(word));
	twi_pins_forget();
	twi_presences_forget();
	/* The wheels of these pointers belong to the parent's engines. */
	twi_thread_self.wheel_of = NULL;
	twi_thread_self.holds = NULL;
}

/*
 * Returns whether the thread is inside a call of the library that continues to use its data after a
 * fork: a callback, or a visit of keyed timeouts, which is inside a section.
 */
static bool inside_call(const struct twi_thread *thread)
{
	return thread->run != NULL || thread->worker != NULL || twi_rcu_inside();
}

/*
 * Detaches the only thread of a forked child. Its free blocks are not given back: the take-over
 * finds them, whichever thread makes it.
 */
static void thread_forget(struct twi_thread *thread)
{
	twi_stock_init(&thread->stock, thread->stock.magazine_blocks == 1);
	lane_set(thread, TWI_LANE_SHARED);
	thread->attached = false;
	thread->pin = NULL;
	thread->presence = NULL;
}

/*
 * Sets up the library's data in a forked child, where no other thread exists. If the parent has not
 * used the library, there is nothing to do.
 */
static void child_begins(void)
{
	bool inside = inside_call(&twi_thread_self);

	/* RELAXED: no other thread exists. */
	if (!twi_load_relaxed(&used) && !twi_fork_watched())
		return;
	if (twi_fork_watched() && !inside)
		thread_forget(&twi_thread_self);
	thread_inherit();
	if (twi_fork_watched())
		twi_fork_count(inside);
}

static TWI_CONSTRUCTOR void handler_register(void)
{
	(void)pthread_atfork(NULL, NULL, child_begins);
}

bool twi_thread_alone(void)
{
	uint64_t others = 0;

	for (uint32_t word = 0; word < LANE_WORDS; word++)
		/* RELAXED: the caller must make sure that no other thread attaches. */
		others |= twi_load_relaxed(&lanes_taken[word]) & ~own_lane(word);
	return others == 0;
}

/*
 * Gives back what an ending thread keeps. Called when a thread exits, in each round of destructors.
 * Asks to be called in the next round, too, so that exit_rounds is the number of the round.
 */
static void thread_exits(void *argument)
{
	struct twi_thread *thread = argument;

	holds_close(thread);
	twi_thread_release(thread);
	if (++thread->exit_rounds < ROUNDS_SEEN)
		(void)pthread_setspecific(exit_key, thread);
}

static TWI_CONSTRUCTOR void exit_key_make(void)
{
	exit_key_made = pthread_key_create(&exit_key, thread_exits) == 0;
}
