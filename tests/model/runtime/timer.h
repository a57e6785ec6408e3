/* SPDX-License-Identifier: MIT */
/* The timer of the kernel behind a loop's descriptor. */
#ifndef MODEL_TIMER_H
#define MODEL_TIMER_H

void timer_begin(void);

#endif
