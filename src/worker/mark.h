/* SPDX-License-Identifier: MIT */
/*
 * The optional work of a turn, besides its timeouts. All marks are in one word, so that an engine
 * without such work makes only one test. The worker reads the word relaxed, because the mark for
 * dates is set before the first timeout with a date is pushed, and the push publishes it.
 */
#ifndef TWI_WORKER_MARK_H
#define TWI_WORKER_MARK_H

enum twi_mark {
	TWI_MARK_CHECK = 1,    /* the wheel is checked */
	TWI_MARK_DISPATCH = 2, /* there is a dispatch hook */
	TWI_MARK_WALL = 4,     /* there are, or were, timeouts with a date */
};

#endif
