/* SPDX-License-Identifier: MIT */
#ifndef PROTOCOL_OPTIONS_H
#define PROTOCOL_OPTIONS_H

#include <stdint.h>

/* The bounds of the search, set once at the start. */
struct options {
	uint8_t timers, faults, cancels;
};

extern struct options options;

#endif
