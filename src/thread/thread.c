/* SPDX-License-Identifier: MIT */
#include "thread/thread.h"

#include "base/tsan.h"
#include "thread/fork.h"
#include "thread/pin.h"
#include "thread/rcu.h"

#include <limits.h>
#include <pthread.h>

#if TWI_TSAN
char twi_rcu_tsan_edge;
#endif

_Thread_local struct twi_thread twi_thread_self;

enum {
	/* The last round is not used, because sanitizers end their own record of a thread there. */
	ROUNDS_SEEN = PTHREAD_DESTRUCTOR_ITERATIONS - 1,
};

static pthread_key_t exit_key;       /* [const] after load */
static bool exit_key_made;           /* [const] after load */
static _Atomic uint64_t lanes_taken; /* [atomic E7] bit per exclusive lane */

static uint32_t lane_take(void)
{
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	uint64_t taken = twi_load_relaxed(&lanes_taken);
	uint32_t lane;

	do {
		if (~taken << 1 == 0)
			return TWI_LANE_SHARED;
		lane = (uint32_t)__builtin_ctzll(~taken);
		/*
		 * E7: pairs with lane_give(). Acquires the writes of the last owner. Without it
		 * this thread could continue from an older count or tail.
		 */
	} while (!twi_cas_acquire(&lanes_taken, &taken, taken | UINT64_C(1) << lane));
	return lane;
}

static void lane_give(uint32_t lane)
{
	if (lane != TWI_LANE_SHARED)
		/* E7: pairs with lane_take(), so that the next owner sees our last writes. */
		(void)twi_fetch_and_release(&lanes_taken, ~(UINT64_C(1) << lane));
}

static void *latest_wheel(const struct twi_thread *thread)
{
	return thread->holds != NULL ? thread->holds->worker : NULL;
}

TWI_COLD void twi_thread_attach(struct twi_thread *thread)
{
	bool reported = exit_key_made && thread->exit_rounds < ROUNDS_SEEN &&
			pthread_setspecific(exit_key, thread) == 0;

	/*
	 * In a forked child this is skipped: a thread that does not exist there may hold a lock of
	 * liburcu, and no call enters a section any more.
	 */
	if (!twi_forked())
		twi_rcu_register_thread();
	thread->lane = reported ? lane_take() : TWI_LANE_SHARED;
	/*
	 * A stock that keeps nothing rules out every short code path, and each block that is taken
	 * is reported (base/tsan.h).
	 */
	twi_stock_init(&thread->stock, !reported || twi_tsan_there());
	thread->pin = twi_pin_of_lane(thread->lane);
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
 * Closes the brackets that a thread has left open. A worker's thread has none, because its end
 * handles that (worker/role.h).
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
	twi_stock_flush(&thread->stock);
	lane_give(thread->lane);
	thread->attached = false;
	thread->pin = NULL;
	/* The next attach sets it again. */
	thread->wheel_of = NULL;
}

static uint64_t own_lane(void)
{
	const struct twi_thread *thread = &twi_thread_self;

	if (!thread->attached || thread->lane == TWI_LANE_SHARED)
		return 0;
	return UINT64_C(1) << thread->lane;
}

static void thread_inherit(void)
{
	/* RELAXED: no other thread exists. */
	twi_store_relaxed(&lanes_taken, own_lane());
	twi_pins_forget();
	/* The wheels belong to the parent. */
	twi_thread_self.wheel_of = NULL;
	twi_thread_self.holds = NULL;
}

/* Runs in the child, where no other thread exists. */
static void child_begins(void)
{
	bool from_callback = twi_thread_self.run != NULL || twi_thread_self.worker != NULL;

	thread_inherit();
	twi_fork_count(from_callback);
}

static TWI_CONSTRUCTOR void handler_register(void)
{
	(void)pthread_atfork(NULL, NULL, child_begins);
}

bool twi_thread_alone(void)
{
	/* RELAXED: the caller must make sure that no other thread attaches. */
	return (twi_load_relaxed(&lanes_taken) & ~own_lane()) == 0;
}

/* Requests to be notified in the next round too, so that the count is the number of the round. */
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
