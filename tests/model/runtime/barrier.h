/* SPDX-License-Identifier: MIT */
#ifndef MODEL_BARRIER_H
#define MODEL_BARRIER_H

/* membarrier(2): 0, or -1. */
long barrier_call(int command);

/* A run begins. */
void barrier_begin(void);

/* A compiler's fence (atomic_signal_fence). */
void barrier_compiler_fence(void);

#endif
