/* SPDX-License-Identifier: MIT */
/*
 * The work that a turn, or a part of it, has left.
 */
#ifndef TWI_WORKER_LEFT_H
#define TWI_WORKER_LEFT_H

enum twi_left {
	TWI_LEFT_NOTHING = 0,
	/* There was more than a batch: the next turn follows at once. */
	TWI_LEFT_MORE = 1,
	/*
	 * A push under way in the shared lane hides later pushes of other threads: look again soon.
	 */
	TWI_LEFT_CUT = 2,
	/* A thread's push is under way in its own lane: look again soon, for that thread. */
	TWI_LEFT_HIDDEN = 4,
	/* A poll's budget is used up: the rest of the due timeouts stays due. */
	TWI_LEFT_BUDGET = 8,
};

#endif
