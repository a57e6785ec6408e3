/* SPDX-License-Identifier: MIT */
/*
 * After fork the child has the parent's engines, but not their workers. It is told so by -ECHILD, until
 * it takes over what it has (engine/adopt.c).
 *
 * What a child sees. fork copies the memory while the other threads run on. Each of them writes up to
 * some point, and nothing that it writes later is in the copy; and whoever has read what another wrote
 * is in the copy together with that. So a child finds what a thread would find that acquires all that
 * is there at that moment: what was released after a store is there with that store (E70). Two stores
 * that nothing orders may be there one without the other.
 *
 * liburcu. Its locks may be held, in the copy, by threads that are not there, and its list of threads
 * names them. Only its own handlers around the fork mend that. They hang when they run twice, so ours
 * are registered only where a program asks for them.
 */
#ifndef TWI_MECH_FORK_H
#define TWI_MECH_FORK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How often this process and its ancestors forked with engines at hand. Not 0: each handle is looked at before
 * it is used. So ThreadSanitizer's programs begin with TWI_FORK_LOOK (base/tsan.h). [const] between forks
 */
extern uint32_t twi_fork_epoch;

/* Of an epoch: no fork, but handles are looked at as after one. */
#define TWI_FORK_LOOK (UINT32_C(1) << 31)

/* The epoch in which the library was last made this process's own. [atomic] */
extern _Atomic uint32_t twi_fork_taken;

/* From the first engine on, a fork counts. */
void twi_fork_watch(void);

/* Whether the library, and all that it has, still is a parent's. */
bool twi_forked(void);

/* From here on it is this process's. */
void twi_fork_take(void);

/* Whether this process began inside a callback of the parent's. */
bool twi_fork_inside(void);

/*
 * 0: liburcu's handlers run around each fork from now on. Again: nothing is done. -ENOMEM; -EPERM: they
 * have not run around the fork that began this process.
 */
int twi_fork_handlers_enable(void);

/* Whether they have run around the fork that began this process. */
bool twi_fork_handled(void);

#endif
