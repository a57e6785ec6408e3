/* SPDX-License-Identifier: MIT */
/* The system below the library: threads, futexes, time, pages, thread data, RCU. */
#ifndef MODEL_SYSTEM_H
#define MODEL_SYSTEM_H

/* Ends the calling fiber's thread: calls the destructors of its thread data. */
void system_thread_ends(void);

void system_begin(void);

#endif
