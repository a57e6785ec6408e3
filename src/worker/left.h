/* SPDX-License-Identifier: MIT */
/* The work that a turn, or a step of it, has left. */
#ifndef TWI_WORKER_LEFT_H
#define TWI_WORKER_LEFT_H

enum twi_left {
	TWI_LEFT_NOTHING = 0,
	/*
	 * More work is ready, such as entries beyond one batch, so the next turn must follow at
	 * once.
	 */
	TWI_LEFT_MORE = 1,
	/*
	 * A push under way in the shared lane hides later pushes of other threads, so the worker
	 * must look again soon.
	 */
	TWI_LEFT_CUT = 2,
	/*
	 * A thread's push is under way in its own lane, or the barrier failed, so that a push may
	 * not be visible yet (turn/sleep.c). The worker must look again soon.
	 */
	TWI_LEFT_HIDDEN = 4,
	/* A poll's budget is used up. The remaining due timeouts stay due. */
	TWI_LEFT_BUDGET = 8,
};

#endif
