/* SPDX-License-Identifier: MIT */
#ifndef MODEL_BARRIER_H
#define MODEL_BARRIER_H

/* Models membarrier(2). Returns 0 or -1. */
long barrier_call(int command);

/* Called when a run begins. */
void barrier_begin(void);

/* Called at a compiler fence (atomic_signal_fence). */
void barrier_compiler_fence(void);

#endif
