/* SPDX-License-Identifier: MIT */
/*
 * The system under the library: threads, futexes, time, pages, thread data, RCU.
 */
#ifndef MODEL_SYSTEM_H
#define MODEL_SYSTEM_H

/* The calling fiber's thread ends: the destructors of its data. */
void system_thread_ends(void);

void system_begin(void);

#endif
