/* SPDX-License-Identifier: MIT */
/* The kernel's timer behind a loop's descriptor. */
#ifndef MODEL_TIMER_H
#define MODEL_TIMER_H

#include <stdint.h>

void timer_begin(void);

/* Returns when the timer expires; INT64_MAX: never. */
int64_t timer_until_ns(void);

/* The two descriptors of the model. */
enum { EVENT_FD = 1000, TIMER_FD = 1001 };

#endif
