/* SPDX-License-Identifier: MIT */
/*
 * What a turn has to look at besides its timeouts. One word, so that a plain engine makes one test.
 * It is read relaxed, because the mark for dates is set before the push of the first one.
 */
#ifndef TWI_WORKER_MARK_H
#define TWI_WORKER_MARK_H

enum twi_mark {
	TWI_MARK_CHECK = 1,    /* the wheel is checked */
	TWI_MARK_DISPATCH = 2, /* there is a dispatch hook */
	TWI_MARK_WALL = 4,     /* there are, or were, timeouts with a date */
};

#endif
