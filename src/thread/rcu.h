/* SPDX-License-Identifier: MIT */
/*
 * The calls of liburcu's bulletproof flavour that the engine needs: enter and leave a read-side
 * critical section ("RCU section"), and wait for a grace period.
 *
 * Purpose. A thread that pushes to an engine's queues is inside an RCU section from its look at the
 * engine's state to the end of its push. Stop changes the state and waits for a grace period. Then
 * every push that saw the old state is complete, and no later one can begin (edge E10). The quick
 * paths use a presence instead (thread/presence.h), which takes fewer instructions.
 *
 * Licence. With _LGPL_SOURCE, liburcu's enter and leave are inlined, here and nowhere else. They
 * are small inline functions, which section 5 of the LGPL 2.1 leaves unrestricted, in a program
 * with free sources. Sanitizer builds call liburcu's functions instead, and report the edge to
 * ThreadSanitizer.
 *
 * Progress. enter and leave are wait-free. But a thread's first enter registers the thread, which
 * takes a mutex inside liburcu; tw_thread_attach does that in advance. synchronize blocks until
 * other threads leave their RCU sections.
 */
#ifndef TWI_THREAD_RCU_H
#define TWI_THREAD_RCU_H

#include "base/compiler.h"

#if !defined(TWI_RCU_BY_CALL)
#define _LGPL_SOURCE
#endif
#include <pthread.h>
#include <urcu-bp.h>

#if TWI_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
extern char twi_rcu_tsan_edge;
#define TWI_RCU_RELEASE() __tsan_release(&twi_rcu_tsan_edge)
#define TWI_RCU_ACQUIRE() __tsan_acquire(&twi_rcu_tsan_edge)
#else
#define TWI_RCU_RELEASE() ((void)0)
#define TWI_RCU_ACQUIRE() ((void)0)
#endif

static inline void twi_rcu_enter(void)
{
	urcu_bp_read_lock();
}

static inline void twi_rcu_leave(void)
{
	TWI_RCU_RELEASE();
	urcu_bp_read_unlock();
}

/*
 * E10: waits for a grace period: until each RCU section that began before has ended. Must not be
 * called inside an RCU section or in a callback.
 */
static inline void twi_rcu_synchronize(void)
{
	int cancel_state;

	/*
	 * liburcu sleeps in poll while it holds its lock. If the thread were cancelled
	 * (pthread_cancel) there, the lock would stay held.
	 */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	urcu_bp_synchronize_rcu();
	TWI_RCU_ACQUIRE();
	(void)pthread_setcancelstate(cancel_state, NULL);
}

static inline void twi_rcu_register_thread(void)
{
	urcu_bp_register_thread();
}

/*
 * Begin and end a fork, for liburcu. These three functions must be called around a fork, and never
 * inside an RCU section, because they wait for grace periods under way.
 */
static inline void twi_rcu_fork_begin(void)
{
	urcu_bp_before_fork();
}

static inline void twi_rcu_fork_parent(void)
{
	urcu_bp_after_fork_parent();
}

static inline void twi_rcu_fork_child(void)
{
	urcu_bp_after_fork_child();
}

#endif
